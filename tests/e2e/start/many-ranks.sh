# SPDX-License-Identifier: Apache-2.0
# Many ranks on one host, as a user without rights and with the usual limit of open files: the kernel
# bounds the descriptors that such a user may have on their way between processes.
. "$CT_SOURCE/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skipped: only root can become a user without rights"; exit 77; }
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
again=$CT_BUILD/tests/e2e_again
chmod 755 "$work" && chmod 777 "$TMPDIR"
if ! nobody test -x "$CTRUN" -a -x "$again" -a -r "$CT_BUILD/lib/libct.so"; then
    echo "skipped: a user without rights can't read $CT_BUILD (setpriv, or its folders' modes)"
    exit 77
fi

many() {
    out=$(ulimit -n 1024 && nobody timeout 120 "$CTRUN" --nproc-per-node="$1" env CT_LOG=info "$again" 0 leaves 2>"$work/.err" </dev/null)
    code=$?
    err=$(cat "$work/.err")
}
for ranks in 64 128 300; do
    many $ranks
    expect "$ranks ranks come together" is "$code" 0
    expect "$ranks ranks share memory" has "$err" "$ranks on this one, sharing memory"
done

# The rank that leads the host takes a connection of each other one.
run --nproc-per-node=40 bash -c 'ulimit -n 40; exec "$@"' - "$again" 0 leaves
expect "too few descriptors end the job" is "$code" 1
expect "and the limit is named" matches "$out" 'no file descriptors are left: one of the 40 ranks of a host needs a descriptor for each of the others \(ulimit -n is 40\)'
finish
