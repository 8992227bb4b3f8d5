/* SPDX-License-Identifier: Apache-2.0 */
/* harness.c - forks, waits, reports.
 *
 * The children hold the write end of a pipe and nothing is ever written to it:
 * end of file means that all of them are gone, so one poll() is the deadline
 * for all.  What each rank found lies in a shared page. */
#include "tests/harness.h"

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct report {
    atomic_int failed;
    atomic_int finished;
    const char *volatile file; /* the last check it came to */
    volatile int line;
    char text[700];
};

static struct report *reports;          /* [MAX_RANKS], shared with the children */
static _Thread_local struct report *me; /* NULL outside a body */
static char directory[64];
static int runs; /* a number for each run's keys */

/* Leak check of the sanitizer, where there is one: children skip its atexit. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* TSan's, which asks for them by this name.  A process that ends with a GPU's threads in it would
 * stand still for a second each time, to see what they still do; here they do nothing. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "atexit_sleep_ms=20";
}

void expect_fails(const char *file, int line, const char *format, ...)
{
    char text[600];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!me) {
        print_error("%s\n", text);
        _fail(file, line);
    } else if (!atomic_exchange(&me->failed, 1)) {
        snprintf(me->text, sizeof me->text, "%s:%d: %s", file, line, text);
    }
}

static void passes(const char *file, int line)
{
    if (me) {
        me->file = file;
        me->line = line;
    }
}

int expect_true(int holds, const char *what, const char *file, int line)
{
    passes(file, line);
    if (!holds)
        expect_fails(file, line, "not so: %s", what);
    return holds;
}

/* Whether the sentence holds each of the words between the bars. */
static int has_words(const char *sentence, const char *words)
{
    char word[64];

    while (*words) {
        const size_t length = strcspn(words, "|");

        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (!strcasestr(sentence, word))
            return 0;
        words += length + (words[length] == '|');
    }
    return 1;
}

int expect_status(ct_status got, ct_status wanted, const char *words, const char *what,
                  const char *file, int line)
{
    passes(file, line);
    if (got != wanted)
        expect_fails(file, line, "%s: \"%s\" instead of \"%s\"; %s", what, ct_strerror(got),
                     ct_strerror(wanted), got == CT_OK ? "" : ct_last_error());
    else if (!has_words(ct_last_error(), words))
        expect_fails(file, line, "%s: \"%s\" does not name %s", what, ct_last_error(), words);
    else
        return 1;
    return 0;
}

double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void nap(int ms)
{
    const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
}

/* Memory of tests/fake/'s driver, of which libct keeps some of its own as long as the process. */
static int is_gpu_memory(int dir, const char *name)
{
    char target[64];
    const ssize_t length = readlinkat(dir, name, target, sizeof target - 1);

    if (length < 0)
        return 0;
    target[length] = 0;
    return strstr(target, "memfd:fake-cuda") != NULL;
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int count = 0;

    if (!dir)
        return -1;
    while ((entry = readdir(dir)))
        count += !is_gpu_memory(dirfd(dir), entry->d_name);
    closedir(dir);
    return count;
}

int open_descriptors(void)
{
    return entries("/proc/self/fd");
}

static int open_before;

int count_descriptors(void **state)
{
    (void)state;
    open_before = open_descriptors();
    return 0;
}

int none_is_left_open(void **state)
{
    (void)state;
    return open_descriptors() == open_before ? 0 : -1;
}

int open_threads(void)
{
    return entries("/proc/self/task");
}

/* Held until the next is asked for: bound, so the kernel gives it to nobody, and not listening, so
 * that who asks for SO_REUSEADDR can.  Given back, it could become any connection's own. */
int free_port(void)
{
    static int held = -1;
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    const int on = 1;

    if (held >= 0)
        close(held);
    held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (held < 0 || setsockopt(held, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0
        || bind(held, (struct sockaddr *)&address, sizeof address) < 0
        || getsockname(held, (struct sockaddr *)&address, &length) < 0)
        return 0;
    return ntohs(address.sin_port);
}

const char *scratch(void)
{
    return directory;
}

int program_rank(void)
{
    return atoi(getenv("RANK"));
}

int program_size(void)
{
    return atoi(getenv("WORLD_SIZE"));
}

ct_group *program_group(void)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_store *store = NULL;
    char path[200];

    options.timeout_ms = GROUP_TIMEOUT_MS;
    snprintf(path, sizeof path, "%s/programs", scratch());
    if (!EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store)))
        return NULL;
    EXPECT_OK(ct_create_group(store, program_rank(), program_size(), &options, &group));
    EXPECT_OK(ct_store_close(store));
    return group;
}

void rank_leaves(void)
{
    atomic_store(&me->finished, 1);
    _exit(0);
}

/* ---- One run ------------------------------------------------------------- */

struct run {
    int p;
    rank_body *body;
    void *arg;
    ct_store *store; /* threads: theirs */
    int rank;        /* of this thread */
};

/* A machine's own driver, named by CT_TEST_DRIVER, keeps some of its own. */
static void check_descriptors(int before, const char *file, int line)
{
    const int after = open_descriptors();

    if (after != before && !getenv("CT_TEST_DRIVER"))
        expect_fails(file, line, "%d descriptors before the group, %d after", before, after);
}

static void in_group(const struct run *run, ct_store *store, int rank)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_status status;

    options.timeout_ms = GROUP_TIMEOUT_MS;
    status = ct_create_group(store, rank, run->p, &options, &group);
    if (run->store == NULL) /* a process's own: the group must not need it any more */
        EXPECT_OK(ct_store_close(store));
    if (!EXPECT_OK(status))
        return;
    EXPECT(ct_rank(group) == rank && ct_size(group) == run->p);
    run->body(group, run->arg);
    EXPECT_OK(ct_destroy_process_group(group));
}

