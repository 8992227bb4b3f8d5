/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - implements ctctl top, which shows once a second what each rank of a job does.
 *
 * The page of a job shows where a rank is at a moment.  ctctl top reads the page several times a
 * second, to find how much of the time a rank is in calls, and how many calls it makes.  Problems
 * come first, and ranks that do the same share a line.  On a terminal each picture replaces the
 * previous picture, until the user presses q or Ctrl-C.  If standard output is not a terminal, or
 * one that can't move the cursor, ctctl top prints one picture and ends. */
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
#include "launcher/inspect/ask.h"
#include "launcher/inspect/rank_stage.h"
#include "launcher/inspect/source_lines.h"
#include "launcher/inspect/verdict_text.h"
#include "launcher/observers/straggler_observer.h"
#include "launcher/util/progress_line.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"

#define LOOK_MS 100
#define OBSERVED_LOOK_MS 250 /* if observers answer, for which a rank needs up to 15 ms */
#define PICTURE_MS 1000
#define LOOKS 50      /* looks after which those before count half, for stragglers */
#define CANDIDATES 64 /* most ranks of which the commonest activity is looked for */

/* What a rank did since the last picture. */
struct top_row {
    int looks, inside;
    /* number of collectives that the rank has begun, now and at the last picture */
    uint64_t calls, calls_before;
    double cpu, cpu_before;
    int is_new; /* 1 if the rank was not in the previous picture */
    pid_t pid;
    enum rank_stage stage;
    char now[RANK_TEXT]; /* what the rank does, without the call's number if the rank runs */
};

struct top {
    const struct ctctl_options *options;
    struct top_row *row;      /* [ranks] */
    struct rank_share *share; /* [ranks] time in collectives in the last seconds */
    int *order;               /* [ranks] indices of `row`, as the picture shows them */
    int ranks;
    int look_ms;    /* time until the next look */
    int looks;      /* number of looks that `share` counts */
    int slow;       /* rank that the last picture found to be a straggler; -1 if none */
    int unfolded;   /* 1 if each rank has a line */
    int is_colour;  /* 1 if the words of problems are coloured */
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

static void rows_free(struct top *top)
{
    free(top->row);
    free(top->share);
    free(top->order);
}

static int rows_for(struct top *top, const struct job_snapshot *job)
{
    const size_t room = (size_t)job->ranks + 1;

    if (top->ranks == job->ranks && top->launcher == job->launcher
        && top->restarts == job->restarts)
        return 0;
    rows_free(top);
    top->row = calloc(room, sizeof *top->row);
    top->share = calloc(room, sizeof *top->share);
    top->order = calloc(room, sizeof *top->order);
    top->ranks = top->row && top->share && top->order ? job->ranks : 0;
    top->launcher = job->launcher;
    top->restarts = job->restarts;
    top->slow = -1;
    top->looks = 0;
    for (int i = 0; i < top->ranks; i++)
        top->row[i].is_new = 1;
    return top->ranks > 0 || job->ranks == 0 ? 0 : -1;
}

static int is_in_collective(const struct rank_snapshot *rank)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id && rank->group[i].now.phase == CONTROL_IN
            && !operation_is_message((uint8_t)rank->group[i].now.operation))
            return 1;
    return 0;
}

static void top_look(struct top *top, const struct job_snapshot *job)
{
    top->looks++;
    for (int i = 0; i < top->ranks; i++) {
        struct top_row *row = &top->row[i];

        if (row->pid != job->rank[i].process.pid)
            *row = (struct top_row){ .pid = job->rank[i].process.pid, .is_new = 1 };
        row->looks++;
        row->inside += rank_is_in_call(&job->rank[i]);
        top->share[i].inside += is_in_collective(&job->rank[i]);
        row->cpu = job->rank[i].process.cpu_s;
        row->calls = 0;
        for (int group = 0; group < CONTROL_GROUPS; group++)
            row->calls += job->rank[i].group[group].begun;
    }
}

static void next_picture(struct top *top)
{
    const int fades = top->looks > LOOKS;

    top->looks >>= fades;
    for (int i = 0; i < top->ranks; i++) {
        top->share[i].inside >>= fades;
        top->share[i].calls >>= fades;
        top->row[i].looks = top->row[i].inside = top->row[i].is_new = 0;
        top->row[i].calls_before = top->row[i].calls;
        top->row[i].cpu_before = top->row[i].cpu;
    }
}

