# SPDX-License-Identifier: Apache-2.0
# A program that ends with 0 but left calls or its group unfinished gets a line on stderr.  Any other program does not.
. "$CT_SOURCE/tests/e2e/lib.sh"

# ends WAY NAME CODE LINES: the lines of 2 ranks that end in this way.
ends() {
    run --nproc-per-node=2 --failure-report=short "$CT_BUILD/tests/e2e_unfinished" "$1"
    expect "$2" is "$code $(grep '^rank' <<<"$err" | sort)" "$3 $4"
}
ends group "no destroy: one rank says it" 0 "rank 0: the program ended without ct_destroy_process_group()"
waits="asynchronous call (all_reduce #2) that was never waited for"
ends work "a work without a wait" 0 "rank 0: the program ended with 1 $waits
rank 1: the program ended with 1 $waits"
ends works "two of them" 0 "rank 0: the program ended with 2 asynchronous calls that were never waited for
rank 1: the program ended with 2 asynchronous calls that were never waited for"
ends both "neither wait nor destroy" 0 "rank 0: the program ended with 1 $waits and without ct_destroy_process_group()
rank 1: the program ended with 1 $waits"
ends message "a message" 0 "rank 1: the program ended with 1 asynchronous call (irecv) that was never waited for"
ends "" "all is done" 0 ""
ends handler "a handler of exit() destroys it" 0 ""
# LeakSanitizer waits for ever in a child if another thread of the parent was in malloc() at the fork.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 ends child "a child of fork() leaves nothing" 0 ""
ends code "another exit code than 0" 3 ""
ends signal "a signal" 137 ""
ends failed "a group that has failed" 0 ""
export CT_LOG=error
ends both "CT_LOG=error switches it off" 0 ""
unset CT_LOG
err=$("$CT_BUILD/tests/e2e_unfinished" group 2>&1)
expect "a rank alone" is "$? $err" "0 rank 0: the program ended without ct_destroy_process_group()"
finish
