# SPDX-License-Identifier: Apache-2.0
# What cmake --install puts down is all that a user needs: programs that run, a library that pkg-config
# and find_package() find, in C and C++, and examples that build.
. "$CT_SOURCE/tests/e2e/lib.sh"

grep -q '^CT_SANITIZE:STRING=.' "$CT_BUILD/CMakeCache.txt" && { echo "skipped: a library of a sanitizer is not for others"; exit 77; }
version=$(sed -n 's/^#define CT_VERSION "\(.*\)"/\1/p' "$CT_SOURCE/include/ct.h")
prefix=$work/prefix

cmake --install "$CT_BUILD" --prefix "$prefix" >installed.log 2>&1
expect "cmake --install succeeds" is "$? $(grep -c '^CMake Error' installed.log)" "0 0"
libdir=$(dirname "$(dirname "$(find "$prefix" -name ct.pc)")")
for file in bin/ctrun bin/ctctl include/ct.h include/ct.hpp include/ct_cuda.h share/ct/libct_mpi.c share/bash-completion/completions/ctctl share/zsh/site-functions/_ctrun \
    share/fish/vendor_completions.d/ctrun.fish share/man/man1/ctrun.1 share/man/man3/ct_all_reduce.3 share/man/man5/ctrun.ini.5 \
    share/man/man7/ctrun-environment.7 share/doc/ctrun/ctrun.spdx.json share/doc/ctrun/examples/hello.c; do
    expect "  it puts down $file" [ -e "$prefix/$file" ]
done
expect "  and libct with its soname" is "$(objdump -p "$libdir/libct.so" | awk '/SONAME/ { print $2 }')" libct.so.0
expect "  and nothing that names the folders of the build" eval '! grep -rIlE "$CT_SOURCE|$CT_BUILD" "$prefix/include" "$prefix/share" "$libdir"'
expect "every function has the symbol version CT_0" is "$(nm -D --defined-only "$libdir/libct.so" | awk '$2 != "A" && $3 !~ /^ct_.*@@CT_0$/')" ""
expect "every function of the headers is there" is "$(grep -ohE '^CT_API .*' "$prefix"/include/*.h | grep -oE 'ct_[a-z0-9_]+\(' | tr -d '(' | sort -u |
    comm -23 - <(nm -D --defined-only "$libdir/libct.so" | sed -n 's/.* \(ct_.*\)@@CT_0$/\1/p' | sort))" ""
CTRUN=$prefix/bin/ctrun
run --version
expect "the installed ctrun says its version" is "${out%%$'\n'*}" "ctrun $version"

# ---- pkg-config, in C and C++ ----

export PKG_CONFIG_PATH=$libdir/pkgconfig
sum="rank 0 of 2: the sum is 3
rank 1 of 2: the sum is 3"
# says WHAT COMMAND...: 2 ranks of the program say what hello.c says.
says() {
    local what=$1
    shift
    run --nproc-per-node=2 "$@"
    expect "$what" is "$(sort <<<"$out")" "$sum"
}
expect "pkg-config knows the version" is "$(pkg-config --modversion ct)" "$version"
cp "$prefix/share/doc/ctrun/examples/hello.c" hello.c
cp hello.c hello.cc
${CC:-cc} -Wall -Wextra -Wpedantic -Werror hello.c $(pkg-config --cflags --libs ct) -Wl,-rpath,"$libdir" -o in-c 2>&1 &&
    says "a C program that is compiled with pkg-config's words runs" ./in-c
${CXX:-c++} -Wall -Wextra -Wpedantic -Wold-style-cast -Wzero-as-null-pointer-constant -Werror hello.cc -Wno-zero-as-null-pointer-constant \
    $(pkg-config --cflags --libs ct) -Wl,-rpath,"$libdir" -o in-cxx 2>&1 &&
    says "so does one in C++, without a warning" ./in-cxx
expect "both were compiled" [ -x in-c -a -x in-cxx ]
if command -v mpicc >/dev/null; then
    expect "backend mpi's plug-in compiles from where it is installed" \
        mpicc -O2 -Wall -Werror -shared -fPIC -I"$prefix/include" "$prefix/share/ct/libct_mpi.c" -o libct-mpi.so
else
    echo "skipped: the plug-in of backend mpi, without an mpicc"
fi

# ---- find_package, in C and C++; a tree that was moved ----

mkdir theirs && cp hello.c hello.cc theirs
cat >theirs/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(theirs C CXX)
find_package(ct 0.2 REQUIRED)
add_executable(in_c hello.c)
target_link_libraries(in_c PRIVATE ct::ct)
add_executable(in_cxx hello.cc)
target_link_libraries(in_cxx PRIVATE ct::ct)
END
mv "$prefix" "$work/moved"
CTRUN=$work/moved/bin/ctrun
cmake -S theirs -B theirs/build -DCMAKE_PREFIX_PATH="$work/moved" >theirs.log 2>&1 && cmake --build theirs/build >>theirs.log 2>&1
expect "find_package(ct) finds it, also in another place" is "$?" 0
says "  and ct::ct is all that a C program needs" theirs/build/in_c
says "  or one in C++" theirs/build/in_cxx
sed -i 's/ct 0.2/ct 99/' theirs/CMakeLists.txt
cmake -S theirs -B theirs/other -DCMAKE_PREFIX_PATH="$work/moved" >theirs.log 2>&1
expect "  another version is refused" has "$(cat theirs.log)" "version: $version"

cmake -S "$work/moved/share/doc/ctrun/examples" -B examples -DCMAKE_PREFIX_PATH="$work/moved" >examples.log 2>&1 &&
    cmake --build examples >>examples.log 2>&1
expect "the examples build from where they are installed" is "$?" 0
says "  and run" examples/hello

# ---- A program to start from

# makes CTCTL COMMAND: `CTCTL new ring` names COMMAND, which builds and runs the program.
makes() {
    local ctctl=$1 command=$2
    rm -rf ring
    out=$($ctctl new ring)
    expect "$ctctl new makes a program" is "$? $out" "0 created ring/ with main.c, CMakeLists.txt and README.md; next:
    $command"
    (eval "$command") >ring.log 2>&1
    expect "  which is built and runs as it says" is "$? $(sed -n '/the sum/,$p' ring.log)" "0 the sum of 1 to 4 is 10"
    ctest --test-dir ring/build >ring.log 2>&1
    expect "  and passes its test" is "$? $(grep -c '1 tests passed\|100% tests passed' ring.log)" "0 1"
}
makes "$CT_BUILD/bin/ctctl" "cd ring && cmake -B build -DCMAKE_PREFIX_PATH=$CT_BUILD && cmake --build build && $CT_BUILD/bin/ctrun --nproc-per-node=4 build/ring"
mkdir "with a blank"
mv "$work/moved" "with a blank"
moved="$PWD/with a blank/moved"
ln -s "$moved/bin/ctctl" ctctl
makes ./ctctl "cd ring && cmake -B build -DCMAKE_PREFIX_PATH='$moved' && cmake --build build && '$moved/bin/ctrun' --nproc-per-node=4 build/ring"
PATH=$moved/bin:$PATH
makes ctctl "cd ring && cmake -B build && cmake --build build && ctrun --nproc-per-node=4 build/ring"
out=$(ctctl new ring 2>&1)
expect "  it writes over nothing" is "$? $out" "1 ctctl: new: ring: File exists"
for name in 'a b' ../x 2d test -x; do
    out=$(ctctl new -- "$name" 2>&1)
    expect "  '$name' is no name" has "$? $out" "2 ctctl: new: '$name' can't be the name of a program"
done

finish
