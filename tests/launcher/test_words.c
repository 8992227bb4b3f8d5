/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - the launcher's pure parts: argv rewriting, sets of ranks,
 * counting GPUs.  ctrun's files are no library: they are included. */
#include "tests/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/foreground.c"
#include "launcher/nproc.c"
#include "launcher/spawn.c"

static void gpus_are_device_files_narrowed_by_cuda_visible_devices(void **state)
{
    char folder[] = "/tmp/test_words_XXXXXX", path[64];
    const char *files[] = { "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm" };

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(gpu_count(folder, NULL), 0);
    assert_int_equal(gpu_count(folder, "0,1"), 0);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    assert_int_equal(gpu_count(folder, NULL), 2);
    assert_int_equal(gpu_count(folder, ""), 0);
    assert_int_equal(gpu_count(folder, "1"), 1);
    assert_int_equal(gpu_count(folder, "1, 0"), 2);
    assert_int_equal(gpu_count(folder, "0,7,1"), 1);
    assert_int_equal(gpu_count(folder, "-1,0"), 0);
    assert_int_equal(gpu_count(folder, "GPU-1f3,MIG-2"), 2);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_device_files_narrowed_by_cuda_visible_devices),
        cmocka_unit_test(a_worker_leads_its_session_and_obeys_every_signal),
        cmocka_unit_test(a_failed_exec_says_why_and_leaves_no_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