/* ---- What a picture shows ---------------------------------------------------------------- */

/* Removes " #12", so that ranks in different rounds of a loop share a line. */
static void drop_number(char *text)
{
    char *const number = strstr(text, " #");

    if (number)
        memmove(number, number + 2 + strspn(number + 2, "0123456789"),
                strlen(number + 2 + strspn(number + 2, "0123456789")) + 1);
}

/* Marks a straggler among the ranks of this host.  On a terminal two pictures in a row must have
 * found the same rank. */
static void mark_straggler(struct top *top)
{
    const int before = top->slow;
    struct collective_shares shares;

    for (int i = 0; i < top->ranks; i++)
        if (top->row[i].calls > top->row[i].calls_before)
            top->share[i].calls += top->row[i].calls - top->row[i].calls_before;
    if (top->ranks == 0)
        return;
    shares = shares_of(top->share, top->ranks, top->looks, 0);
    top->slow = slow_rank_among(&shares, 1).rank;
    if (top->slow >= 0 && (top->slow == before || !top->is_terminal)
        && top->row[top->slow].stage == STAGE_RUNS)
        top->row[top->slow].stage = STAGE_STRAGGLES;
}

static int row_differs(const struct top_row *a, const struct top_row *b)
{
    if (a->stage != b->stage)
        return rank_stage_order(a->stage) - rank_stage_order(b->stage);
    return a->stage == STAGE_RUNS ? 0 : strcmp(a->now, b->now);
}

static int order_rows(const void *a, const void *b, void *rows)
{
    const struct top_row *row = rows;
    const int one = *(const int *)a, other = *(const int *)b;
    const int differs = row_differs(&row[one], &row[other]);

    return differs ? differs : one - other;
}

static int judge_rows(struct top *top, const struct job_snapshot *job,
                      const struct verdict_list *list)
{
    enum rank_stage *const stage = calloc((size_t)top->ranks + 1, sizeof *stage);

    if (!stage)
        return -1;
    rank_stages(job, list, stage);
    for (int i = 0; i < top->ranks; i++)
        top->row[i].stage = stage[i];
    mark_straggler(top);
    for (int i = 0; i < top->ranks; i++) {
        struct top_row *row = &top->row[i];

        describe_rank(job, &job->rank[i], row->now, sizeof row->now);
        if (row->stage == STAGE_RUNS)
            drop_number(row->now);
        top->order[i] = i;
    }
    qsort_r(top->order, (size_t)top->ranks, sizeof *top->order, order_rows, top->row);
    free(stage);
    return 0;
}

/* ---- Pictures ------------------------------------------------------------------------- */

