# SPDX-License-Identifier: Apache-2.0
# What ctrun --report says of what lies between GPUs.  They are device files in a /dev of our own, PCI
# devices in files, NVLinks of tests/fake/nvml: in a mount namespace, so the machine may have GPUs or none.
. "$CT_SOURCE/tests/e2e/lib.sh"
. "$CT_SOURCE/tests/e2e/nodes.sh"
unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES FAKE_NVML_LINKS FAKE_NVML_VERSION
export OMP_NUM_THREADS=1
trap 'kill_agents; cd /; rm -rf "$work"' EXIT
[ -d /sys/bus/pci/devices ] && unshare -m true 2>/dev/null || { echo "skipped: no right to make a machine of mounts"; exit 77; }

# ---- The machine: 0 and 1 at one switch, 2 at the processor, 3 at the other socket; its node 63 has no
# CPU, whatever this machine has.
mkdir -p bus nothing none && : >none/libnvidia-ml.so.1
place() { # number, folder, node
    local here=$work/devices/$2/0000:0$1:00.0
    mkdir -p "$here"
    ln -s "$here" "bus/0000:0$1:00.0"
    echo "$3" >"$here/numa_node"
    echo 0x10de >"$here/vendor"
    echo 0x030200 >"$here/class"
}
place 1 pci0000:00/0000:00:01.0/0000:a1:00.0/0000:a2:00.0 0
place 2 pci0000:00/0000:00:01.0/0000:a1:00.0/0000:a2:01.0 0
place 3 pci0000:00/0000:00:02.0 0
place 4 pci0000:80/0000:80:01.0 63

cat >enter <<'END'
set -e
mkdir -p dev
mount -t tmpfs dev dev
for file in null zero full random urandom tty; do
    : >dev/$file
    mount --bind /dev/$file dev/$file
done
mkdir dev/shm dev/pts
mount --bind /dev/shm dev/shm
mount --bind /dev/pts dev/pts
ln -s /proc/self/fd dev/fd
for gpu in 0 1 2 3; do : >dev/nvidia$gpu; done
mount --bind dev /dev
mount --bind bus /sys/bus/pci/devices
[ ! -d /proc/driver ] || mount --bind nothing /proc/driver
exec "$@"
END
on_machine() { timeout 120 unshare -m bash enter "$@"; }
if ! on_machine true 2>.err; then
    echo "skipped: $(head -n 1 .err)"
    exit 77
fi
export LD_LIBRARY_PATH=$CT_BUILD/tests/nvml
run() { # as lib.sh's
    on_machine "$CTRUN" "$@" >.out 2>.err </dev/null
    code=$?
    out=$(cat .out)
    err=$(cat .err)
}
below() { sed -n '/^Between the GPUs/,$p' .err | sed 's/ *$//'; } # the rows
host=$(hostname)

# ---- The matrix ----
export FAKE_NVML_LINKS=0-1:4
run --nproc-per-node=4 --report true
expect "four workers have a GPU each" is "$code $(awk '/^[0-3] / { print $1 $5 }' .err | sort | tr '\n' ' ')" "0 00 11 22 33 "
expect "what lies between these" is "$(below)" "Between the GPUs of $host:
       GPU0   GPU1   GPU2   GPU3   RANK
GPU0   X      NV4    PHB    SYS    0
GPU1   NV4    X      PHB    SYS    1
GPU2   PHB    PHB    X      SYS    2
GPU3   SYS    SYS    SYS    X      3
  NV4: 4 NVLinks 4.0
  PHB: a PCIe host bridge (the processor)
  SYS: the link between the processor sockets"
FAKE_NVML_LINKS= run --nproc-per-node=2 --report true
expect "only the words that occur" is "$(below | tail -n 2)" "GPU1   PIX    X      1
  PIX: one PCIe switch"
FAKE_NVML_LINKS=2-s:17,3-s:17 FAKE_NVML_VERSION=7 run --nproc-per-node=2 --gpus=3,2 --report true
expect "of the GPUs that were chosen" is "$(below | tail -n 3)" "GPU2   X      NV17   1
GPU3   NV17   X      0
  NV17: 17 NVLinks 5.0 by NVSwitch"
CUDA_VISIBLE_DEVICES=1,2 run --nproc-per-node=2 --virtual-local-rank --report true
expect "or that the environment leaves" is "$(below | head -n 3)" "Between the GPUs of $host:
       GPU1   GPU2   RANK
GPU1   X      PHB    0"
run --nproc-per-node=1 --report true
expect "nothing between one" is "$code $(below)" "0 "
LD_LIBRARY_PATH=$work/none run --nproc-per-node=2 --report true
expect "without NVIDIA's library it says that NVLinks are not shown" is "$code $(below | tail -n 2)" "0   PIX: one PCIe switch
  NVLinks are not shown: libnvidia-ml.so.1 is missing or does not work"

run --nproc-per-node=2 --report=json true
expect "JSON, a line below the rows'" is "$code $(tail -n 1 .err)" '0 {"host":"'"$host"'","gpus":[{"number":0,"pci":"0000:01:00.0","ranks":[0],"nvlink":"4.0","nvswitch":false},{"number":1,"pci":"0000:02:00.0","ranks":[1],"nvlink":"4.0","nvswitch":false}],"left_out":0,"nvlinks_known":true,"between":[["X","NV4"],["NV4","X"]]}'
if command -v python3 >/dev/null; then
    expect "each line is an object" python3 -c '
import json
rows = [json.loads(line) for line in open(".err")]
assert len(rows) == 3 and [r["pci"] for r in rows[:2]] == [g["pci"] for g in rows[2]["gpus"]]'
fi
run --nproc-per-node=2 --max-restarts=1 --report sh -c 'exit $((1 - TORCHELASTIC_RESTART_COUNT))'
expect "each start says it, as it says the rows" is "$(grep -c '^GPU1   NV4' .err)" 2

# ---- What it costs others: the library is opened for a report of two GPUs, and for nothing else.
opens() { on_machine env LD_DEBUG=files "$CTRUN" "$@" 2>&1 </dev/null | grep -c 'libnvidia-ml\.so\.1 ' >/dev/null; }
opens_not() { ! opens "$@"; }
expect "a report opens NVIDIA's library" opens --nproc-per-node=2 --report true
expect "a run without one does not" opens_not --nproc-per-node=2 --gpus=0,1 true
expect "nor does a report of one GPU" opens_not --nproc-per-node=1 --report true
expect "nor one that is not made" opens_not --nproc-per-node=2 --report --dry-run true

# ---- Two nodes: each says its own.
new_job
where=(unshare -m bash enter)
CUDA_VISIBLE_DEVICES=0,1 host one --nnodes=2 --nproc-per-node=2 --local-addr=localhost --report true
CUDA_VISIBLE_DEVICES=2,3 agent other --nnodes=2 --nproc-per-node=2 --local-addr=localhost --report true
where=()
for name in one other; do
    ended $name
    expect "$name ends well" is "$code" 0
    sed -n '/^Between/,$p' $name.err | sed -n 2p | tr -s ' ' >>columns
done
expect "each node says what lies between its own GPUs" is "$(sort columns)" " GPU0 GPU1 RANK
 GPU2 GPU3 RANK"
expect "with the ranks that these have" is "$(sed -n 's/^GPU[0-3] .* \([0-3]\)$/\1/p' one.err other.err | sort | tr '\n' ' ')" "0 1 2 3 "
finish
