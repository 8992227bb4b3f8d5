/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - runs `ctctl doctor`, which has a connection to each host, as ctrun --hosts does.
 *
 *     1. On each host a relay starts `ctctl --doctor-node` (node.c), which checks the host and
 *        reports the address at which it listens.
 *     2. When each host has reported its address, or is lost, each host gets the list of all hosts.
 *     3. Then the hosts measure in steps.  In step k, each host i measures the connection to host
 *        i + k, so in each step only one host measures a given host.  All steps with pings come
 *        before all steps with data, since data would make the pings slower.  Then each pair that
 *        looks bad is measured again, alone, since another pair or program may have disturbed the
 *        first measurement.
 *     4. report.c prints the result.
 *
 * Hosts answer through ssh, so ctctl also learns when the network between the hosts is broken.  A
 * step ends when every host has reported that it is done.  A host that does not answer is left out
 * of the next steps. */
#include "launcher/doctor/doctor.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "include/ct.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/remote.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/text.h"

#define ANSWER_SECONDS 40 /* most seconds that a step may take; ssh gives up after 30 */
#define END_SECONDS 2
#define PINGS 60
#define BURSTS 5
#define ALONE_PAIRS 40 /* most pairs that are measured alone */
/* most rows that a host may send, in addition to a row for the name of each host */
#define MOST_ROWS 200
#define LONGEST_LINE ((size_t)64 << 10)
#define DOCTOR_WORD "--doctor-node"

#define SRUN_SHELL                                                                              \
    "srun --overlap --nodes=1 --ntasks=1 --unbuffered --export=ALL --mpi=none --cpu-bind=none " \
    "--kill-on-bad-exit=0 --nodelist"

struct examined {
    struct doctor *doctor;
    /* EXAMINED_DONE if the host is done with its last command */
    enum { EXAMINED_BUSY, EXAMINED_DONE, EXAMINED_GONE } state;
    struct text output; /* the part of a line that the host has sent so far */
    /* address and port at which the host listens; "" if other hosts can't measure it */
    char listens[160];
    int rows;        /* number of lines with findings, and of lines that ctctl prints unchanged */
    int has_address; /* 1 if the host has reported where it listens, or why it can't listen */
};

struct doctor {
    struct event_base *base;
    struct event timer;
    struct options options; /* the options that ctrun would have here */
    struct start start;
    struct branches branches;
    struct examined *hosts;
    int busy; /* number of hosts that have not answered yet */
    /* 0 for the checks; then the steps for the list of hosts, all pings, all data, and pairs alone
     */
    int step;
    int pairs_seen; /* number of pairs that find_bad_pair() has checked */
    int is_ending;
    struct report report;
};

/* ---- Steps ------------------------------------------------------------------------------ */

static void set_state(struct examined *host, int state)
{
    host->doctor->busy += (state == EXAMINED_BUSY) - (host->state == EXAMINED_BUSY);
    host->state = state;
}

/* Returns the number of the next pair that looks bad, or -1 after the last such pair.  The first
 * call computes the usual figures, before any pair is measured alone.  Pairs that are measured
 * alone are faster, and would make the other pairs look bad. */
static int find_bad_pair(struct doctor *d)
{
    const struct matrix *matrix = &d->report.matrix;

    for (enum figure i = 0; i < FIGURES && d->pairs_seen == 0; i++)
        d->report.usual[i] = matrix_usual(matrix, i);
    while (d->pairs_seen < matrix->hosts * matrix->hosts) {
        const struct host_pair *pair = &matrix->pairs[d->pairs_seen++];

        if (pair_is_bad(pair, BYTES_PER_S, d->report.usual)
            || pair_is_bad(pair, TRIP_US, d->report.usual))
            return d->pairs_seen - 1;
    }
    return -1;
}

/* Writes what the hosts read next: the list of hosts, or a command to measure.  After the last
 * command it writes nothing, and the caller closes the input of the hosts' processes.  Then these
 * processes end with exit code 0, since srun would report any other end.  Returns FRAME_ALL, or the
 * number of the host that measures alone. */
