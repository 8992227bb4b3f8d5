/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p_alone.c - messages that go on while their ranks do other things. */
#include "tests/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 100000, MUCH = 24 << 20 }; /* elements; bytes: many writes of a socket */

static const char *file_of(char path[128])
{
    snprintf(path, 128, "%s/here", scratch());
    return path;
}

static void leave_file(void)
{
    char path[128];

    close(open(file_of(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* Without a call of the library's until then. */
static void await_file(void)
{
    const double start = now_ms();
    char path[128];

    file_of(path);
    while (access(path, F_OK) != 0 && now_ms() - start < GROUP_TIMEOUT_MS / 2)
        nap(2);
    EXPECT(access(path, F_OK) == 0);
}

/* The receiver leaves a file when it has all of it; the sender makes no call until then. */
static void sent_by_nobody(ct_group *group, void *arg)
{
    int32_t *values = calloc(COUNT, sizeof *values);
    ct_work *work;

    (void)arg;
    if (ct_rank(group) == 0) {
        values[COUNT - 1] = 7;
        EXPECT_OK(ct_isend(group, values, COUNT, CT_I32, 1, 0, &work));
        await_file();
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_recv(group, values, COUNT, CT_I32, 0, 0, NULL));
        EXPECT(values[COUNT - 1] == 7);
        leave_file();
    }
    free(values);
}

static void a_send_goes_on_while_its_sender_does_other_things(void **state)
{
    (void)state;
    run_ranks(2, sent_by_nobody, NULL);
}

/* Rank 0 makes no call until rank 1 has all of its message, and has got rid of its own: over
 * sockets it writes piece by piece while that comes. */
static void both_by_nobody(ct_group *group, void *arg)
{
    const int me = ct_rank(group), other = 1 - me;
    unsigned char *const out = malloc(MUCH), *const in = calloc(1, MUCH);
    ct_work *sending, *receiving;

    (void)arg;
    if (!out || !in)
        abort();
    memset(out, 10 + me, MUCH);
    EXPECT_OK(ct_irecv(group, in, MUCH, CT_U8, other, 0, &receiving));
    EXPECT_OK(ct_isend(group, out, MUCH, CT_U8, other, 0, &sending));
    if (me == 0)
        await_file();
    EXPECT_OK(ct_wait(receiving));
    EXPECT_OK(ct_wait(sending));
    if (me == 1)
        leave_file();
    for (size_t i = 0; i < MUCH; i++)
        if (!EXPECT(in[i] == 10 + other))
            break;
    free(out);
    free(in);
}

static void so_do_large_ones_that_cross(void **state)
{
    (void)state;
    run_ranks(2, both_by_nobody, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_goes_on_while_its_sender_does_other_things),
        cmocka_unit_test(so_do_large_ones_that_cross),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
