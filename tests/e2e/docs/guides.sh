# SPDX-License-Identifier: Apache-2.0
# The programs in docs/guide are compiled as they stand, and print what stands below them.
#   ```c run=N [options=WORDS]    a program, run on N ranks; the next block is its output
#   ```c compile=nccl             is compiled only, where there is an nccl.h
. "$CT_SOURCE/tests/e2e/lib.sh"
export OMP_NUM_THREADS=1
cc="${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -I$CT_SOURCE/include"
link="-L$CT_BUILD/lib -lct -Wl,-rpath,$CT_BUILD/lib"
[ -z "${CT_SANITIZE:-}" ] || cc+=" -fsanitize=$CT_SANITIZE"
programs=0

for page in "$CT_SOURCE"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    awk -v name="$name" '
        /^```c (run|compile)=/ { file = name "." ++n ".c"; sub(/^```c /, ""); print > (name "." n ".words"); next }
        /^```$/ && file { expects = file == name "." n ".c"; close(file); file = ""; next }
        /^```/ && expects { expects = 0; file = name "." n ".out"; printf "" > file; next }
        file { print > file }' "$page"
    for source in "$name".*.c; do
        [ -e "$source" ] || continue
        base=${source%.c} words=$(cat "${source%.c}.words") options=
        if [ "$words" = compile=nccl ]; then
            nccl=$(sed -n 's/^NCCL_INCLUDE_DIR:PATH=//p' "$CT_BUILD/CMakeCache.txt")
            [ -e "$nccl/nccl.h" ] && [ -e "$nccl/cuda_runtime.h" ] || { echo "skipped: the program of $name, which needs nccl.h"; continue; }
            expect "$base.c compiles" $cc -isystem "$nccl" -c "$source" -o "$base.o"
            continue
        fi
        [[ $words == *options=* ]] && options=${words#*options=}
        count=${words#run=} count=${count%% *}
        expect "$base.c compiles" $cc "$source" $link -o "$base"
        run --nproc-per-node="$count" $options "./$base"
        expect "  and prints what stands below it" is "$(sort <<<"$out")" "$(sort "$base.out")"
        programs=$((programs + 1))
    done
done
expect "there are programs" [ $programs -ge 6 ]
finish