static int write_step(struct doctor *d, int step, struct text *text)
{
    const int hosts = d->report.hosts, distances = hosts - 1;
    int pair;

    for (int i = 0; i < hosts && step == 0; i++)
        text_print(text, "%s %s\n", report_name(&d->report, i),
                   *d->hosts[i].listens ? d->hosts[i].listens : "- 0");
    if (step > 0 && step <= distances)
        text_print(text, "%d 0 %d\n", PINGS, step);
    else if (step > distances && step <= 2 * distances)
        text_print(text, "1 %d %d\n", BURSTS, step - distances);
    if (step <= 2 * distances || step > 2 * distances + ALONE_PAIRS
        || (pair = find_bad_pair(d)) < 0)
        return FRAME_ALL;
    text_print(text, "%d %d %d\n", PINGS, BURSTS, (pair % hosts - pair / hosts + hosts) % hosts);
    return pair / hosts;
}

static void begin_step(struct doctor *d)
{
    struct text text = { 0 };
    const int to = write_step(d, d->step++, &text);

    d->is_ending = text.used == 0;
    branches_send(&d->branches, &(struct relay_frame){ FRAME_INPUT, to, 0, text.data, text.used });
    /* A relay that receives nothing for SILENCE_SECONDS assumes that ctctl is lost.  Every step is
     * shorter. */
    branches_send(&d->branches, &(struct relay_frame){ FRAME_BEAT, FRAME_ALL, 0, NULL, 0 });
    free(text.data);
    for (int i = 0; i < d->report.hosts; i++)
        if (d->hosts[i].state != EXAMINED_GONE && (to == FRAME_ALL || to == i))
            set_state(&d->hosts[i], EXAMINED_BUSY);
    event_add(&d->timer, &(struct timeval){ d->is_ending ? END_SECONDS : ANSWER_SECONDS, 0 });
}

/* Begins the next step if no host is busy.  After the last step, ends the event loop. */
static void go_on(struct doctor *d)
{
    while (d->busy == 0 && !d->is_ending)
        begin_step(d);
    if (d->busy == 0)
        event_base_loopbreak(d->base);
}

/* ---- What hosts say ---------------------------------------------------------------------- */

static void lose(struct doctor *d, int host, const char *text, const char *remedy)
{
    struct examined *p = &d->hosts[host];

    if (p->state != EXAMINED_GONE && !d->is_ending) {
        d->report.lost[host] = 1;
        report_add(&d->report, host, LEVEL_FAIL, "host", text, remedy);
    }
    set_state(p, EXAMINED_GONE);
}

static void take_pair(struct doctor *d, int from, char **words)
{
    const int to = atoi(words[1]);
    const double trip = atof(words[2]), bytes_per_s = atof(words[3]);
    const int64_t skew = atoll(words[4]);
    struct host_pair *pair;
    char text[600];

    if (to < 0 || to >= d->report.hosts || to == from || !isfinite(trip) || trip < 0
        || !isfinite(bytes_per_s) || bytes_per_s < 0 || skew == NO_SKEW)
        return;
    pair = matrix_pair(&d->report.matrix, from, to);
    pair->figure[TRIP_US] = trip;
    pair->figure[BYTES_PER_S] = bytes_per_s;
    pair->skew_ns = skew;
    if (!*words[6] || pair->error || d->hosts[to].state == EXAMINED_GONE)
        return;
    pair->error = strdup(words[6]);
    snprintf(text, sizeof text, "it does not reach %s: %s", report_name(&d->report, to), words[6]);
    report_add(&d->report, from, LEVEL_FAIL, "network", text, words[5]);
}

/* Stores the address at which a host listens, until ctctl sends the list of hosts.  The hosts read
 * the list word by word, so the address must be exactly two words. */
static void take_address(struct examined *host, const char *said)
{
    char address[128];
    int port;

    if (host->doctor->step > 0 || sscanf(said, "%127s %d", address, &port) != 2 || port < 1
        || port > 65535)
        return;
    snprintf(host->listens, sizeof host->listens, "%s %d", address, port);
    host->has_address = 1;
}

/* Splits a line at its tabs if its first word is `first`.  Returns 1, or 0 if the line begins with
 * another word, and then the line is unchanged. */
static int doctor_split(char *line, const char *first, char *words[7])
{
    const size_t length = strlen(first);
    char *word;

    if (strncmp(line, first, length) != 0 || (line[length] && line[length] != '\t'))
        return 0;
    for (int i = 0; i < 7; i++)
        words[i] = (word = strsep(&line, "\t")) ? word : "";
    return 1;
}

