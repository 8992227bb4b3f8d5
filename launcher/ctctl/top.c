/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - implements ctctl top, which shows once a second what each rank of a job does.
 *
 * The page of a job shows where a rank is at a moment.  ctctl top reads the page several times a
 * second, to find how much of the time a rank is in calls, and how many calls it makes.  On a
 * terminal each picture replaces the previous picture, until the user presses q or Ctrl-C.  If
 * standard output is not a terminal, ctctl top prints one picture and ends. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/inspect/verdict_text.h"
#include "runtime/util/clock.h"

#define LOOK_MS 100
#define PICTURE_MS 1000

/* What a rank did since the last picture. */
struct top_row {
    int looks, inside;
    /* number of collectives that the rank has begun, now and at the last picture */
    uint64_t calls, calls_before;
    double cpu, cpu_before;
    int is_new; /* 1 if the rank was not in the previous picture */
    pid_t pid;
};

struct top {
    const struct ctctl_options *options;
    struct top_row *row; /* [ranks] */
    int ranks;
    pid_t launcher; /* the ctrun of the job */
    int restarts;
    int64_t last_ms;
    int is_terminal;
    struct termios before;
};

static volatile sig_atomic_t is_over;

static void top_end(int signal)
{
    (void)signal;
    is_over = 1;
}

/* ---- Looks ------------------------------------------------------------------------- */

static int rows_for(struct top *top, const struct job_snapshot *job)
{
    if (top->ranks == job->ranks && top->launcher == job->launcher
        && top->restarts == job->restarts)
        return 0;
    free(top->row);
    top->row = calloc((size_t)job->ranks + 1, sizeof *top->row);
    top->ranks = top->row ? job->ranks : 0;
    top->launcher = job->launcher;
    top->restarts = job->restarts;
    for (int i = 0; i < top->ranks; i++)
        top->row[i].is_new = 1;
    return top->row ? 0 : -1;
}

static void top_look(struct top *top, const struct job_snapshot *job)
{
    for (int i = 0; i < top->ranks; i++) {
        struct top_row *row = &top->row[i];

        if (row->pid != job->rank[i].process.pid)
            *row = (struct top_row){ .pid = job->rank[i].process.pid, .is_new = 1 };
        row->looks++;
        row->inside += rank_is_in_call(&job->rank[i]);
        row->cpu = job->rank[i].process.cpu_s;
        row->calls = 0;
        for (int group = 0; group < CONTROL_GROUPS; group++)
            row->calls += job->rank[i].group[group].begun;
    }
}

static void next_picture(struct top *top)
{
    for (int i = 0; i < top->ranks; i++) {
        top->row[i].looks = top->row[i].inside = top->row[i].is_new = 0;
        top->row[i].calls_before = top->row[i].calls;
        top->row[i].cpu_before = top->row[i].cpu;
    }
}

/* ---- Pictures ------------------------------------------------------------------------- */

static void print_row(const struct job_snapshot *job, int i, const struct top_row *row,
                      double seconds, int width)
{
    const struct rank_snapshot *rank = &job->rank[i];
    const int room = width - 44;
    char now[RANK_TEXT];
    const double of_time = row->is_new || seconds <= 0 ? 0 : 1 / seconds;
    /* The number of calls may be smaller than before, since the calls of a destroyed group no
     * longer count. */
    const uint64_t calls = row->calls > row->calls_before ? row->calls - row->calls_before : 0;

    printf("%6d %8d %c %5.0f %9.0f %8d  ", rank->rank, (int)rank->process.pid,
           rank->process.state ? rank->process.state : '-',
           100 * (row->cpu - row->cpu_before) * of_time, (double)calls * of_time,
           row->looks ? 100 * row->inside / row->looks : 0);
    describe_rank(job, rank, now, sizeof now);
    printf("%.*s\n", room > 0 ? room : 0, now);
}

