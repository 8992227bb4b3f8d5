/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - `ctctl doctor`: one connection to each host, as ctrun --hosts has them.
 *
 * 1. On each host a relay starts `ctctl --doctor-node` (node.c), which checks the host and says
 *    where it listens.
 * 2. When all have done that, or are lost, each gets the list of them and says that it is ready.
 * 3. Then they measure in rounds, in which no host is in two pairs: first one of a pair connects to
 *    the other, then the other way round.  Pairs that are much slower than others are measured
 *    again, alone, since another program may have been in the way.
 * 4. report.c says what was found.
 *
 * What a host says comes through ssh, so a network between the hosts that is broken is a result.
 * Each step has a deadline; a host that misses it is left out of the rest. */
#include "launcher/doctor/doctor.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "config/options.h"
#include "config/values/host_list.h"
#include "include/ct.h"
#include "launcher/doctor/measure.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/remote.h"
#include "launcher/workers/program.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/text.h"

#define CHECK_SECONDS 40 /* for ssh, which gives up by itself after 30, and the checks */
#define STEP_SECONDS (MEASURE_SECONDS + 3)
#define END_SECONDS 2
#define AGAIN_PAIRS 20 /* that are measured again, and how often */
#define AGAIN_TIMES 2
#define FACTS 8
#define DOCTOR_WORD "--doctor-node"

#define SRUN_SHELL                                                                              \
    "srun --overlap --nodes=1 --ntasks=1 --unbuffered --export=ALL --mpi=none --cpu-bind=none " \
    "--kill-on-bad-exit=0 --nodelist"

#define MOST_TRIP_NS 1000000000000 /* a step takes STEP_SECONDS */

struct examined {
    enum {
        EXAMINED_CALLED,
        EXAMINED_CHECKED,
        EXAMINED_READY, /* it has the list of all, and answers the others */
        EXAMINED_LOST   /* or it has ended, at the end */
    } state;
    struct text line[3]; /* of its output: what has no end yet */
    char *address;
    int port;
    int towards; /* the host to which it measures now; -1: none */
    struct {
        char *name, *value;
    } fact[FACTS];
    int facts;
};

struct doctor {
    struct event_base *base;
    struct event timer, beat;
    char *words[4];         /* of the options */
    struct options options; /* of ctrun, as it would run here */
    struct start start;
    struct branches branches;
    struct examined *hosts;
    struct report report;
    char token[TOKEN + 1];
    int measuring, ending, step, pending;
    int again[AGAIN_PAIRS * AGAIN_TIMES][2], agains, times; /* from, to */
};

static const char *name_of(const struct doctor *d, int host)
{
    return d->report.names[host];
}

static const char *fact_of(const struct examined *p, const char *name)
{
    for (int i = 0; i < p->facts; i++)
        if (!strcmp(p->fact[i].name, name))
            return p->fact[i].value;
    return NULL;
}

static void add(struct doctor *d, int host, enum level level, const char *check, const char *text,
                const char *remedy)
{
    report_add(&d->report, host, level, check, text, remedy);
}

/* ---- Steps ----------------------------------------------------------------------------- */

static void send_line(struct doctor *d, int host, const char *line, size_t size)
{
    branches_send(&d->branches, &(struct relay_frame){ FRAME_INPUT, host, 0, line, size });
}

static void measure(struct doctor *d, int from, int to)
{
    char line[32];

    if (d->hosts[from].state != EXAMINED_READY || d->hosts[to].state != EXAMINED_READY
        || !d->hosts[from].port || !d->hosts[to].port)
        return;
    snprintf(line, sizeof line, "measure\t%d\n", to);
    send_line(d, from, line, strlen(line));
    d->hosts[from].towards = to;
    d->pending++;
}

/* Of the pairs that are slow so far, the first few once more. */
static void plan_again(struct doctor *d)
{
    const struct matrix *matrix = &d->report.matrix;
    const double bandwidth = usual_bandwidth(matrix), trip = usual_trip_us(matrix);
    int count = 0;

    for (int from = 0; from < matrix->hosts && count < AGAIN_PAIRS; from++)
        for (int to = 0; to < matrix->hosts && count < AGAIN_PAIRS; to++) {
            const struct host_pair *pair = matrix_pair(matrix, from, to);

            if (!pair_is_slow(pair, bandwidth) && !pair_is_far(pair, trip))
                continue;
            d->again[d->agains][0] = from;
            d->again[d->agains++][1] = to;
            count++;
        }
}

