#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - what Spin says of the models, one row for each configuration.
#
#   tests/models/run.sh [sound|mistakes]     stream_handover.pml; 10 to 12 minutes, up to 3 GB
#   tests/models/run.sh memory               weak_memory.pml; 20 seconds
#
# Without a word it runs all of these.
# `whole`: Spin has visited every state.  `part`: a bit for each state, so some are taken for others
# (BITSTATE), or the time was over.  A mistake is a protocol that is wrong on purpose: Spin must
# find an error in it.  77: Spin is not installed.
here=$(cd "$(dirname "$0")" && pwd)
which=${1:-all}
bad=0

if ! command -v spin >/dev/null 2>&1 || ! command -v gcc >/dev/null 2>&1; then
    echo "skipped: this takes spin and gcc (apt-get install spin)"
    exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
model=stream_handover.pml
cp "$here"/*.pml "$dir" && cd "$dir" || exit 1

# run SECONDS STORE DEFINES...: fills states, depth, took, errors, extent
run()
{
    limit=$1 store=$2
    shift 2
    case $store in
    *BITSTATE*) size=-w33 ;;
    *) size=-w26 ;;
    esac
    spin -a "$@" "$model" >spin.out 2>&1 \
        && gcc -O2 -w -DSAFETY -DMEMLIM=5000 $store -o pan pan.c 2>>spin.out || {
        cat spin.out
        exit 1
    }
    begun=$(date +%s)
    # pan ends by itself at SIGINT, and says what it has
    timeout -s INT "$limit" ./pan -m100000 $size >out 2>&1
    took=$(($(date +%s) - begun))
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' out)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
    extent=whole
    [ "$store" = -DCOLLAPSE ] || extent=part
    grep -q 'Search not completed\|search depth too small\|out of memory' out && extent=part
    [ -n "$errors" ] || { tail -5 out; errors=? extent=part; }
}

row()
{
    printf '%-44s %-5s %11s %6s %5s  %s\n' "$@"
}

sound()
{
    name=$1
    shift
    run "$@"
    result="no error"
    [ "$errors" = 0 ] || { result="ERROR: $(sed -n 's/^pan:1: //p' out)" bad=1; }
    row "$name" "$extent" "$states" "$depth" "${took}s" "$result"
}

mistake()
{
    name=$1
    shift
    run "$@"
    result="found: $(sed -n 's/^pan:1: //p' out)"
    [ "$errors" != 0 ] && [ "$errors" != '?' ] || { result="NOT FOUND" bad=1; }
    row "$name" - "$states" "$depth" "${took}s" "$result"
}

row "ranks, leaders, calls" extent states depth time result
if [ "$which" = all ] || [ "$which" = sound ]; then
    W=-DCOLLAPSE B=-DBITSTATE
    sound "2 2 2 nothing fails" 60 $W -DN=2 -DL=2 -DC=2
    sound "2 2 1 failure" 60 $W -DN=2 -DL=2 -DC=1 -DFAIL
    sound "2 2 2 failure" 200 $W -DN=2 -DL=2 -DC=2 -DFAIL
    sound "2 2 2 death" 60 $W -DN=2 -DL=2 -DC=2 -DKILL
    sound "2 1 3 nothing fails" 60 $W -DN=2 -DL=1 -DC=3
    sound "2 1 3 death" 100 $W -DN=2 -DL=1 -DC=3 -DKILL
    sound "2 1 3 failure" 50 $B -DN=2 -DL=1 -DC=3 -DFAIL
    sound "3 1 1 failure" 50 $B -DN=3 -DL=1 -DC=1 -DFAIL
    sound "3 1 1 death (of rank 0 or 1)" 50 $B -DN=3 -DL=1 -DC=1 -DKILL -DLAST_VICTIM=1
    sound "3 1 2 death (of rank 0 or 1)" 50 $B -DN=3 -DL=1 -DC=2 -DKILL -DLAST_VICTIM=1
    sound "2 2 2 driver lock" 60 $W -DN=2 -DL=2 -DC=2 -DLOCKS
    sound "3 1 1 driver lock" 60 $W -DN=3 -DL=1 -DC=1 -DLOCKS
    sound "2 1 1 driver lock, death" 60 $W -DN=2 -DL=1 -DC=1 -DLOCKS -DKILL
    sound "2 2 1 driver lock, death" 60 $W -DN=2 -DL=2 -DC=1 -DLOCKS -DKILL
fi
if [ "$which" = all ] || [ "$which" = mistakes ]; then
    W=-DCOLLAPSE
    mistake "own calls, then the leaders, then OVER" 60 $W -DN=2 -DL=2 -DC=2 -DKILL -DPHASES
    mistake "that for one call after the other" 60 $W -DN=2 -DL=2 -DC=2 -DFAIL -DPHASES -DONE_BY_ONE
    mistake "each word is raised once" 60 $W -DN=2 -DL=1 -DC=2 -DFAIL -DONCE
    mistake "OVER is raised while a kernel runs" 60 $W -DN=2 -DL=1 -DC=1 -DFAIL -DAWAITS_NO_LEADER
    mistake "OVER serves as WORKED" 60 $W -DN=2 -DL=2 -DC=2 -DFAIL -DTRUSTS_OVER
    mistake "called off after the release" 60 $W -DN=2 -DL=1 -DC=1 -DFAIL -DCALLS_OFF_LATE
    # Three ranks: with two, each word has one reader.  Backwards it is found sooner.
    mistake "each leader calls off its own only" 60 "-DBITSTATE -DREVERSE -DT_REVERSE" \
        -DN=3 -DL=2 -DC=1 -DFAIL -DCALLS_OWN_OFF -DRAISES_AT_ONCE
    mistake "a host looks first, then says" 60 $W -DN=2 -DL=1 -DC=2 -DFAIL -DLOOKS_FIRST
    mistake "a call taken back is still counted" 60 $W -DN=2 -DL=1 -DC=1 -DFAIL -DKEEPS_COUNT
    mistake "a failing host leaves half a call" 60 $W -DN=2 -DL=2 -DC=1 -DFAIL -DLEAVES_HALF
    mistake "the group breaks behind half a call" 60 $W -DN=2 -DL=1 -DC=1 -DFAIL -DBREAKS_LATE
    mistake "half a call ends without its waits" 60 $W -DN=2 -DL=2 -DC=1 -DFAIL -DPASSES_AT_ONCE
    mistake "PASSED is taken for a good call" 60 $W -DN=2 -DL=1 -DC=1 -DFAIL -DTRUSTS_PASSED
    mistake "READY behind the leaders' part; lock" 60 $W -DN=2 -DL=1 -DC=1 -DLOCKS -DREADY_LAST
    mistake "watched when all is enqueued; lock" 60 $W -DN=2 -DL=1 -DC=1 -DLOCKS -DKILL -DWATCHES_LAST
fi
if [ "$which" = all ] || [ "$which" = memory ]; then
    W=-DCOLLAPSE model=weak_memory.pml
    sound "sleep" 30 $W -DSLEEP
    mistake "no fence between arrival and look" 30 $W -DSLEEP -DPUBLISHED=0
    mistake "no fence between announcement and test" 30 $W -DSLEEP -DANNOUNCED=0
    mistake "the bell is read after the test" 30 $W -DSLEEP -DBELL_SEEN=0
    sound "note" 30 $W -DNOTE
    mistake "the note's words are not released" 30 $W -DNOTE -DRELEASED=0
    mistake "the note's words are not acquired" 30 $W -DNOTE -DACQUIRED=0
fi
exit $bad
