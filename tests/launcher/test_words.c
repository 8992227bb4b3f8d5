/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c - the launcher's pure parts: argv rewriting, lines for a terminal,
 * sets of ranks, counting GPUs.  ctrun's files are no library: they are included. */
#include "tests/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/foreground.c"
#include "launcher/lines.c"
#include "launcher/nproc.c"
#include "launcher/spawn.c"

/* What a terminal gets when the stream brings these pieces. */
static const char *shown(const char *const *pieces, int end)
{
    static char all[1024];
    struct lines lines = { .prefix = "[1] " };
    struct text out = { 0 };
    int on_bar = 0;

    for (; *pieces; pieces++)
        lines_feed(&lines, *pieces, strlen(*pieces), &on_bar, &out);
    if (end)
        lines_end(&lines, &on_bar, &out);
    snprintf(all, sizeof all, "%.*s", (int)out.used, out.data ? out.data : "");
    free(out.data);
    free(lines.held.data);
    return all;
}
#define SHOWN(end, ...) shown((const char *const[]){ __VA_ARGS__, NULL }, end)

static void a_line_is_shown_whole_and_once(void **state)
{
    (void)state;
    assert_string_equal(SHOWN(0, "ab", "c\nde"), "[1] abc\n");
    assert_string_equal(SHOWN(1, "ab", "c\nde"), "[1] abc\n[1] de\n");
    assert_string_equal(SHOWN(0, "\n\n"), "[1] \n[1] \n");
    assert_string_equal(SHOWN(0, "a\r\nb\r\n"), "[1] a\n[1] b\n");
}

static void a_progress_bar_is_shown_over_itself(void **state)
{
    (void)state;
    assert_string_equal(SHOWN(0, "\r10%"), "\r\033[K[1] 10%");
    assert_string_equal(SHOWN(0, "\r10%", "\r20%\n"), "\r\033[K[1] 10%\r\033[K[1] 20%\n");
    assert_string_equal(SHOWN(0, "10%\r"), "\r\033[K[1] 10%");
}

static void a_line_of_another_rank_wipes_the_bar(void **state)
{
    struct lines bar = { .prefix = "[1] " }, other = { .prefix = "[2] " };
    struct text out = { 0 };
    int on_bar = 0;

    (void)state;
    lines_feed(&bar, "\r10%", 4, &on_bar, &out);
    assert_int_equal(on_bar, 1);
    out.used = 0;
    lines_feed(&other, "x\n", 2, &on_bar, &out);
    text_add(&out, "", 1);
    assert_string_equal(out.data, "\r\033[K[2] x\n");
    assert_int_equal(on_bar, 0);
    free(out.data);
    free(bar.held.data);
    free(other.held.data);
}

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
    const struct spawn_args args = {
        .path = path, .argv = argv, .envp = envp, .out = -1, .err = -1, .ignored = &ignored
    };

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
        cmocka_unit_test(a_line_is_shown_whole_and_once),
        cmocka_unit_test(a_progress_bar_is_shown_over_itself),
        cmocka_unit_test(a_line_of_another_rank_wipes_the_bar),
        cmocka_unit_test(gpus_are_device_files_narrowed_by_cuda_visible_devices),
        cmocka_unit_test(a_worker_leads_its_session_and_obeys_every_signal),
        cmocka_unit_test(a_failed_exec_says_why_and_leaves_no_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