/* 0: there is none. */
static int begin_step(struct doctor *d, int step)
{
    const int hosts = d->report.hosts, planned = 2 * tournament_rounds(hosts);

    if (step < planned) {
        for (int match = 0; match < (hosts + 1) / 2; match++) {
            int a, b;

            if (tournament_match(hosts, step / 2, match, &a, &b))
                measure(d, step % 2 ? b : a, step % 2 ? a : b);
        }
        return 1;
    }
    if (step - planned == d->agains && d->times++ < AGAIN_TIMES)
        plan_again(d);
    if (step - planned >= d->agains)
        return 0;
    measure(d, d->again[step - planned][0], d->again[step - planned][1]);
    return 1;
}

static void end_if_all_ended(struct doctor *d)
{
    for (int host = 0; host < d->report.hosts; host++)
        if (d->hosts[host].state != EXAMINED_LOST)
            return;
    event_base_loopbreak(d->base);
}

/* The end of its input is that of node.c; srun would report any other. */
static void begin_end(struct doctor *d)
{
    const struct timeval limit = { END_SECONDS, 0 };

    d->ending = 1;
    send_line(d, FRAME_ALL, NULL, 0);
    event_add(&d->timer, &limit);
    end_if_all_ended(d);
}

static void next_step(struct doctor *d)
{
    const struct timeval limit = { STEP_SECONDS, 0 };

    while (d->pending == 0 && begin_step(d, d->step))
        d->step++;
    if (d->pending == 0)
        begin_end(d);
    else
        event_add(&d->timer, &limit);
}

static void begin_measuring(struct doctor *d)
{
    struct text lines = { 0 };

    if (d->measuring)
        return;
    d->measuring = 1;
    text_print(&lines, "token\t%s\n", d->token);
    for (int host = 0; host < d->report.hosts; host++) {
        const struct examined *p = &d->hosts[host];

        d->pending += p->state == EXAMINED_CHECKED;
        text_print(&lines, "host\t%s\t%s\t%d\n", name_of(d, host), p->address ? p->address : "-",
                   p->port);
    }
    text_print(&lines, "ready\n");
    send_line(d, FRAME_ALL, lines.data, lines.used);
    free(lines.data);
    next_step(d);
}

static void begin_if_all_checked(struct doctor *d)
{
    for (int host = 0; host < d->report.hosts; host++)
        if (d->hosts[host].state == EXAMINED_CALLED)
            return;
    begin_measuring(d);
}

/* ---- What hosts say ---------------------------------------------------------------------- */

static void set_error(struct host_pair *pair, const char *text, const char *remedy)
{
    free(pair->error);
    free(pair->remedy);
    pair->error = strdup(text);
    pair->remedy = strdup(remedy);
}

/* What the others wait for. */
static void done(struct doctor *d, int host)
{
    d->hosts[host].towards = -1;
    if (--d->pending == 0)
        next_step(d);
}

static int is_waited_for(const struct doctor *d, int host)
{
    return d->measuring
           && (d->hosts[host].towards >= 0 || d->hosts[host].state == EXAMINED_CHECKED);
}

static void lose(struct doctor *d, int host, const char *text, const char *remedy)
{
    struct examined *p = &d->hosts[host];
    const int waited_for = is_waited_for(d, host);

    if (p->state == EXAMINED_LOST)
        return;
    p->state = EXAMINED_LOST;
    if (d->ending) {
        end_if_all_ended(d);
        return;
    }
    d->report.lost[host] = 1;
    add(d, host, LEVEL_FAIL, "host", text, remedy);
    if (p->towards >= 0)
        set_error(matrix_pair(&d->report.matrix, host, p->towards), "it was lost meanwhile",
                  remedy);
    if (waited_for)
        done(d, host);
    if (!d->measuring)
        begin_if_all_checked(d);
}

