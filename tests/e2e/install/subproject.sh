# SPDX-License-Identifier: Apache-2.0
# As another project's folder (add_subdirectory, FetchContent) the tree gives libct alone, and sets
# nothing of that project's.
. "$CT_SOURCE/tests/e2e/lib.sh"

cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(theirs C)
add_executable(hello main.c)
set(CT_CUDA off)
add_subdirectory($CT_SOURCE ctrun)
target_link_libraries(hello PRIVATE ct::ct)
END
echo 'int main(void) { return 0; }' >main.c
out=$(cmake -S . -B build -G "Unix Makefiles" 2>err)
code=$? err=$(cat err)
expect "another project that has our tree as a folder is configured" is "$code" 0
targets=$(cmake --build build --target help)
for target in ct hello; do
    expect "it has $target" has "$targets" "... $target"
done
for target in ctrun ctctl launcher demo ct_bench harness test; do
    expect "and no $target of ours" eval '! grep -qx "... $target" <<<"$targets"'
done
expect "its own program of the name hello is where it was" matches "$(cat build/CMakeFiles/hello.dir/link.txt)" "-o hello "
expect "its build type is its own" has "$(cat build/CMakeCache.txt)" "CMAKE_BUILD_TYPE:STRING=
"

# FetchContent adds the folder in the same way; this one is built, with nothing of a sanitizer's.
[ -z "${CT_SANITIZE:-}" ] || finish
mkdir fetched && cp "$CT_SOURCE/examples/hello.c" fetched/hello.c && cp fetched/hello.c fetched/hello.cc
cat >fetched/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(theirs C CXX)
include(FetchContent)
set(CT_CUDA off)
FetchContent_Declare(ctrun SOURCE_DIR $CT_SOURCE)
FetchContent_MakeAvailable(ctrun)
add_executable(in_c hello.c)
target_link_libraries(in_c PRIVATE ct::ct)
add_executable(in_cxx hello.cc)
target_link_libraries(in_cxx PRIVATE ct::ct)
END
{ cmake -S fetched -B fetched/build && cmake --build fetched/build -j 2; } >fetched.log 2>&1
expect "a project that fetches ours is built" is "$?" 0
for program in in_c in_cxx; do
    run --nproc-per-node=2 fetched/build/$program
    expect "  and its $program runs" is "$(sort <<<"$out")" "rank 0 of 2: the sum is 3
rank 1 of 2: the sum is 3"
done
finish