static void doctor_take_line(void *arg, char *line)
{
    struct examined *p = arg;
    struct doctor *d = p->doctor;
    const int host = (int)(p - d->hosts);
    char *words[7];

    if (p->state == EXAMINED_GONE) /* ctctl has given up this host because of an earlier line */
        return;
    if (doctor_split(line, "listen", words)) {
        take_address(p, words[1]);
    } else if (doctor_split(line, "pair", words)) {
        take_pair(d, host, words);
    } else if (doctor_split(line, "done", words)) {
        set_state(p, EXAMINED_DONE);
    } else if (p->rows++ == MOST_ROWS + d->report.hosts) {
        lose(d, host, "it says more than ctctl has asked it", "see what it printed");
    } else if (doctor_split(line, "row", words)) {
        report_add(&d->report, host, atoi(words[1]), words[2], words[4], words[3]);
        p->has_address |= !strcmp(words[2], "address");
    } else {
        fprintf(stderr, "ctctl: %s: %s\n", report_name(&d->report, host), line);
    }
}

static void doctor_take_output(struct examined *host, const struct relay_frame *frame)
{
    text_add(&host->output, frame->data, frame->size);
    text_take_lines(&host->output, doctor_take_line, host);
    if (host->output.used > LONGEST_LINE)
        lose(host->doctor, frame->node, "it sent a line that has no end", "see what it printed");
}

static const char reach_remedy[] =
    "ssh HOST ctctl --version must succeed here without a question: it needs a key, a known host "
    "(type ssh HOST once) and ctctl on the PATH; --ssh=COMMAND replaces ssh. In a job of Slurm "
    "srun --overlap --nodes=1 --ntasks=1 --nodelist=HOST ctctl --version must succeed";

static void doctor_from_branch(void *arg, struct branch *branch, const struct relay_frame *frame)
{
    struct doctor *d = arg;
    const int host = frame->node;
    const struct text *rest;
    char version[24], text[600];

    if (host < branch->first || host >= branch->first + branch->count)
        return;
    if (frame->type == FRAME_STARTED && !frame_is_own_version(frame, version)) {
        snprintf(text, sizeof text, "its ctctl is version %s, and this one is %s", version,
                 CT_VERSION);
        lose(d, host, text, "install the same build on all hosts");
    } else if (frame->type == FRAME_OUTPUT && d->hosts[host].state != EXAMINED_GONE) {
        doctor_take_output(&d->hosts[host], frame);
    } else if (frame->type == FRAME_LOST) {
        snprintf(text, sizeof text, "%.*s", (int)frame->size, frame->data);
        lose(d, host, text, reach_remedy);
    } else if (frame->type == FRAME_ENDED) {
        rest = &d->hosts[host].output;
        if (rest->used > 0 && d->hosts[host].state != EXAMINED_GONE)
            fprintf(stderr, "ctctl: %s: %.*s\n", report_name(&d->report, host), (int)rest->used,
                    rest->data);
        snprintf(text, sizeof text, "its ctctl ended with %d", frame->number);
        lose(d, host, text, "see what it printed");
    }
    go_on(d);
}

static void doctor_branch_gone(void *arg, struct branch *branch, const char *why)
{
    struct doctor *d = arg;

    for (int host = branch->first; host < branch->first + branch->count; host++)
        lose(d, host, why, reach_remedy);
    go_on(d);
}

static const struct branch_hooks hooks = { doctor_from_branch, doctor_branch_gone };

static void time_is_over(evutil_socket_t fd, short what, void *arg)
{
    struct doctor *d = arg;
    char text[100];

    (void)fd;
    (void)what;
    snprintf(text, sizeof text, "it has not answered within %d s%s", ANSWER_SECONDS,
             d->step > 0 ? " while the hosts measured" : "");
    for (int host = 0; host < d->report.hosts; host++)
        if (d->hosts[host].state == EXAMINED_BUSY)
            lose(d, host, text, d->step > 0 ? "see what it does: top, dmesg" : reach_remedy);
    go_on(d);
}

/* ---- What follows from it ----------------------------------------------------------------- */

static const char speed_remedy[] = "compare the interfaces of both (ethtool eth0: Speed; ip -s "
                                   "link: errors), cables, switch ports, "
                                   "and what else runs there";