/* Of two measurements of a pair the better counts, and one that failed counts in any case. */
static void take_pair(struct doctor *d, int from, char **words)
{
    const int to = atoi(words[1]);
    struct host_pair *pair, now = { .trip_ns = atoll(words[2]),
                                    .skew_ns = atoll(words[3]),
                                    .bytes_per_s = atof(words[4]) };

    if (to != d->hosts[from].towards || to < 0) /* it took too long, and is in the report */
        return;
    if (!*words[6]
        && !(now.trip_ns > 0 && now.trip_ns < MOST_TRIP_NS && now.bytes_per_s > 0
             && isfinite(now.bytes_per_s))) {
        words[6] = "what it measured makes no sense: its clock runs backwards, say";
        words[7] = "see its clock: chronyc tracking, dmesg";
    }
    pair = matrix_pair(&d->report.matrix, from, to);
    if (*words[5] && !pair->lookup)
        pair->lookup = strdup(words[5]);
    if (*words[6]) {
        set_error(pair, words[6], words[7]);
        pair->measured = 0;
    } else if (!pair->error) {
        if (!pair->measured || now.trip_ns < pair->trip_ns) {
            pair->trip_ns = now.trip_ns;
            pair->skew_ns = now.skew_ns;
        }
        if (now.bytes_per_s > pair->bytes_per_s)
            pair->bytes_per_s = now.bytes_per_s;
        pair->measured = 1;
    }
    done(d, from);
}

static void take_line(struct doctor *d, int host, char *line)
{
    struct examined *p = &d->hosts[host];
    char *words[8] = { "", "", "", "", "", "", "", "" }, *word;

    for (int i = 0; i < 8 && (word = strsep(&line, "\t")); i++)
        words[i] = word;
    if (!strcmp(words[0], "row")) {
        add(d, host, level_of_word(words[1]), words[2], words[3], words[4]);
    } else if (!strcmp(words[0], "fact") && p->facts < FACTS) {
        p->fact[p->facts].name = strdup(words[1]);
        p->fact[p->facts++].value = strdup(words[2]);
    } else if (!strcmp(words[0], "listen") && p->state == EXAMINED_CALLED) {
        p->address = strdup(words[1]);
        p->port = atoi(words[2]);
        p->state = EXAMINED_CHECKED;
        begin_if_all_checked(d);
    } else if (!strcmp(words[0], "ready") && is_waited_for(d, host)) {
        p->state = EXAMINED_READY;
        done(d, host);
    } else if (!strcmp(words[0], "pair")) {
        take_pair(d, host, words);
    }
}

struct said {
    struct doctor *doctor;
    int host;
};

static void take_word(void *arg, char *line)
{
    const struct said *said = arg;

    take_line(said->doctor, said->host, line);
}

static void show_error(void *arg, char *line)
{
    const struct said *said = arg;

    fprintf(stderr, "ctctl: %s: %s\n", name_of(said->doctor, said->host), line);
}

static void take_output(struct doctor *d, int host, int to, const char *data, size_t size)
{
    struct text *text = &d->hosts[host].line[to];
    struct said said = { d, host };

    text_add(text, data, size);
    text_take_lines(text, to == 2 ? show_error : take_word, &said);
}

static const char *reach_remedy(const struct doctor *d)
{
    return d->start.shell && !strcmp(d->start.shell, SRUN_SHELL)
               ? "make this work: srun --overlap --nodes=1 --ntasks=1 --nodelist=HOST ctctl "
                 "--version"
               : "make this work there without a question: ssh HOST ctctl --version (a key, "
                 "known_hosts, the path; --ssh=COMMAND for another shell)";
}

static void take_version(struct doctor *d, const struct relay_frame *frame)
{
    char version[24], text[160];

    if (frame_is_own_version(frame, version))
        return;
    snprintf(text, sizeof text, "its ctctl is version %s, and this one is %s", version, CT_VERSION);
    lose(d, frame->node, text, "install the same build on all hosts");
}