/* Writes "0-36,38-63", or "0-3,5,..." if the list does not fit. */
static void list_ranks(const struct job_snapshot *job, const int *order, int count, char *text,
                       size_t size)
{
    size_t used = 0;

    for (int i = 0, last; i < count; i = last + 1) {
        char range[32];

        for (last = i; last + 1 < count
                       && job->rank[order[last + 1]].rank == job->rank[order[last]].rank + 1;)
            last++;
        snprintf(range, sizeof range, last > i ? "%s%d-%d" : "%s%d", i ? "," : "",
                 job->rank[order[i]].rank, job->rank[order[last]].rank);
        if (used + strlen(range) + (last + 1 < count ? 4 : 0) >= size) {
            snprintf(text + used, size - used, i ? ",..." : "%d...", job->rank[*order].rank);
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", range);
    }
}

/* Writes what most of the ranks do, with their number unless all do the same. */
static void commonest(const struct top *top, const int *order, int count, char *text, size_t size)
{
    int most = 0, best = 0;

    for (int i = 0; i < count && i < CANDIDATES && most < count; i++) {
        int same = 0;

        for (int j = 0; j < count; j++)
            same += !strcmp(top->row[order[i]].now, top->row[order[j]].now);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    snprintf(text, size, "%s", top->row[order[best]].now);
    if (most < count)
        snprintf(text + strlen(text), size - strlen(text), " (%d of %d)", most, count);
}

/* Writes a figure, or a dash if there is none yet. */
static const char *figure(char *text, size_t size, int is_known, double value, const char *unit)
{
    if (!is_known)
        return "-";
    snprintf(text, size, "%.0f%s", value, unit);
    return text;
}

/* The screen below what is printed so far: its columns, and the lines that are left. */
struct room {
    int width, lines;
};

/* Returns how many bytes of the text fit into `width`.  Does not split a character. */
static int bytes_that_fit(const char *text, int width)
{
    int bytes = width > 0 ? width : 0;

    if (strlen(text) <= (size_t)bytes)
        return (int)strlen(text);
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes--;
    return bytes;
}

/* Prints the start of the text, and returns the width that is left. */
static int print_part(const char *text, int width)
{
    const int bytes = bytes_that_fit(text, width);

    printf("%.*s", bytes, text);
    return width - bytes;
}

static void print_line(const char *text, struct room *room)
{
    if (room->lines <= 0)
        return;
    print_part(text, room->width);
    printf("\n");
    room->lines--;
}

/* Prints the line of `count` ranks that do the same; their figures are the means. */
static void print_row(const struct top *top, const struct job_snapshot *job, const int *order,
                      int count, double seconds, struct room *room)
{
    /* colours that can be read on white and on black */
    static const char *const colours[STAGES] = {
        [STAGE_BLOCKS] = "1;38;5;164",   [STAGE_LEFT] = "1;38;5;98",
        [STAGE_FAILED] = "1;38;5;196",   [STAGE_WAITS] = "38;5;130",
        [STAGE_STRAGGLES] = "1;38;5;30",
    };
    const enum rank_stage stage = top->row[*order].stage;
    const char *const colour = top->is_colour ? colours[stage] : NULL;
    char letter = job->rank[*order].process.state ? job->rank[*order].process.state : '-';
    char ranks[16], who[24], cpu[24], calls[24], share[24], now[RANK_TEXT + 32],
        text[RANK_TEXT + 128];
    double cpu_s = 0, inside = 0, looks = 0, begun = 0;
    int width = room->width, known = seconds > 0 && job->rank[*order].process.state;

    for (int i = 0; i < count; i++) {
        const struct top_row *const row = &top->row[order[i]];

        known &= !row->is_new;
        if (job->rank[order[i]].process.state != job->rank[*order].process.state)
            letter = '-';
        cpu_s += row->cpu - row->cpu_before;
        /* The number of calls may be smaller than before, since the calls of a destroyed group no
         * longer count. */
        begun += row->calls > row->calls_before ? (double)(row->calls - row->calls_before) : 0;
        inside += row->inside;
        looks += row->looks;
    }
    list_ranks(job, order, count, ranks, sizeof ranks);
    snprintf(who, sizeof who, count > 1 ? "%d ranks" : "%d",
             count > 1 ? count : (int)job->rank[*order].process.pid);
    commonest(top, order, count, now, sizeof now);
    snprintf(text, sizeof text, "%-15s %10s %c  ", ranks, who, letter);
    width = print_part(text, width);
    if (colour)
        printf("\033[%sm", colour);
    snprintf(text, sizeof text, "%c %-9s", rank_stage_glyph(stage), rank_stage_name(stage));
    width = print_part(text, width);
    if (colour)
        printf("\033[0m");
    snprintf(text, sizeof text, " %5s %8s %8s  %s",
             figure(cpu, sizeof cpu, known, 100 * cpu_s / count / seconds, ""),
             figure(calls, sizeof calls, known, begun / count / seconds, ""),
             figure(share, sizeof share, known && looks > 0, 100 * inside / looks, " %"), now);
    print_part(text, width);
    printf("\n");
    room->lines--;
}

/* Prints the lines that fit, at least the first, and how many ranks these leave out. */
static void print_rows(const struct top *top, const struct job_snapshot *job, double seconds,
                       struct room *room)
{
    int next;

    for (int i = 0; i < top->ranks && room->lines > 0; i = next) {
        const struct top_row *const first = &top->row[top->order[i]];

        for (next = i + 1; next < top->ranks && !top->unfolded
                           && row_differs(first, &top->row[top->order[next]]) == 0;)
            next++;
        if (room->lines == 1 && i > 0 && next < top->ranks) {
            char text[48];

            snprintf(text, sizeof text, "and %d more ranks", top->ranks - i);
            print_line(text, room);
            return;
        }
        print_row(top, job, top->order + i, next - i, seconds, room);
    }
}

/* Prints the text in lines that are broken at spaces, and leaves `least` lines of the room. */
static void print_lines(const char *text, struct room *room, int least)
{
    for (int length; *text && room->lines > least; text += length + (text[length] == ' ')) {
        length = bytes_that_fit(text, room->width);
        if (length == 0) /* a character is wider than the screen */
            return;
        for (int i = length; text[length] && i > room->width / 2; i--)
            if (text[i] == ' ') {
                length = i;
                break;
            }
        printf("%.*s\n", length, text);
        room->lines--;
    }
}

/* The text above the table leaves half of the screen to the table. */
static void print_picture(struct top *top, struct job_snapshot *job, double seconds)
{
    struct winsize window = { .ws_row = 0 };
    char ranks[48], since[32], text[VERDICT_TEXT];
    struct verdict_list list;
    struct room room = { .width = 200, .lines = 1 << 20 };
    int least;

    if (top->is_terminal) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
        room.width = progress_room(STDOUT_FILENO);
        printf("\033[H\033[J");
    }
    if (window.ws_row)
        room.lines = window.ws_row - 1; /* the cursor is on the last line */
    least = room.lines / 2;
    source_lines(job);
    verdict_list_make(&list, job, (uint64_t)(top->options->after_s * 1e9));
    job_ranks(job, ranks, sizeof ranks);
    job_since(job, since, sizeof since);
    snprintf(text, sizeof text, "job %s (%s, %s, for %s, %d restarts): %s", job->run_id,
             job->program, ranks, since, job->restarts, list.state);
    print_lines(text, &room, least);
    for (int i = 0; i < list.count && i < 3; i++) {
        verdict_text(&list.verdict[i], job, text, sizeof text);
        print_lines(text, &room, least);
    }
    snprintf(text, sizeof text, "%d more like these: ctctl status", list.count - 3);
    if (list.count > 3)
        print_lines(text, &room, least);
    if (room.lines > 4)
        print_line("", &room);
    print_line("RANKS                  PID S  STATE        %CPU  CALLS/s IN CALLS  NOW", &room);
    if (judge_rows(top, job, &list) == 0)
        print_rows(top, job, seconds, &room);
    verdict_list_free(&list);
    fflush(stdout);
}

/* ---- The loop ---------------------------------------------------------------------------- */

/* Finds the job to show.  If the user selected no job or several jobs, prints an error message and
 * returns NULL.  If the job that was shown before is gone, returns NULL without a message. */
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

/* Waits for `ms`.  Returns 0 after that time, or at once if the user types f, which folds or
 * unfolds the ranks.  Returns 1 at once if the user types q, or if standard input is a terminal
 * that has been closed. */
static int is_ended_by_key(struct top *top, int ms)
{
    struct pollfd key = { STDIN_FILENO, POLLIN, 0 };
    char typed;

    if (!top->is_terminal || !isatty(STDIN_FILENO)) {
        poll(NULL, 0, ms);
        return 0;
    }
    if (poll(&key, 1, ms) <= 0)
        return 0;
    if (read(STDIN_FILENO, &typed, 1) <= 0 || typed == 'q')
        return 1;
    top->unfolded ^= typed == 'f';
    return 0;
}

static void terminal_begin(struct top *top)
{
    const char *const no_colour = getenv("NO_COLOR");
    struct termios raw;

    top->is_terminal = progress_room(STDOUT_FILENO) > 0;
    top->is_colour = top->is_terminal && !(no_colour && *no_colour);
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
    top->look_ms = ask_is_possible(job) ? OBSERVED_LOOK_MS : LOOK_MS;
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
    while (result == 0 && !is_over && !is_ended_by_key(&top, top.look_ms)) {
        result = job_list_find(&more) < 0 ? -1 : top_show(&top, &more);
        job_list_free(&more);
    }
    terminal_end(&top);
    if (result < 0)
        printf("the job of pid %d is over, or can't be read any more\n", (int)top.launcher);
    rows_free(&top);
    return NO_RANK_WAITS;
}

int command_top(struct ctctl_options *options, char **words, int count)
{
    return jobs_run(options, words, count, top_show_jobs);
}
