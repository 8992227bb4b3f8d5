# SPDX-License-Identifier: Apache-2.0
# examples/topology on the fake driver's GPUs: who reaches whom and by what, the times of the ways that
# are known to be slow, the picture, the trace, and bytes that arrive wrong.
. "$CT_SOURCE/tests/e2e/lib.sh"
unset CUDA_VISIBLE_DEVICES FAKE_CUDA_PEERS FAKE_CUDA_PEERS_CORRUPT FAKE_NVML_LINKS FAKE_NVML_VERSION
topology=$CT_BUILD/bin/topology

look() {
    timeout 120 "$topology" --bytes=65536 --floats=5000 "$@" >.out 2>.err </dev/null
    code=$?
    out=$(cat .out)
    err=$(cat .err)
}

# cell TITLE FROM TO: of the table that begins so; its next line has the columns.
cell() {
    awk -v title="$1" -v from="$2" -v to="$3" \
        'index($0, title) == 1 { seen = 1; getline; next } seen && $1 == from { print $(to + 2); exit }' <<<"$out"
}
# at_most LIMIT TITLE: each value of that table, which has some.
at_most() {
    awk -v limit="$1" -v title="$2" \
        'index($0, title) == 1 { seen = 1; getline; next } seen && NF == 0 { exit }
         seen { for (i = 2; i <= NF; i++) if ($i != "-") { n++; bad += !($i > 0 && $i <= limit) } }
         END { exit !(n > 0 && bad == 0) }' <<<"$out"
}

mkdir none && : >none/libcuda.so.1
LD_LIBRARY_PATH=$work/none look
expect "without a driver one sentence, and no error" is "$code $out $err" \
    "0 topology: there is no GPU here: no libcuda.so.1, which comes with its driver "
look --svg
expect "an option that is none" is "$code $out" "2 "

[ -e "$CT_BUILD/tests/libcuda.so.1" ] || { echo "skipped: what needs CUDA"; [ $failed = 0 ] && exit 77; finish; }
export LD_LIBRARY_PATH=$CT_BUILD/tests:$CT_BUILD/tests/nvml
FAKE_CUDA_DEVICES=0 look
expect "a driver without a GPU" is "$code $out $err" "0 topology: there is no GPU here: no CUDA-capable device is detected "

# ---- PCI's tree: 0 and 1 at one switch, 4 at a switch below it, 2 at the processor, 5 at another bridge
# of its socket, 3 at the other socket.
tree=$work/sys/devices
place() { # number, folder, node
    mkdir -p "$tree/$2/0000:0$1:00.0" "$work/sys/bus/pci/devices"
    ln -s "../../../devices/$2/0000:0$1:00.0" "$work/sys/bus/pci/devices/0000:0$1:00.0"
    echo "$3" >"$tree/$2/0000:0$1:00.0/numa_node"
    echo "32.0 GT/s PCIe" >"$tree/$2/0000:0$1:00.0/current_link_speed"
    echo 16 >"$tree/$2/0000:0$1:00.0/current_link_width"
}
switch=pci0000:00/0000:00:01.0/0000:a1:00.0
place 1 $switch/0000:a2:00.0 0
place 2 $switch/0000:a2:01.0 0
place 3 pci0000:00/0000:00:02.0 0
place 4 pci0000:80/0000:80:01.0 1
place 5 $switch/0000:a2:02.0/0000:a3:00.0/0000:a4:00.0 0
place 6 pci0000:40/0000:40:01.0 0
for node in 0 1; do
    mkdir -p "$tree/system/node/node$node" "$tree/system/cpu/cpu$((node * 4))/topology"
    echo "$((node * 4))-$((node * 4 + 3))" >"$tree/system/node/node$node/cpulist"
    echo "$node" >"$tree/system/cpu/cpu$((node * 4))/topology/physical_package_id"
done
FAKE_CUDA_DEVICES=6 look --sys="$work/sys"
expect "six GPUs" is "$code $err $(head -n 1 .out)" "0  6 GPUs"
between() { for to in 0 1 2 3 4 5; do cell "What lies" "$1" $to; done | tr '\n' ' '; }
expect "what lies between 0 and the others" is "$(between 0)" "X PIX PHB SYS PXB NODE "
expect "and the other way round" is "$(between 4)" "PXB PXB PHB SYS X NODE "
expect "their links, nodes and sockets" matches "$out" '3  Fake GPU +0000:04:00\.0 +32\.0 GT/s x16 +1 +1'
expect "in words" has "$out" "SYS: the link between the processor sockets"
expect "and why" has "$out" "GPU 3: direct, by PCIe, through the link between the processor sockets."