static void from_branch(void *arg, struct branch *branch, const struct relay_frame *frame)
{
    struct doctor *d = arg;
    char text[600];

    if (frame->node < branch->first || frame->node >= branch->first + branch->count)
        return;
    if (frame->type == FRAME_STARTED) {
        take_version(d, frame);
    } else if (frame->type == FRAME_OUTPUT) {
        take_output(d, frame->node, frame->number == 2 ? 2 : 1, frame->data, frame->size);
    } else if (frame->type == FRAME_LOST) {
        snprintf(text, sizeof text, "%.*s", (int)frame->size, frame->data);
        lose(d, frame->node, text, reach_remedy(d));
    } else if (frame->type == FRAME_ENDED) {
        snprintf(text, sizeof text, "its ctctl ended with %d", frame->number);
        lose(d, frame->node, text, "see what it printed");
    }
}

static void branch_gone(void *arg, struct branch *branch, const char *why)
{
    struct doctor *d = arg;
    char text[400];

    for (int host = branch->first; host < branch->first + branch->count; host++) {
        snprintf(text, sizeof text, "%s%s", why,
                 d->hosts[host].state == EXAMINED_CALLED ? " before its checks were done" : "");
        lose(d, host, text, reach_remedy(d));
    }
}

static const struct branch_hooks hooks = { from_branch, branch_gone };

/* A host that has nothing to measure hears nothing else, and its relay would take us for lost. */
static void beat(evutil_socket_t fd, short what, void *arg)
{
    struct doctor *d = arg;

    (void)fd;
    (void)what;
    branches_send(&d->branches, &(struct relay_frame){ FRAME_BEAT, FRAME_ALL, 0, NULL, 0 });
}

/* Of the checks, of a step, or of the end. */
static void time_is_over(evutil_socket_t fd, short what, void *arg)
{
    struct doctor *d = arg;
    char text[100];

    (void)fd;
    (void)what;
    if (d->ending) {
        event_base_loopbreak(d->base);
        return;
    }
    if (!d->measuring) {
        snprintf(text, sizeof text, "it has not answered within %d s", CHECK_SECONDS);
        for (int host = 0; host < d->report.hosts; host++)
            if (d->hosts[host].state == EXAMINED_CALLED)
                lose(d, host, text, reach_remedy(d));
        return;
    }
    snprintf(text, sizeof text, "it has not answered within %d s while it measured", STEP_SECONDS);
    /* With the last of them the next step begins, for which others are waited for. */
    for (int host = 0, left = d->pending; host < d->report.hosts && left > 0; host++)
        if (is_waited_for(d, host) && left--)
            lose(d, host, text, "see what it does: ctctl ps, top, dmesg");
}

/* ---- What follows from it ----------------------------------------------------------------- */

/* A pair that was to be measured and failed. */
static int failed(const struct doctor *d, int from, int to)
{
    return from != to && matrix_pair(&d->report.matrix, from, to)->error != NULL;
}

static int tried(const struct doctor *d, int host)
{
    return !d->report.lost[host] && d->hosts[host].port;
}

/* All other hosts fail to reach it, and they are several: then one line says it. */
static int is_cut_off(const struct doctor *d, int to)
{
    int others = 0;

    for (int from = 0; from < d->report.hosts; from++) {
        if (from == to || !tried(d, from))
            continue;
        if (!failed(d, from, to))
            return 0;
        others++;
    }
    return others > 1;
}

static void diagnose_reach(struct doctor *d)
{
    char text[700];

    for (int to = 0; to < d->report.hosts; to++) {
        const int cut_off = is_cut_off(d, to);
        int said = 0;

        for (int from = 0; from < d->report.hosts; from++) {
            const struct host_pair *pair = matrix_pair(&d->report.matrix, from, to);

            if (!failed(d, from, to) || (cut_off && said))
                continue;
            if (d->report.lost[from] || d->report.lost[to]) /* which is in the report */
                continue;
            if (cut_off)
                snprintf(text, sizeof text, "no other host reaches it; %s: %s", name_of(d, from),
                         pair->error);
            else
                snprintf(text, sizeof text, "it does not reach %s: %s", name_of(d, to),
                         pair->error);
            add(d, cut_off ? to : from, LEVEL_FAIL, "network", text, pair->remedy);
            said = 1;
        }
    }
}

