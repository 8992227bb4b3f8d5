/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h - n ranks, as processes or as threads, that run one body.
 *
 * The only file that includes cmocka, in the order it needs.  A body says what
 * it finds with EXPECT...(): the first failure of each rank is kept in shared
 * memory and reported by the parent, because cmocka's own assertions would
 * longjmp inside a forked copy of the runner or across threads.  Outside a body
 * EXPECT...() fails the test at once.
 *
 * Everything runs in forked children that leave with _exit(), under one
 * deadline; a rank that hangs is named with the last line it passed.  Each run
 * also checks that no descriptor stays open. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef stop                 /* a macro since cmocka 2 */
#ifdef assert_uint_in_range /* since cmocka 2, which deprecates the old name */
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#include "include/ct.h"

enum {
    MAX_RANKS = 40,
    GROUP_TIMEOUT_MS = 20000, /* of the groups made here: a hang becomes a sentence */
#ifdef __SANITIZE_THREAD__
    DEADLINE_MS = 240000, /* as below; all takes ten times as long */
#else
    DEADLINE_MS = 60000, /* of one run; CT_TEST_DEADLINE_MS overrides */
#endif
};

typedef void rank_body(ct_group *group, void *arg);

/* p children, each with a group by ct_create_group() over a file store. */
void run_processes(int p, rank_body *body, void *arg);
/* One child with p threads, groups by ct_create_group() over one hash store. */
void run_threads(int p, rank_body *body, void *arg);
/* p children with RANK, WORLD_SIZE and the rest set, MASTER_PORT free; the body
 * initialises by itself, its group is CT_WORLD. */
void run_programs(int p, rank_body *body, void *arg);

/* CT_LINK for the runs that follow; NULL: the default, shared memory. */
void use_link(const char *link);
/* Processes and threads, over shared memory and over TCP. */
void run_ranks(int p, rank_body *body, void *arg);
/* run_ranks() thinned out: every world size 1 to 9 as processes on both links,
 * a few as threads. */
void run_sizes(rank_body *body, void *arg);

/* What a rank of run_programs() is, before it has a group. */
int program_rank(void);
int program_size(void);
/* Of all of them, in whichever process of theirs; NULL: it can't be, which counts as a failure. */
ct_group *program_group(void);

/* This rank ends here and that is right (in a process: _exit). */
_Noreturn void rank_leaves(void);

/* A scratch directory of the run, shared by its ranks. */
const char *scratch(void);
int open_descriptors(void);
/* A cmocka test that fails when it leaves a descriptor open. */
int count_descriptors(void **state);
int none_is_left_open(void **state);
#define LEAVES_NONE_OPEN(test) \
    cmocka_unit_test_setup_teardown(test, count_descriptors, none_is_left_open)
int open_threads(void);
double now_ms(void);
void nap(int ms);
int free_port(void); /* ours until the next one; to listen there takes SO_REUSEADDR */

/* Each is 1 when it holds.  EXPECT_ERROR's words are separated by '|'; each must
 * be in ct_last_error(), whatever the case. */
#define EXPECT(condition) expect_true(!!(condition), #condition, __FILE__, __LINE__)
#define EXPECT_OK(call) expect_status((call), CT_OK, "", #call, __FILE__, __LINE__)
#define EXPECT_STATUS(call, wanted) expect_status((call), (wanted), "", #call, __FILE__, __LINE__)
#define EXPECT_ERROR(call, wanted, words) \
    expect_status((call), (wanted), (words), #call, __FILE__, __LINE__)
int expect_true(int holds, const char *what, const char *file, int line);
int expect_status(ct_status got, ct_status wanted, const char *words, const char *what,
                  const char *file, int line);
/* Fails with a message of the body's own. */
void expect_fails(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
