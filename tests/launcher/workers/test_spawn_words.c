/* SPDX-License-Identifier: Apache-2.0 */
/* test_spawn_words.c - the launcher's pure parts: sets of ranks, starting a program.
 * ctrun's files are no library: they are included. */
#include "tests/harness.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/workers/spawn.c"

static struct starter starter;

/* in: the starter of a common session, or NULL. */
static pid_t start_in(struct starter *in, const char *path, char *const *argv, int out, int *execed)
{
    static char *envp[] = { NULL };
    static sigset_t ignored;
    const struct spawn_args args = { .path = path,
                                     .argv = argv,
                                     .envp = envp,
                                     .in = -1,
                                     .out = out,
                                     .err = -1,
                                     .ignored = &ignored,
                                     .starter = in };

    sigemptyset(&ignored);
    sigaddset(&ignored, SIGINT);
    return spawn(&args, execed);
}

static pid_t start(const char *path, char *const *argv, int *execed)
{
    return start_in(NULL, path, argv, -1, execed);
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

/* ---- A session for several -------------------------------------------------------- */

static sigset_t unblocked;

static int begin(void **state)
{
    sigset_t all;

    (void)state;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &unblocked);
    starter_begin(&starter);
    return 0;
}

static int end(void **state)
{
    (void)state;
    starter_end(&starter);
    sigprocmask(SIG_SETMASK, &unblocked, NULL);
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1; /* no child is left */
}

static pid_t start_sleeper(void)
{
    char *argv[] = { "sleep", "100", NULL };
    int execed;
    const pid_t pid = start_in(&starter, "/bin/sleep", argv, -1, &execed);

    assert_true(pid > 0);
    return pid;
}

static pid_t parent_of(pid_t pid)
{
    char path[32], text[200] = "";
    int parent = -1;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file && fgets(text, sizeof text, file))
        sscanf(text, "%*d %*s %*c %d", &parent);
    if (file)
        fclose(file);
    return parent;
}

static void kill_and_reap(pid_t pid)
{
    kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void workers_share_a_session_and_each_leads_a_group(void **state)
{
    pid_t pids[3];

    (void)state;
    assert_true(starter.pid > 0);
    for (int i = 0; i < 3; i++)
        pids[i] = start_sleeper();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(getsid(pids[i]), starter.pid);
        assert_int_equal(getpgid(pids[i]), pids[i]);
        assert_int_equal(parent_of(pids[i]), getpid());
    }
    assert_int_not_equal(getsid(0), starter.pid);
    starter_end(&starter);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kill(pids[i], 0), 0); /* they outlive the starter */
        kill_and_reap(pids[i]);
    }
}

static void a_pipe_that_is_younger_than_the_session_is_inherited(void **state)
{
    char *argv[] = { "echo", "word", NULL }, text[8] = "";
    int ends[2], execed;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = start_in(&starter, "/bin/echo", argv, ends[1], &execed);
    assert_true(pid > 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 5);
    assert_string_equal(text, "word\n");
    assert_int_equal(read(ends[0], text, sizeof text - 1), 0); /* no other process holds it */
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_failed_exec_does_not_end_the_session(void **state)
{
    char *argv[] = { "x", NULL };
    int execed;

    (void)state;
    assert_int_equal(start_in(&starter, "/no/such/file", argv, -1, &execed), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(execed, 1);
    kill_and_reap(start_sleeper());
}

static void a_starter_that_was_killed_is_noticed(void **state)
{
    char *argv[] = { "x", NULL };
    int execed;

    (void)state;
    kill(starter.pid, SIGKILL);
    assert_int_equal(start_in(&starter, "/bin/true", argv, -1, &execed), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(execed, 0);
}

/* From now on clone() with one of the flags, and without any of `unless`, fails with EINVAL.
 * vfork() is another call, or has CLONE_VFORK. */
static void refuse_clone(unsigned flags, unsigned unless)
{
    enum { CALL = offsetof(struct seccomp_data, nr), FLAGS = offsetof(struct seccomp_data, args) };
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, CALL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, unless, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof lines / sizeof *lines, lines };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        _exit(77);
}

/* Runs in a child, since a process cannot remove its filter.  Returns the child's exit code. */
static int start_where_it_is_refused(unsigned flags, unsigned unless)
{
    const pid_t pid = fork();
    char *argv[] = { "sleep", "100", NULL };
    int status, execed;

    if (pid == 0) {
        refuse_clone(flags, unless);
        starter_begin(&starter);
        for (int i = 0; i < 2; i++) {
            const pid_t worker = start_in(&starter, "/bin/sleep", argv, -1, &execed);

            if (worker <= 0 || getsid(worker) != worker)
                _exit(1);
            kill(worker, SIGKILL);
            if (waitpid(worker, NULL, 0) != worker)
                _exit(2);
        }
        starter_end(&starter);
        _exit(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 3);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void where_the_kernel_refuses_each_leads_its_own(void **state)
{
    const int refused = start_where_it_is_refused(CLONE_VM, CLONE_VFORK);

    (void)state;
    if (refused == 77)
        skip(); /* no filter can be set here */
    assert_int_equal(refused, 0);
    assert_int_equal(start_where_it_is_refused(CLONE_PARENT, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_leads_its_session_and_obeys_every_signal),
        cmocka_unit_test_setup_teardown(workers_share_a_session_and_each_leads_a_group, begin, end),
        cmocka_unit_test_setup_teardown(a_pipe_that_is_younger_than_the_session_is_inherited, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_failed_exec_does_not_end_the_session, begin, end),
        cmocka_unit_test_setup_teardown(a_starter_that_was_killed_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(where_the_kernel_refuses_each_leads_its_own, begin, end),
        cmocka_unit_test(a_failed_exec_says_why_and_leaves_no_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