static void diagnose_names(struct doctor *d)
{
    char text[500];

    for (int to = 0; to < d->report.hosts; to++)
        for (int from = 0; from < d->report.hosts; from++) {
            const struct host_pair *pair = matrix_pair(&d->report.matrix, from, to);

            if (!pair->lookup)
                continue;
            snprintf(text, sizeof text, "it does not find %s: %s%s", name_of(d, to), pair->lookup,
                     to == 0 ? "; of the first host all others need it (MASTER_ADDR)" : "");
            add(d, from, to == 0 ? LEVEL_FAIL : LEVEL_WARN, "names", text,
                "the same name server or /etc/hosts on all hosts, or --hosts with addresses");
        }
}

static const char speed_remedy[] = "compare the interfaces of both (ethtool eth0: Speed; ip -s "
                                   "link: errors), cables, switch ports, "
                                   "and what else runs there";

static void diagnose_slow_pair(struct doctor *d, int from, int to, double usual)
{
    struct host_pair *pair = matrix_pair(&d->report.matrix, from, to);
    char text[300];

    pair->level = LEVEL_WARN;
    if (host_is_slow(&d->report.matrix, from, usual) || host_is_slow(&d->report.matrix, to, usual))
        return;
    snprintf(text, sizeof text, "it sends to %s at %.3g GB/s; usual here are %.3g GB/s",
             name_of(d, to), pair->bytes_per_s / 1e9, usual / 1e9);
    add(d, from, LEVEL_WARN, "bandwidth", text, speed_remedy);
}

static void diagnose_speed(struct doctor *d)
{
    const struct matrix *matrix = &d->report.matrix;
    const double bandwidth = usual_bandwidth(matrix), trip = usual_trip_us(matrix);
    char text[300];

    for (int from = 0; from < d->report.hosts; from++) {
        if (host_is_slow(matrix, from, bandwidth)) {
            snprintf(text, sizeof text,
                     "all that it sends and gets is slow; usual here are %.3g GB/s",
                     bandwidth / 1e9);
            add(d, from, LEVEL_WARN, "bandwidth", text, speed_remedy);
        }
        for (int to = 0; to < d->report.hosts; to++) {
            struct host_pair *pair = matrix_pair(matrix, from, to);

            if (pair_is_slow(pair, bandwidth))
                diagnose_slow_pair(d, from, to, bandwidth);
            if (pair_is_far(pair, trip)) {
                pair->level = LEVEL_WARN;
                snprintf(text, sizeof text, "%s is %.0f us away and back; usual here are %.0f us",
                         name_of(d, to), (double)pair->trip_ns / 1e3, trip);
                add(d, from, LEVEL_WARN, "round trip", text,
                    "look at the way (traceroute), and at what else uses it (ip -s link)");
            }
        }
    }
}

static void diagnose_clocks(struct doctor *d)
{
    char text[200];

    if (!(d->report.skews = calloc((size_t)d->report.hosts, sizeof *d->report.skews))
        || matrix_skews(&d->report.matrix, d->report.skews) < 0)
        return;
    for (int host = 1; host < d->report.hosts; host++) {
        const int64_t skew = d->report.skews[host];
        const double s = (double)skew / 1e9;

        if (skew == NO_SKEW)
            continue;
        snprintf(text, sizeof text, "its clock is %.3g ms %s that of %s",
                 s < 0 ? -s * 1e3 : s * 1e3, s < 0 ? "behind" : "ahead of", name_of(d, 0));
        add(d, host, clock_level(skew), "clock skew", text,
            clock_level(skew) == LEVEL_OK ? "" : "run chrony, ntpd or systemd-timesyncd on both");
    }
}

/* "6.1 on h0, h1; 6.5 on h2", in the order of the hosts. */
static void compare_fact(struct doctor *d, const char *name)
{
    struct text text = { 0 };
    int values = 0;

    for (int host = 0; host < d->report.hosts; host++) {
        const char *value = fact_of(&d->hosts[host], name);
        int first = value != NULL, hosts = 0;

        for (int before = 0; before < host && first; before++) {
            const char *other = fact_of(&d->hosts[before], name);

            first = !other || strcmp(other, value) != 0;
        }
        if (!first)
            continue;
        text_print(&text, "%s%s on ", values++ ? "; " : "", value);
        for (int same = host; same < d->report.hosts; same++) {
            const char *other = fact_of(&d->hosts[same], name);

            if (other && !strcmp(other, value))
                text_print(&text, "%s%s", hosts++ ? ", " : "", name_of(d, same));
        }
    }
    text_add(&text, "", 1);
    if (text.data && values > 0)
        add(d, -1, values > 1 ? LEVEL_WARN : LEVEL_OK, name, text.data,
            values > 1 ? "make the hosts alike; a job goes at the pace of the slowest" : "");
    free(text.data);
}

