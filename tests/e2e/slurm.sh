# SPDX-License-Identifier: Apache-2.0
# slurm.sh - a real Slurm on hosts h0 (its controller, and where users log in), h1 and h2 (nodes).
#   slurm [LINE...]    starts it, with these lines in slurm.conf; fails where Slurm is not installed or may not run
#   no_names           makes hosts' names no longer resolve on any host; Slurm itself uses addresses
#   no_hosts           it is gone
# Debian's slurm-wlm and munge are enough.  Every file and socket of it is in $work, and its ports are those of the
# hosts' own networks, so several run side by side.  Signals go to tasks, not to all that these started, as with cgroups.
. "$CT_SOURCE/tests/e2e/hosts.sh"

slurm() {
    local s=$work/slurm i
    command -v slurmctld slurmd srun munged >/dev/null && [ "$(id -u)" = 0 ] && hosts 3 || return
    mkdir -p "$s"/{ctld,h1,h2}
    chmod 755 "$work" "$s"
    (umask 077; head -c 64 /dev/urandom >"$s/munge.key")
    cat >"$s/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=h0(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$s/munge.socket
StateSaveLocation=$s/ctld
SlurmdSpoolDir=$s/%n
SlurmctldPidFile=$s/ctld.pid
SlurmdPidFile=$s/%n.pid
SlurmctldLogFile=$s/ctld.log
SlurmdLogFile=$s/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
KillWait=20
SlurmdParameters=config_overrides
$(printf '%s\n' "$@")
NodeName=h[1-2] NodeAddr=10.77.0.[2-3] CPUs=4 State=UNKNOWN
PartitionName=p Nodes=h[1-2] Default=YES OverSubscribe=FORCE State=UP
EOF
    export SLURM_CONF=$s/slurm.conf
    setpriv --pdeathsig KILL ${on[0]} munged --force --foreground --key-file="$s/munge.key" --socket="$s/munge.socket" --pid-file="$s/munge.pid" \
        --log-file="$s/munge.log" --seed-file="$s/munge.seed" >/dev/null 2>&1 &
    within 20 test -S "$s/munge.socket" || return
    setpriv --pdeathsig KILL ${on[0]} slurmctld -D >/dev/null 2>&1 &
    for i in 1 2; do
        setpriv --pdeathsig KILL ${on[$i]} slurmd -D -N h$i >/dev/null 2>&1 &
    done
    within 60 nodes_idle
}

no_names() {
    local host
    printf '127.0.0.1 localhost\n' >"$work/no_names"
    for host in "${on[@]}"; do $host sh -c "umount /etc/hosts && mount --bind $work/no_names /etc/hosts" || return; done
}

nodes_idle() { [ "$(${on[0]} sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }
