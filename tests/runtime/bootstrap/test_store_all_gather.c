/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_all_gather.c - how much ranks that wait load the store.  A store without keys, whose
 * waits end at once with a timeout, counts the requests. */
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

enum { RANKS = 64 };

static int waits, questions;

static ct_status is_set(ct_store *store, struct bytes key, struct bytes value)
{
    (void)store;
    (void)key;
    (void)value;
    return CT_OK;
}

static ct_status is_waited_for(ct_store *store, const struct bytes *keys, int count,
                               int64_t deadline)
{
    (void)store;
    (void)keys;
    (void)count;
    (void)deadline;
    waits++;
    return ct_fail(CT_ERR_TIMEOUT, "its time is over");
}

static ct_status is_checked(ct_store *store, const struct bytes *keys, int count, int *present)
{
    (void)store;
    (void)keys;
    (void)count;
    questions++;
    *present = 0;
    return CT_OK;
}

static ct_status are_checked(ct_store *store, const struct bytes *keys, int count, char *present)
{
    (void)store;
    (void)keys;
    questions++;
    for (int i = 0; i < count; i++)
        present[i] = i != RANKS - 1 && i != 2 && i != 3;
    return CT_OK;
}

static const struct store_ops counting = { .kind = "counting",
                                           .set = is_set,
                                           .wait = is_waited_for,
                                           .check = is_checked,
                                           .check_each = are_checked };

/* One of 64 ranks waits for the others, who don't come in time. */
static void waits_as(int rank, const char *log, int waits_due, int probes_due)
{
    struct ct_store store = { .ops = &counting, .timeout_ms = 1000, .maker = forks_maker() };
    char all[RANKS];

    setenv("CT_LOG", log, 1);
    log_setup("rank", LOG_NONE);
    waits = questions = 0;
    EXPECT_ERROR(store_all_gather(&store, "card", rank, RANKS, "x", 1, all, clock_ms() + 60000),
                 CT_ERR_TIMEOUT, "of 64 ranks|rank 2-3, 63");
    EXPECT(waits == waits_due);
    EXPECT(questions == probes_due);
}

static void keeps_the_line(void *arg, const char *line, size_t size)
{
    (void)arg;
    (void)line;
    (void)size;
}

static void who_waits_asks_the_store_once_for_all_ranks(void **state)
{
    (void)state;
    log_divert(keeps_the_line, NULL);
    waits_as(5, "none", 1, 1); /* at the end, for its sentence */
    waits_as(5, "warn", 1, 1);
    waits_as(0, "none", 1, 1);
    waits_as(0, "warn", 2, 2); /* and after 5 s for its warning */
    waits_as(1, "warn", 2, 2);
    log_divert(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_asks_the_store_once_for_all_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
