/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn_words.c - the launcher's pure parts: sets of ranks, starting a program.
 * ctrun's files are no library: they are included. */
#include "tests/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/workers/spawn.c"

static pid_t start(const char *path, char *const *argv, int *execed)
{
    static char *envp[] = { NULL };
    static sigset_t ignored;
    const struct spawn_args args = { .path = path,
                                     .argv = argv,
                                     .envp = envp,
                                     .in = -1,
                                     .out = -1,
                                     .err = -1,
                                     .ignored = &ignored };

    sigemptyset(&ignored);
    sigaddset(&ignored, SIGINT);
    return spawn(&args, execed);
}

static void a_worker_leads_its_session_and_obeys_every_signal(void **state)
{
    char *argv[] = { "sleep", "100", NULL };
    int execed, status;
    sigset_t all, old;
    pid_t pid;

    (void)state;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    signal(SIGINT, SIG_IGN);
    pid = start("/bin/sleep", argv, &execed);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    assert_true(pid > 0);
    assert_int_equal(getsid(pid), pid);
    assert_int_equal(getpgid(pid), pid);
    kill(-pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

static void a_failed_exec_says_why_and_leaves_no_child(void **state)
{
    char *argv[] = { "x", NULL };
    int execed;

    (void)state;
    assert_int_equal(start("/no/such/file", argv, &execed), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(execed, 1);
    assert_int_equal(start("/etc/passwd", argv, &execed), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_process_runs_where_it_is_put(void **state)
{
    struct cpus before, one = { { 0 } }, after;

    (void)state;
    assert_int_equal(cpus_of_process(0, &before), 0);
    cpus_add(&one, cpus_next(&before, 0));
    assert_int_equal(enter_cpus(&one), 0);
    assert_int_equal(cpus_of_process(0, &after), 0);
    assert_memory_equal(&after, &one, sizeof one);
    assert_int_equal(sched_getcpu(), cpus_next(&before, 0));
    assert_int_equal(enter_cpus(&before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_leads_its_session_and_obeys_every_signal),
        cmocka_unit_test(a_process_runs_where_it_is_put),
        cmocka_unit_test(a_failed_exec_says_why_and_leaves_no_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
