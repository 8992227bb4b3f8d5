#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flood.sh - starts flood again and again for so many seconds, and looks at a job that stands still.
#
#   tests/soak/flood.sh BUILD [SECONDS] [RANKS]
#
# Over sockets, unless CT_LINK says otherwise.  A job that takes longer than CT_FLOOD_STALL seconds
# (30) is looked at as a user would: ctctl status, and the stack of each rank, twice; then it is
# ended, and the soak goes on.  Exits with 1 if a job stood still or failed.
build=$1 seconds=${2:-600} ranks=${3:-2} stall=${CT_FLOOD_STALL:-30}
export CT_LINK=${CT_LINK:-tcp} LD_LIBRARY_PATH=$build/lib
end=$(($(date +%s) + seconds)) runs=0 bad=0 slowest=0
id=flood-$$

look() { # of a job that stands still
    for turn in 1 2; do
        "$build/bin/ctctl" status -v "$id"
        for ((rank = 0; rank < ranks; rank++)); do
            "$build/bin/ctctl" stack "$id" $rank
        done
        sleep 1
    done
    ss -tnpi 2>/dev/null | grep -A1 flood
}

while (($(date +%s) < end)); do
    started=$(date +%s%N)
    "$build/bin/ctrun" --rdzv-id="$id" --nproc-per-node="$ranks" "$build/bin/flood" 2000 &
    job=$!
    for ((tenths = 0; tenths < stall * 10; tenths++)); do
        kill -0 $job 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 $job 2>/dev/null; then
        echo "$(date +%T) run $runs stands still after $stall s"
        look
        kill $job
        bad=$((bad + 1))
    fi
    wait $job; status=$?
    ((status == 0)) || { echo "$(date +%T) run $runs ended with $status"; bad=$((bad + 1)); }
    took=$((($(date +%s%N) - started) / 1000000))
    ((took > slowest)) && slowest=$took
    runs=$((runs + 1))
    ((runs % 200 == 0)) && echo "$(date +%T) $runs runs, slowest $slowest ms, $bad bad"
done
echo "$(date +%T) $runs runs of 2 x 2000 rounds on $ranks ranks over $CT_LINK, slowest $slowest ms, $bad bad"
((bad == 0))