static void diagnose(struct doctor *d)
{
    diagnose_reach(d);
    diagnose_names(d);
    diagnose_speed(d);
    diagnose_clocks(d);
    for (int host = 0; host < d->report.hosts && d->report.hosts > 1; host++) {
        const struct examined *p = &d->hosts[host];

        for (int i = 0; i < p->facts; i++) {
            int seen = 0;

            for (int before = 0; before < host && !seen; before++)
                seen = fact_of(&d->hosts[before], p->fact[i].name) != NULL;
            if (!seen)
                compare_fact(d, p->fact[i].name);
        }
    }
}

/* ---- Begin and end ----------------------------------------------------------------------------
 */

/* Those of --hosts or --hostfile, of the scheduler, or this one.  0, or the exit code and the error
 * is logged. */
static int find_hosts(struct doctor *d)
{
    const struct options *o = &d->options;
    const char *step = getenv("SLURM_STEP_NUM_NODES");
    const char *list = o->hosts;
    struct why why;
    int result;

    d->start.shell = (char *)o->ssh;
    if (!list && !o->hostfile) {
        const int in_step = step && atoi(step) > 1;

        list = o->surroundings.srun_nodes > 0 ? getenv("SLURM_JOB_NODELIST")
               : in_step                      ? getenv("SLURM_STEP_NODELIST")
                                              : NULL;
        if (list)
            d->start.shell = SRUN_SHELL;
        else
            list = "localhost";
    }
    result = !o->hosts && o->hostfile ? host_list_read(&d->start.hosts, o->hostfile, &why)
                                      : host_list_parse(&d->start.hosts, list, &why);
    if (result < 0)
        log_line(LOG_ERROR, "%s: %s",
                 o->hosts                         ? "--hosts"
                 : o->hostfile                    ? "--hostfile"
                 : o->surroundings.srun_nodes > 0 ? "SLURM_JOB_NODELIST"
                                                  : "SLURM_STEP_NODELIST",
                 why.text);
    return result < 0 ? 2 : 0;
}

/* ctrun's own sources: the words, CT_HOSTS and its like, job.ini, the scheduler.  0, or the exit
 * code and the error is logged. */
static int read_options(struct doctor *d, const struct doctor_options *given)
{
    static const char *const names[] = { "hosts", "hostfile", "ssh", "iface" };
    const char *const values[] = { given->hosts, given->hostfile, given->ssh, given->iface };
    char *argv[8] = { "ctctl" };
    char error[1024];
    int count = 1;

    unsetenv(
        "SLURM_STEP_NUM_TASKS"); /* several tasks a node would be wrong for ctrun, not for us */
    for (int i = 0; i < 4; i++)
        if (values[i]) {
            if (asprintf(&d->words[i], "--%s=%s", names[i], values[i]) < 0) {
                d->words[i] = NULL;
                log_line(LOG_ERROR, "out of memory for --%s", names[i]);
                return 1;
            }
            argv[count++] = d->words[i];
        }
    argv[count] = "true"; /* a program, which ctrun would start */
    if (options_read(&d->options, argv, error, sizeof error) == OPTIONS_RUN)
        return 0;
    log_line(LOG_ERROR, "%s (ctctl --help)", error);
    return 2;
}