static void diagnose_pair(struct doctor *d, int from, int to)
{
    const struct matrix *matrix = &d->report.matrix;
    const double *usual = d->report.usual;
    struct host_pair *pair = matrix_pair(matrix, from, to);
    const int is_slow = pair_is_bad(pair, BYTES_PER_S, usual);
    const int is_far = pair_is_bad(pair, TRIP_US, usual);
    char text[400];

    pair->level = is_slow || is_far ? LEVEL_WARN : LEVEL_OK;
    if (is_slow && !host_is_slow(matrix, from, usual) && !host_is_slow(matrix, to, usual)) {
        snprintf(text, sizeof text, "it sends to %s at %.3g GB/s; the usual bandwidth is %.3g GB/s",
                 report_name(&d->report, to), pair->figure[BYTES_PER_S] / 1e9,
                 usual[BYTES_PER_S] / 1e9);
        report_add(&d->report, from, LEVEL_WARN, "bandwidth", text, speed_remedy);
    }
    if (is_far) {
        snprintf(text, sizeof text,
                 "the round trip to %s takes %.0f us; the usual round trip takes %.0f us",
                 report_name(&d->report, to), pair->figure[TRIP_US], usual[TRIP_US]);
        report_add(&d->report, from, LEVEL_WARN, "round trip", text,
                   "look at the way (traceroute), and at what else uses it (ip -s link)");
    }
}

static void diagnose_clock(struct doctor *d, int host)
{
    const int64_t skew = matrix_skew(&d->report.matrix, host);
    enum finding_level level;
    char text[400];

    if (host == 0 || skew == NO_SKEW)
        return;
    level = clock_level(skew);
    snprintf(text, sizeof text, "its clock is %.3g ms %s that of %s",
             (double)(skew < 0 ? -skew : skew) / 1e6, skew < 0 ? "behind" : "ahead of",
             report_name(&d->report, 0));
    report_add(&d->report, host, level, "clock skew", text,
               level == LEVEL_OK ? "" : "run chrony, ntpd or systemd-timesyncd on both");
}

/* Reports the results that a host did not send, although it reported that it was done. */
static void diagnose_silence(struct doctor *d, int host)
{
    static const char remedy[] = "install the same build on all hosts, and see what it printed";
    char text[400];

    if (d->report.lost[host] || d->report.hosts == 1)
        return;
    if (!d->hosts[host].has_address)
        report_add(&d->report, host, LEVEL_FAIL, "host", "it did not say where it listens", remedy);
    for (int to = 0; to < d->report.hosts; to++) {
        const struct host_pair *pair = matrix_pair(&d->report.matrix, host, to);

        if (to == host || d->report.lost[to] || !*d->hosts[to].listens || pair->error
            || pair_is_measured(pair))
            continue;
        snprintf(text, sizeof text, "it did not measure the way to %s",
                 report_name(&d->report, to));
        report_add(&d->report, host, LEVEL_FAIL, "network", text, remedy);
    }
}

static void diagnose(struct doctor *d)
{
    char text[300];

    snprintf(text, sizeof text, "it sends and receives slowly; the usual bandwidth is %.3g GB/s",
             d->report.usual[BYTES_PER_S] / 1e9);
    for (int host = 0; host < d->report.hosts; host++) {
        for (int to = 0; to < d->report.hosts; to++)
            diagnose_pair(d, host, to);
        if (host_is_slow(&d->report.matrix, host, d->report.usual))
            report_add(&d->report, host, LEVEL_WARN, "bandwidth", text, speed_remedy);
        diagnose_clock(d, host);
        diagnose_silence(d, host);
    }
    report_finish(&d->report);
}

/* ---- Begin and end ---------------------------------------------------------------------- */

/* Reads the options as ctrun does, from the options of ctctl, CT_HOSTS and similar variables,
 * job.ini, and the scheduler.  Returns 0, or the exit code after it has logged an error. */
static int read_options(struct doctor *d, const struct doctor_options *given)
{
    const char *words[][2] = { { "--hosts", given->hosts },
                               { "--hostfile", given->hostfile },
                               { "--ssh", given->ssh },
                               { "--iface", given->iface } };
    const char *argv[10] = { "ctctl" };
    char error[1024];
    int count = 1;

    /* ctrun refuses to run as one of several tasks on a node, but ctctl may. */
    unsetenv("SLURM_STEP_NUM_TASKS");
    for (int i = 0; i < 4; i++)
        if (words[i][1]) {
            argv[count++] = words[i][0];
            argv[count++] = words[i][1];
        }
    argv[count] = "true"; /* the program that ctrun would start; it is not run */
    if (options_read(&d->options, (char **)argv, error, sizeof error) == OPTIONS_RUN)
        return 0;
    log_line(LOG_ERROR, "%s (ctctl --help)", error);
    return 2;
}

