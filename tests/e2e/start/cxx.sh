# SPDX-License-Identifier: Apache-2.0
# ct.hpp, the header for C++: the same program with exceptions and without.
. "$CT_SOURCE/tests/e2e/lib.sh"
for program in exceptions no-exceptions; do
    run --nproc-per-node=4 "$CT_BUILD/tests/e2e_$program"
    expect "a C++ program with -f$program" is "$code $out" "0 right"
done
finish