static int make_token(char *token)
{
    unsigned char bytes[TOKEN / 2];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* With the name of the secret's file, which is checked on each host. */
static char **environment_to_check(void)
{
    const char *file = getenv("CT_STORE_SECRET_FILE");
    char **all = remote_environment(1);
    int count = 0;

    while (all && all[count])
        count++;
    if (all && file && *file && asprintf(&all[count], "CT_STORE_SECRET_FILE=%s", file) < 0)
        all[count] = NULL;
    return all;
}

/* 0, or the exit code and the error is logged. */
static int plan(struct doctor *d)
{
    static char path[4096], folder[4096], count[16];
    static char *words[8];
    const int code = find_hosts(d);
    int hosts = d->start.hosts.count;

    if (code != 0)
        return code;
    program_own(path, sizeof path);
    if (!getcwd(folder, sizeof folder))
        snprintf(folder, sizeof folder, "/");
    snprintf(count, sizeof count, "%d", hosts);
    d->hosts = calloc((size_t)hosts, sizeof *d->hosts);
    d->report.hosts = hosts;
    d->report.names = calloc((size_t)hosts, sizeof *d->report.names);
    d->report.lost = calloc((size_t)hosts, sizeof *d->report.lost);
    d->start.variables = environment_to_check();
    if (!d->hosts || !d->report.names || !d->report.lost || !d->start.variables
        || matrix_open(&d->report.matrix, hosts) < 0) {
        log_line(LOG_ERROR, "out of memory for %d hosts", hosts);
        return 1;
    }
    if (make_token(d->token) < 0) {
        log_line(LOG_ERROR, "no random numbers: %s", strerror(errno));
        return 1;
    }
    for (int host = 0; host < hosts; host++) {
        d->report.names[host] = strdup(host_without_user(d->start.hosts.hosts[host].name));
        d->hosts[host].towards = -1;
    }
    words[0] = DOCTOR_WORD;
    words[1] = path;
    words[2] = folder;
    words[3] = (char *)(d->options.iface ? d->options.iface : "");
    words[4] = d->report.names[0];
    words[5] = count;
    d->start.nodes = hosts;
    d->start.at_once = 1;
    d->start.head = d->report.names[0];
    d->start.run_id = "doctor";
    d->start.folder = "/"; /* the user's may be missing, which is a finding */
    d->start.path = path;
    d->start.words = words;
    return 0;
}

static int examine(struct doctor *d)
{
    const struct timeval limit = { CHECK_SECONDS, 0 }, often = { BEAT_SECONDS, 0 };
    const int64_t began = clock_ms();
    sigset_t all, before;
    int result;

    if (!(d->base = event_base_new())) {
        log_line(LOG_ERROR, "cannot watch for events: %s", strerror(errno));
        return 1;
    }
    evtimer_assign(&d->timer, d->base, time_is_over, d);
    event_add(&d->timer, &limit);
    event_assign(&d->beat, d->base, -1, EV_PERSIST, beat, d);
    event_add(&d->beat, &often);
    signal(SIGPIPE, SIG_IGN); /* an ssh that has ended is read as such */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* spawn() wants it */
    result = branches_open(&d->branches, d->base, &d->start, 0, d->report.hosts, &hooks, d);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        event_base_dispatch(d->base);
    branches_close(&d->branches);
    d->report.seconds = (double)(clock_ms() - began) / 1e3;
    return result < 0 ? 1 : 0;
}

static void doctor_close(struct doctor *d)
{
    for (int host = 0; d->hosts && host < d->report.hosts; host++) {
        struct examined *p = &d->hosts[host];

        free(p->line[1].data);
        free(p->line[2].data);
        free(p->address);
        for (int i = 0; i < p->facts; i++) {
            free(p->fact[i].name);
            free(p->fact[i].value);
        }
    }
    free(d->hosts);
    report_free(&d->report);
    for (int i = 0; d->start.variables && d->start.variables[i]; i++)
        free(d->start.variables[i]);
    free(d->start.variables);
    host_list_free(&d->start.hosts);
    options_free(&d->options);
    for (int i = 0; i < 4; i++)
        free(d->words[i]);
    if (d->base)
        event_base_free(d->base);
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
    struct doctor d = { 0 };
    int code;

    if (!given->hosts && !given->hostfile && task && atoi(task) > 0)
        return 0; /* srun started one on each node: the first examines them all */
    log_setup("ctctl", LOG_WARN);
    code = read_options(&d, given);
    if (code == 0)
        code = plan(&d);
    if (code == 0)
        code = examine(&d);
    if (code == 0) {
        diagnose(&d);
        if (given->json)
            report_print_json(&d.report);
        else
            report_print(&d.report, given->verbose);
        code = report_worst(&d.report) == LEVEL_FAIL;
    }
    doctor_close(&d);
    return code;
}