/* Chooses the hosts of --hosts or --hostfile, or else the hosts of the scheduler, or else this
 * host. */
static void choose_hosts(struct options *options)
{
    const char *step = getenv("SLURM_STEP_NUM_NODES");
    const char *list = options->surroundings.srun_nodes > 0 ? getenv("SLURM_JOB_NODELIST")
                       : step && atoi(step) > 1             ? getenv("SLURM_STEP_NODELIST")
                                                            : NULL;

    if (options->hosts || options->hostfile)
        return;
    options->hosts = list ? list : "localhost";
    if (list)
        options->ssh = SRUN_SHELL;
}

/* Prepares the start on all hosts.  Returns 0, or the exit code after it has logged an error. */
static int doctor_plan(struct doctor *d)
{
    static char *words[6] = { DOCTOR_WORD };
    const char *secret = getenv("CT_STORE_SECRET_FILE");
    int code, hosts;

    choose_hosts(&d->options);
    if ((code = remote_start(&d->start, &d->options)) != 0)
        return code;
    words[1] = d->start.path;
    words[2] = d->start.folder;
    words[3] = (char *)(d->options.iface ? d->options.iface : "");
    words[4] = (char *)(secret ? secret : "");
    d->start.words = words;
    d->start.folder = "/"; /* the user's folder may be missing there, which a check reports */
    d->start.at_once = 1;
    d->start.variables = remote_environment(0);
    d->busy = d->report.hosts = hosts = d->start.nodes;
    d->report.list_of_hosts = d->start.hosts.hosts;
    d->hosts = calloc((size_t)hosts, sizeof *d->hosts);
    d->report.lost = calloc((size_t)hosts, sizeof *d->report.lost);
    d->report.matrix.hosts = hosts;
    d->report.matrix.pairs = calloc((size_t)hosts * (size_t)hosts, sizeof(struct host_pair));
    if (!d->hosts || !d->report.lost || !d->start.variables || !d->report.matrix.pairs) {
        log_line(LOG_ERROR, "out of memory for %d hosts", hosts);
        return 1;
    }
    for (int host = 0; host < hosts; host++)
        d->hosts[host].doctor = d;
    return 0;
}

static int examine(struct doctor *d)
{
    const int64_t began = clock_ms();
    sigset_t all, before;
    int result;

    if (!(d->base = event_base_new())) {
        log_line(LOG_ERROR, "cannot watch for events: %s", strerror(errno));
        return 1;
    }
    evtimer_assign(&d->timer, d->base, time_is_over, d);
    event_add(&d->timer, &(struct timeval){ ANSWER_SECONDS, 0 });
    signal(SIGPIPE, SIG_IGN); /* a read detects that an ssh has ended */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* spawn() needs all signals blocked */
    result = branches_open(&d->branches, d->base, &d->start, 0, d->report.hosts, &hooks, d);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        event_base_dispatch(d->base);
    branches_close(&d->branches);
    d->report.seconds = (double)(clock_ms() - began) / 1e3;
    return result < 0 ? 1 : 0;
}

int doctor_on_host(char **argv)
{
    if (!argv[0] || !argv[1] || (strcmp(argv[1], NODE_WORD) && strcmp(argv[1], DOCTOR_WORD)))
        return -1;
    log_setup("ctctl", LOG_WARN);
    return !strcmp(argv[1], NODE_WORD) ? remote_node() : doctor_node(argv + 2);
}

int doctor_run(const struct doctor_options *given)
{
    const char *task = getenv("SLURM_STEP_ID") ? getenv("SLURM_PROCID") : NULL;
    static struct doctor d; /* never freed, since the process ends after this function */
    int code;

    if (!given->hosts && !given->hostfile && task && atoi(task) > 0)
        return 0; /* srun started ctctl on each node, and only task 0 examines the nodes */
    log_setup("ctctl", LOG_WARN);
    if ((code = read_options(&d, given)) != 0 || (code = doctor_plan(&d)) != 0
        || (code = examine(&d)) != 0)
        return code;
    diagnose(&d);
    if (given->json)
        report_print_json(&d.report);
    else
        report_print(&d.report, given->verbose);
    return d.report.worst == LEVEL_FAIL;
}
