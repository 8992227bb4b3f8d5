# SPDX-License-Identifier: Apache-2.0
# sshd.sh - hosts (hosts.sh) with a real sshd on each, that lets in the user of this test by a key made for it.
#   sshds N       hosts h0 ... h(N-1); fails where there is no sshd, or no right to make hosts
#   $ssh          the command that reaches them: ssh with the configuration for it
#   no_sshds      they are gone
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
        sshd_pids+=($!)
    done
    ssh="ssh -F $dir/config"
    for ((i = 0; i < $1; i++)); do within 20 ${on[$i]} $ssh h$i true 2>/dev/null || return; done
}

# A session whose client's network is gone would wait for it, so whatever is left in the hosts' networks is ended.
no_sshds() {
    local i networks=
    for ((i = 0; i < ${#on[@]}; i++)); do networks+=" $(${on[$i]} readlink /proc/self/ns/net) "; done
    find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/net' -printf '%p %l\n' 2>/dev/null | while read -r path network; do
        [[ $networks != *" $network "* ]] || echo "$path" | cut -d/ -f3
    done >"$work/.inside"
    kill -KILL $(cat "$work/.inside") 2>/dev/null
    [ ${#sshd_pids[@]} -eq 0 ] || kill -KILL "${sshd_pids[@]}" 2>/dev/null
    wait "${sshd_pids[@]}" 2>/dev/null
    sshd_pids=()
    no_hosts
}
