# SPDX-License-Identifier: Apache-2.0
# sshd.sh - hosts (hosts.sh) with a real sshd on each, that lets in the user of this test by a key made for it.
#   sshds N       hosts h0 ... h(N-1); fails where there is no sshd, or no right to make hosts
#                 (SHLVL=1: bash then leaves out the tester's ~/.bashrc, its time and its words)
#   need_sshds N  the same for a test, which is skipped without them; with what ctrun --hosts needs
#   ${sshd_pids[I]}  the sshd of host I, for its limits
#   $ssh          the command that reaches them: ssh with the configuration for it
. "$CT_SOURCE/tests/e2e/hosts.sh"
sshd_pids=()

sshds() {
    local dir=$work/ssh i sshd
    sshd=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) && command -v ssh ssh-keygen >/dev/null || return
    [ "$(id -u)" = 0 ] && hosts "$1" || return
    chmod 755 "$work"
    mkdir -p "$dir" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$dir/host" && ssh-keygen -q -t ed25519 -N '' -f "$dir/user" || return
    cp "$dir/user.pub" "$dir/keys"
    chmod 600 "$dir/keys"
    cat >"$dir/sshd_config" <<EOF
Port 22
HostKey $dir/host
PidFile none
AuthorizedKeysFile $dir/keys
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
MaxStartups 200
LogLevel ERROR
SetEnv SHLVL=1
EOF
    cat >"$dir/config" <<EOF
Host *
    IdentityFile $dir/user
    IdentitiesOnly yes
    UserKnownHostsFile $dir/known
    StrictHostKeyChecking yes
EOF
    for ((i = 0; i < $1; i++)); do echo "h$i,10.77.0.$((i + 1)) $(cut -d' ' -f1,2 "$dir/host.pub")"; done >"$dir/known"
    for ((i = 0; i < $1; i++)); do
        setpriv --pdeathsig KILL ${on[$i]} "$sshd" -D -f "$dir/sshd_config" -E "$dir/log" </dev/null >/dev/null 2>&1 &
        sshd_pids[i]=$!
        disown
    done
    ssh="ssh -F $dir/config"
    for ((i = 0; i < $1; i++)); do within 20 ${on[$i]} $ssh h$i true 2>/dev/null || return; done
}

need_sshds() {
    unset "${!SLURM_@}"
    trap 'no_hosts; cd /; rm -rf "$work"' EXIT
    sshds "$1" || { echo "skipped: no sshd, or no right to make hosts of namespaces"; exit 77; }
    export CT_SSH=$ssh OMP_NUM_THREADS=1 TMPDIR=/tmp
}