# ---- NVLinks: two between 0 and 1; 2 and 3 at switches with 17 and 12.
FAKE_NVML_LINKS=0-1:2,2-s:17,3-s:12 FAKE_CUDA_DEVICES=4 look --sys="$work/sys"
expect "NVLinks from one to the other" is "$(cell 'What lies' 0 1) $(cell 'What lies' 1 0)" "NV2 NV2"
expect "as many as both have at switches" is "$(cell 'What lies' 2 3) $(cell 'What lies' 3 2)" "NV12 NV12"
expect "each number in the legend" is "$(grep -c '^ *NV[0-9]*: ' .out)" 2
expect "PCIe otherwise" is "$(cell 'What lies' 0 2)" PHB
expect "their generation" has "$out" "GPU 1: direct, by 2 NVLinks 4.0, past PCIe"
FAKE_NVML_LINKS=0-s:17,1-s:17 FAKE_NVML_VERSION=7 FAKE_CUDA_DEVICES=2 look --sys="$work/sys"
expect "by switches" has "$out" "NV17: 17 NVLinks 5.0 by NVSwitch"
expect "two GPUs" has "$out" "There is only 1 other, so streams share it."

# ---- Who reaches whom, and what the others pay: the fake's way through the host has 1 GB/s at most.
FAKE_CUDA_PEERS=0-1,1-2,0-3 FAKE_CUDA_DEVICES=4 look --sys="$work/sys" --svg=map.svg --trace=trace.json
expect "it ends well" is "$code $err" "0 "
expect "peer access" is "$(for to in 0 1 2 3; do cell 'Peer access of' 0 $to; done | tr '\n' ' ')" "- DA0 none DA0 "
expect "is not measured where there is none" is "$(cell 'GB/s one way, peer access on' 0 2)$(cell 'us for 16 bytes, peer access on' 2 3)" "--"
expect "and is where it is" matches "$(cell 'GB/s one way, peer access on' 3 0)" '^[0-9.]+$'
expect "through the host one way" at_most 1 "GB/s one way, peer access off"
expect "both ways" at_most 2 "GB/s both ways, peer access off"
expect "latency" at_most 1e6 "us for 16 bytes, peer access off"
expect "and why" has "$out" "GPU 2: behind a PCIe host bridge (the processor); no peer access,"
slow=$(awk '/^ +1 +2 / { print ($3 <= 1 && $4 <= 1) }' <<<"$out")
expect "the stream to it" is "$slow" 1

if command -v python3 >/dev/null; then
    see() { python3 -c "$1"; }
    expect "the trace has the three streams' copies, none before the one in front of it" see '
import json
t = json.load(open("trace.json"))["traceEvents"]
copies = [e for e in t if e["ph"] == "X"]
assert len(copies) == 30 and all(e["dur"] > 0 and e["args"]["bytes"] == 20000 for e in copies)
for s in range(3):
    mine = [e for e in copies if e["tid"] == s]
    assert [e["name"] for e in mine] == ["tensor %d" % k for k in range(10)]
    assert {e["args"]["to"] for e in mine} == {s + 1}
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in zip(mine, mine[1:]))
names = [e["args"]["name"] for e in t if e["name"] == "thread_name"]
assert names[2] == "stream 2 to GPU 3 (the link between the processor sockets)", names'
    expect "the picture has a cell for each pair in each panel" see '
import xml.etree.ElementTree as tree
svg = tree.parse("map.svg").getroot()
w, h = float(svg.get("width")), float(svg.get("height"))
rects, texts = (list(svg.iter("{http://www.w3.org/2000/svg}" + n)) for n in ("rect", "text"))
assert len(rects) == 1 + 6 * 16, len(rects)
assert all(0 <= float(e.get("x", 0)) and float(e.get("x", 0)) + float(e.get("width")) <= w for e in rects)
assert all(0 <= float(e.get("y", 0)) and float(e.get("y", 0)) + float(e.get("height")) <= h for e in rects)
assert "GB/s both ways, peer access off" in [e.text for e in texts] and "SYS" in [e.text for e in texts]
assert "nan" not in open("map.svg").read()'
fi

# ---- A direct copy with a wrong bit, which no call reports.
FAKE_CUDA_PEERS_CORRUPT=0-2 FAKE_CUDA_DEVICES=3 look --svg=map.svg
expect "wrong bytes are an error" is "$code" 1
expect "between those" is "$(cell 'GB/s one way, peer access on' 0 2) $(cell 'us for 16 bytes, peer access on' 2 0)" "WRONG WRONG"
expect "and the stream to it" matches "$out" $'\n +1 +2 +[0-9.e+]+ +[0-9.e+]+  WRONG\n'
expect "and no others" is "$(grep -o WRONG .out | wc -l)" 7
expect "who looks at the end sees it" has "$err" "bytes arrived that were not sent"
expect "they are red" is "$(grep -c d50000 map.svg)" 6

# ---- One GPU: what there is, and no more.
FAKE_CUDA_DEVICES=1 look --svg=map.svg
expect "one GPU" is "$code $err" "0 "
expect "says so" has "$out" "There is one GPU, so what can be measured are copies within its memory:"
expect "in few lines" test "$(wc -l <.out)" -le 25
expect "and draws it" is "$(grep -c '<rect' map.svg)" 3
look --svg=/dev/full
expect "a full disk" is "$code $err" "1 topology: /dev/full: No space left on device"
finish
