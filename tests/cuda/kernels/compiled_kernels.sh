#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compiled_kernels.sh FOLDER - what nvcc made of the kernels, by what it left there:
# registers hold all that belongs in them, a block of 512 threads fits a multiprocessor,
# memory is gone through in 16-byte pieces, and each operation rounds as the host's.
# Prints each kernel's registers.
folder=$1 log=$1/kernels.fatbin.log ptx=$1/kernels.fatbin.ptx
if [ ! -e "$folder/kernels.fatbin" ]; then
    echo 'no kernels: built without nvcc'
    exit 77
fi
failed=0
fault() { echo "$*"; failed=1; } >&2

# Lines "name arch stack stores loads registers", from ptxas' three lines about each.
figures() {
    awk '/Compiling entry function/ { gsub("\047", ""); name = $7; arch = $9 }
         /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
         /Used [0-9]+ registers/ { print name, arch, stack, stores, loads, $5 }' "$log"
}
while read -r name arch stack stores loads registers; do
    [ "$stack $stores $loads" = '0 0 0' ] ||
        fault "$name for $arch: $stack bytes of stack, $stores stored and $loads loaded by spills"
    [ "$registers" -le 128 ] || fault "$name for $arch: $registers registers, 128 are the most"
done < <(figures)

# A fused multiply-add rounds once, min and max of the GPU drop NaNs, what is not .rn may be fused
# by ptxas, and the rest is inexact.
unlike='(fma|mad|min|max)\.[a-z.]*f(16|32|64)|(add|sub|mul|div)\.f(16|32|64)|\.(ftz|approx|full)\b'
kernels=$(sed -nE 's/^\.visible \.entry ([a-z0-9_]+)\(.*/\1/p' "$ptx")
[ "$(wc -l <<<"$kernels")" -eq 31 ] || fault "31 kernels were expected, not: $kernels"
for name in $kernels; do
    body=$(sed -n "/^\.visible \.entry $name(/,/^}/p" "$ptx")
    grep -qE 'ld\.global[.:a-zA-Z0-9_]*\.v4' <<<"$body" || fault "$name: no load of 16 bytes"
    grep -qE 'st\.global[.:a-zA-Z0-9_]*\.v4' <<<"$body" || fault "$name: no store of 16 bytes"
    grep -E "$unlike" <<<"$body" && fault "$name: computes unlike the host"
    figures | grep -q "^$name " || fault "$name: not a word of ptxas about it"
done
figures | awk '{ of[$1] = of[$1] " " $2 ":" $6 } END { for (name in of) print name of[name] }' | sort
exit $failed
