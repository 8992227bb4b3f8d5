# SPDX-License-Identifier: Apache-2.0
# The pictures in docs/figures are those of today's programs: drawn again from a run, they are the same
# byte for byte. Of a training only what does not depend on the processor's arithmetic is compared.
. "$CT_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export CT_BUILD OMP_NUM_THREADS=1
kept=$CT_SOURCE/docs/figures
draw() { timeout 120 python3 "$CT_SOURCE/scripts/figures" --out="$work" "$@" >said 2>&1; }

expect "the patterns are drawn" draw patterns
expect "  eight of them" is "$(ls patterns | tr '\n' ' ')" "all_gather.svg all_reduce.svg all_to_all.svg broadcast.svg gather.svg reduce.svg reduce_scatter.svg scatter.svg "
for picture in patterns/*.svg; do
    expect "  $picture is the kept one (scripts/figures patterns draws it)" cmp "$picture" "$kept/$picture"
done
expect "the steps of rings are drawn from a trace" draw steps
for picture in ring-broadcast-steps.svg ring-all_reduce-steps.svg; do
    expect "  $picture is the kept one (scripts/figures steps draws it)" cmp "$picture" "$kept/$picture"
done
expect "the times of rings are drawn from the kept rows" draw ring
expect "  as in the kept one (scripts/figures ring draws it)" cmp ring-time.svg "$kept/ring-time.svg"
printf 'size,us\n8,1\n' >ring-hosts.csv
expect "  other rows are refused" is "$(draw ring .; echo $?) $(tail -n 1 said)" "1 figures: ./ring-hosts.csv: these are not ring_bench's rows"
CT_LINK=tcp run --nproc-per-node=3 "$CT_BUILD/bin/ring_bench" 1
expect "ring_bench gets the data there" is "$code $(cut -d, -f1 <<<"$out" | sort | uniq -c | tr -s ' \n' ' ')" "0  5 all_reduce 5 broadcast 11 chain 5 message 1 what 1 word "
run --nproc-per-node=1 "$CT_BUILD/bin/ring_bench" 1
expect "  one rank is no ring" has "$code $err" "2 usage: ctrun --nproc-per-node=N ring_bench [ROUNDS], N from 2 on"
if [ -z "$CT_SANITIZE" ]; then
    expect "a training is drawn" draw training
    marks() { grep -oE '<(circle|rect) class="r[012][ld]"' "$1" | sort | uniq -c; }
    expect "  the same on 1, 2 and 4 ranks" has "$(cat training.svg)" "are the same on 1, 2 and 4 ranks, to all 9 decimals"
    expect "  with as many marks as the kept one" is "$(marks training.svg)" "$(marks "$kept/training.svg")"
fi

# The pages that show them.
calls() { awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$CT_SOURCE/docs/guide/patterns.md"; }
while read -r line; do
    expect "the demo has the call: $line" grep -qF "$line" "$CT_SOURCE/examples/demo.c"
done < <(calls)
expect "there are eight calls" is "$(calls | wc -l)" 8
for page in README.md docs/guide/patterns.md docs/guide/ring.md; do
    for picture in $(grep -oE '\([^)]*\.svg\)' "$CT_SOURCE/$page" | tr -d '()'); do
        expect "$page: $picture is there" [ -e "$CT_SOURCE/$(dirname $page)/$picture" ]
    done
done
finish
