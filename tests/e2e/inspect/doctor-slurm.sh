# SPDX-License-Identifier: Apache-2.0
# ctctl doctor in a Slurm allocation: the nodes are the job's, and srun is the way to them.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/slurm.sh"
unset "${!SLURM_@}"
trap 'no_hosts; cd /; rm -rf "$work"' EXIT
slurm || { echo "skipped: a Slurm needs slurm-wlm, munge and root"; exit 77; }
export TMPDIR=/tmp
pairs() { grep -o '"from": "[^"]*", "to": "[^"]*", "level": "[^"]*"' <<<"$1" | tr -d '",:' | sed 's/level \(ok\|warn\)/measured/'; }
both='from h1 to h2 measured
from h2 to h1 measured'

out=$(timeout 60 ${on[0]} salloc --quiet -N2 "$CT_BUILD/bin/ctctl" doctor --json </dev/null 2>.err)
code=$? err=$(grep -v 'cpu binding' .err)
expect "salloc: both nodes, from where the user is" is "$code $(pairs "$out")$err" "0 $both"
out=$(timeout 60 ${on[0]} srun -N2 "$CT_BUILD/bin/ctctl" doctor --json </dev/null 2>.err)
code=$? err=$(grep -v 'cpu binding' .err)
expect "srun: once for all tasks" is "$code $(pairs "$out")$err" "0 $both"
printf '#!/bin/sh\n#SBATCH -N2\nexec %s doctor --json 2>/dev/null\n' "$CT_BUILD/bin/ctctl" >batch.sh
${on[0]} sbatch --quiet -W -o batch.out batch.sh
code=$? out=$(cat batch.out)
expect "a batch script: both nodes, one of which is its own" is "$code $(pairs "$out")" "0 $both"
finish