static void as_process(const struct run *run, int rank)
{
    const int descriptors = open_descriptors();
    char path[100];
    ct_store *store;

    snprintf(path, sizeof path, "%s/store.%d", directory, runs);
    if (EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store)))
        in_group(run, store, rank);
    check_descriptors(descriptors, __FILE__, __LINE__);
}

static void *thread_main(void *arg)
{
    const struct run *run = arg;

    me = &reports[run->rank];
    in_group(run, run->store, run->rank);
    atomic_store(&me->finished, 1);
    return NULL;
}

static void as_threads(const struct run *run, int unused)
{
    const int descriptors = open_descriptors();
    struct run each[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    ct_store *store;

    (void)unused;
    if (!EXPECT_OK(ct_store_hash(&store)))
        return;
    for (int r = 0; r < run->p; r++) {
        each[r] = *run;
        each[r].store = store;
        each[r].rank = r;
        if (pthread_create(&threads[r], NULL, thread_main, &each[r]) != 0)
            abort();
    }
    for (int r = 0; r < run->p; r++)
        pthread_join(threads[r], NULL);
    EXPECT_OK(ct_store_close(store));
    check_descriptors(descriptors, __FILE__, __LINE__);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        expect_fails(__FILE__, __LINE__, "memory leaked");
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void as_program(const struct run *run, int rank)
{
    const int descriptors = open_descriptors();

    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    run->body(CT_WORLD, run->arg);
    check_descriptors(descriptors, __FILE__, __LINE__);
}

/* ---- The parent ----------------------------------------------------------- */

static void prepare(void)
{
    if (!reports) {
        reports = mmap(NULL, MAX_RANKS * sizeof *reports, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (reports == MAP_FAILED)
            fail_msg("no memory for the reports");
    }
    memset(reports, 0, MAX_RANKS * sizeof *reports);
    strcpy(directory, "/tmp/ct-test-XXXXXX");
    if (!mkdtemp(directory))
        fail_msg("no scratch directory in /tmp");
    runs++;
    fflush(NULL);
}

/* Waits for end of file, then for each child; says who hung, died or failed. */
static void judge(const pid_t *pids, int children, const struct run *run, int end)
{
    const char *override = getenv("CT_TEST_DEADLINE_MS");
    struct pollfd waits = { .fd = end, .events = POLLIN };
    const int in_time = poll(&waits, 1, override ? atoi(override) : DEADLINE_MS) > 0;
    int bad = 0;

    close(end);
    for (int r = 0; r < run->p; r++) {
        const struct report *report = &reports[r];

        if (!report->finished && !in_time)
            print_error("rank %d of %d hangs behind %s:%d\n", r, run->p,
                        report->file ? report->file : "(start)", report->line);
        if (report->failed)
            print_error("rank %d of %d: %s\n", r, run->p, report->text);
        bad |= !report->finished || report->failed;
    }
    for (int c = 0; c < children; c++) {
        int status;

        if (!in_time)
            kill(pids[c], SIGKILL);
        if (waitpid(pids[c], &status, 0) != pids[c] || status != 0) {
            print_error("child %d of %d ends with status 0x%x\n", c, children, (unsigned)status);
            bad = 1;
        }
    }
    {
        char command[100];

        snprintf(command, sizeof command, "rm -rf %s", directory);
        if (system(command) != 0)
            bad = 1;
    }
    if (bad)
        fail_msg("a run of %d ranks failed (CT_LINK=%s)", run->p,
                 getenv("CT_LINK") ? getenv("CT_LINK") : "");
}

static void run_children(int children, const struct run *run,
                         void (*start)(const struct run *run, int rank))
{
    pid_t pids[MAX_RANKS];
    int ends[2];

    if (pipe(ends) < 0)
        fail_msg("no pipe");
    for (int c = 0; c < children; c++) {
        pids[c] = fork();
        if (pids[c] == 0) {
            close(ends[0]);
            me = &reports[c];
            start(run, c);
            atomic_store(&me->finished, 1);
            fflush(NULL);
            _exit(me->failed ? 1 : 0);
        }
        assert_true(pids[c] > 0);
    }
    close(ends[1]);
    judge(pids, children, run, ends[0]);
}

void run_processes(int p, rank_body *body, void *arg)
{
    const struct run run = { .p = p, .body = body, .arg = arg };

    prepare();
    run_children(p, &run, as_process);
}

void run_threads(int p, rank_body *body, void *arg)
{
    const struct run run = { .p = p, .body = body, .arg = arg };

    prepare();
    run_children(1, &run, as_threads);
}

void run_programs(int p, rank_body *body, void *arg)
{
    const struct run run = { .p = p, .body = body, .arg = arg };

    prepare();
    set_number("WORLD_SIZE", p);
    set_number("LOCAL_WORLD_SIZE", p);
    set_number("MASTER_PORT", free_port());
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    run_children(p, &run, as_program);
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("MASTER_PORT");
    unsetenv("MASTER_ADDR");
}

void use_link(const char *link)
{
    if (link)
        setenv("CT_LINK", link, 1);
    else
        unsetenv("CT_LINK");
}

void run_ranks(int p, rank_body *body, void *arg)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        use_link(tcp ? "tcp" : NULL);
        run_processes(p, body, arg);
        run_threads(p, body, arg);
    }
    use_link(NULL);
}

void run_sizes(rank_body *body, void *arg)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        use_link(tcp ? "tcp" : NULL);
        for (int p = 1; p <= 9; p++) {
            run_processes(p, body, arg);
            if (p == 1 || p == 4 || p == 7)
                run_threads(p, body, arg);
        }
    }
    use_link(NULL);
}