static void print_picture(struct top *top, const struct job_snapshot *job, double seconds)
{
    struct winsize window = { .ws_row = 0 };
    char ranks[48], since[32], text[VERDICT_TEXT];
    struct verdict_list list;
    int lines, width;

    if (top->is_terminal) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        printf("\033[H\033[J");
    }
    width = window.ws_col ? window.ws_col - 1 : 200;
    verdict_list_make(&list, job, (uint64_t)(top->options->after_s * 1e9));
    job_ranks(job, ranks, sizeof ranks);
    job_since(job, since, sizeof since);
    snprintf(text, sizeof text, "job %s (%s, %s, for %s, %d restarts): %s", job->run_id,
             job->program, ranks, since, job->restarts, list.state);
    printf("%.*s\n", width, text);
    lines = (window.ws_row ? window.ws_row : 1 << 20) - 5;
    for (int i = 0; i < list.count && i < 3; i++, lines--) {
        verdict_text(&list.verdict[i], job, text, sizeof text);
        printf("%.*s\n", width, text);
    }
    if (list.count > 3)
        printf("%d more like these: ctctl status\n", list.count - 3);
    verdict_list_free(&list);
    printf("\n%.*s\n", width, "  RANK      PID S  %CPU   CALLS/s  IN CALLS  NOW");
    for (int i = 0; i < top->ranks && i < lines; i++)
        print_row(job, i, &top->row[i], seconds, width);
    if (top->ranks > lines)
        printf("and %d more ranks\n", top->ranks - lines);
    fflush(stdout);
}

/* ---- The loop ---------------------------------------------------------------------------- */

/* Finds the job to show.  If the user selected no job or several jobs, prints an error message and
 * returns NULL.  If the job that was shown before is
 * gone, returns NULL without a message. */
static struct job_snapshot *find_job(const struct top *top, struct job_list *jobs)
{
    struct job_snapshot *found = NULL;

    for (int i = 0; i < jobs->count; i++) {
        if (!job_is_selected(&jobs->job[i], top->options)
            || (top->launcher && jobs->job[i].launcher != top->launcher))
            continue;
        if (found) {
            fprintf(stderr,
                    "ctctl: several jobs run here: name one (ctctl ps), as in ctctl top %d\n",
                    (int)found->launcher);
            return NULL;
        }
        found = &jobs->job[i];
    }
    if (!found && !top->launcher)
        fprintf(stderr, "ctctl: no job runs here\n");
    return found;
}

/* Waits for `ms`.  Returns 0 after that time.  Returns 1 at once if the user types q, or if
 * standard input is a terminal that has been closed. */
static int is_ended_by_key(const struct top *top, int ms)
{
    struct pollfd key = { STDIN_FILENO, POLLIN, 0 };
    char typed;

    if (!top->is_terminal || !isatty(STDIN_FILENO)) {
        poll(NULL, 0, ms);
        return 0;
    }
    return poll(&key, 1, ms) > 0 && (read(STDIN_FILENO, &typed, 1) <= 0 || typed == 'q');
}

static void terminal_begin(struct top *top)
{
    struct termios raw;

    top->is_terminal = isatty(STDOUT_FILENO);
    signal(SIGINT, top_end);
    signal(SIGTERM, top_end);
    if (!top->is_terminal)
        return;
    printf("\033[?1049h\033[?25l"); /* switches to the alternate screen and hides the cursor */
    if (tcgetattr(STDIN_FILENO, &top->before) == 0) {
        raw = top->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
}

static void terminal_end(const struct top *top)
{
    if (!top->is_terminal)
        return;
    printf("\033[?25h\033[?1049l");
    fflush(stdout);
    if (isatty(STDIN_FILENO))
        tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

/* Reads the state of the job, and prints a picture when it is time.  The first call prints nothing,
 * since rates need two readings.  Returns 0 to continue, 1 when done, or -1 if it failed. */
static int top_show(struct top *top, struct job_list *jobs)
{
    const int64_t now = clock_ms();
    struct job_snapshot *job = find_job(top, jobs);

    if (!job || rows_for(top, job) < 0)
        return -1;
    top_look(top, job);
    if (top->last_ms == 0) {
        top->last_ms = now;
        next_picture(top);
        return 0;
    }
    if (now - top->last_ms < PICTURE_MS)
        return 0;
    print_picture(top, job, (double)(now - top->last_ms) / 1e3);
    top->last_ms = now;
    next_picture(top);
    return !top->is_terminal;
}

static int top_show_jobs(struct job_list *jobs, const struct ctctl_options *options)
{
    struct top top = { .options = options };
    struct job_list more = { 0, NULL };
    int result;

    if (!find_job(&top, jobs))
        return WRONG_USAGE;
    terminal_begin(&top);
    result = top_show(&top, jobs);
    while (result == 0 && !is_over && !is_ended_by_key(&top, LOOK_MS)) {
        result = job_list_find(&more) < 0 ? -1 : top_show(&top, &more);
        job_list_free(&more);
    }
    terminal_end(&top);
    if (result < 0)
        printf("the job of pid %d is over, or can't be read any more\n", (int)top.launcher);
    free(top.row);
    return NO_RANK_WAITS;
}

int command_top(struct ctctl_options *options, char **words, int count)
{
    return jobs_run(options, words, count, top_show_jobs);
}
