/* SPDX-License-Identifier: Apache-2.0 */
/* Agents at one store, in one thread: what each does when another was faster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/c10d/session.h"
#include "tests/harness.h"

#define SECOND 1000000

struct job {
    char path[64];
    ct_store *store;
    struct c10d_session sessions[2];
};

static int rest(void *arg, int ms)
{
    (void)arg;
    usleep((useconds_t)ms * 1000);
    return 0;
}

static void changed(void *arg)
{
    (void)arg;
}

/* Both are in the first round as far as the rules go: one may be, two can. */
static void open_job(struct job *job)
{
    static const char *const names[] = { "one", "two" };

    strcpy(job->path, "/tmp/ct-session-XXXXXX");
    close(mkstemp(job->path));
    assert_int_equal(ct_store_file(job->path, 5000, &job->store), CT_OK);
    for (int i = 0; i < 2; i++) {
        struct c10d_session *s = &job->sessions[i];

        c10d_session_init(s, job->store, "here", "job");
        s->me = (struct c10d_node){ names[i], 1, i };
        s->rest = rest;
        s->changed = changed;
        s->join_timeout = s->close_timeout = s->heartbeat_timeout = 5 * SECOND;
        s->settings = (struct c10d_settings){ .min = 1,
                                              .max = 2,
                                              .last_call_timeout = 0,
                                              .keep_alive_interval = 200000,
                                              .keep_alive_max_attempt = 100 };
    }
    assert_int_equal(c10d_next_round(&job->sessions[0]), C10D_DONE);
}

static void close_job(struct job *job)
{
    for (int i = 0; i < 2; i++)
        c10d_session_free(&job->sessions[i]);
    ct_store_close(job->store);
    unlink(job->path);
}

static int64_t heartbeat(struct c10d_session *s, const struct c10d_node *node)
{
    const struct c10d_member *member = c10d_find(&s->state, node);

    return member ? member->heartbeat : -1;
}

static void a_heartbeat_that_lost_is_written_in_the_same_pulse(void **state)
{
    struct job job;
    struct c10d_session *one = &job.sessions[0], *two = &job.sessions[1];
    int64_t before;

    (void)state;
    open_job(&job);
    before = heartbeat(one, &one->me);
    usleep(250000); /* it is due */
    assert_int_equal(c10d_look(two), C10D_DONE);
    assert_int_equal(c10d_close_job(two), C10D_DONE); /* what `one` knows is old now */
    assert_int_equal(c10d_pulse(one), C10D_DONE);
    assert_int_equal(c10d_look(two), C10D_DONE);
    assert_true(heartbeat(two, &one->me) > before);
    close_job(&job);
}

static void who_came_too_late_is_told_how_many_were_there(void **state)
{
    struct job job;
    struct c10d_session *two = &job.sessions[1];

    (void)state;
    open_job(&job);
    assert_int_equal(c10d_leave_job(&job.sessions[0]), C10D_DONE);
    two->settings.min = 2;
    two->join_timeout = SECOND;
    assert_int_equal(c10d_next_round(two), C10D_LATE);
    assert_non_null(strstr(two->why, "RendezvousTimeoutError: 1 of at least 2 nodes"));
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heartbeat_that_lost_is_written_in_the_same_pulse),
        cmocka_unit_test(who_came_too_late_is_told_how_many_were_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
