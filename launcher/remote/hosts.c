/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - `ctrun --hosts=a:4,b:4 ./app` starts a ctrun on each host, over one connection to each
 * host or over a tree of connections.
 *
 * 1. Each host gets FRAME_START and answers FRAME_STARTED.
 * 2. The first host's ctrun, which is node 0, binds a free port and sends the port's number
 *    (FRAME_LISTENS).
 * 3. All other nodes get the port (FRAME_PORT) and start.  From then on they are nodes of a job
 *    with a fixed number of nodes, and node 0 decides (launcher/nodes/coordinator.h).
 * 4. The user's ctrun writes the output line by line, and passes input and signals on.
 * 5. If a host can't be reached before its node has started, the user's ctrun stops the job, since
 *    the other nodes would wait for that node.  If a node is lost later, node 0 decides what
 *    happens.  The exit code is node 0's. */
#include "launcher/remote/remote.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/values/hosts_node.h"
#include "launcher/nodes/job_rendezvous.h"
#include "launcher/detach/detach.h"
#include "launcher/remote/branch.h"
#include "launcher/stdio/console.h"
#include "launcher/stdio/output.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"
#include "launcher/workers/signals.h"
#include "launcher/workers/worker_env.h"
#include "runtime/util/log.h"

#define START_SECONDS 60       /* seconds that all hosts have to answer */
#define ALONE_SECONDS 5        /* seconds that node 0 has to end after another node failed first */
#define END_SECONDS 20         /* seconds for nodes to end, plus twice --shutdown-timeout */
#define INPUT_WINDOW (1 << 20) /* most bytes of input sent to a node, but not in its pipe yet */
#define READER_SECONDS 600     /* more seconds for nodes to end if nothing reads the output */
#define NO_NODE (-2)
#define LINE_WAITS_MS 200 /* ms after which a line without its newline is shown */

struct host_state {
    enum {
        NODE_CALLED,
        NODE_STARTED,  /* the node's relay answered */
        NODE_LISTENED, /* node 0's port is known, so the node's ctrun starts */
        NODE_ENDED
    } state;
    int64_t untaken;     /* bytes of input sent to the node, but not in ctrun's pipe yet */
    struct text line[3]; /* unfinished line of stdout [1] and of stderr [2] */
};

struct hosts {
    const struct options *options;
    struct event_base *base;
    struct start start;
    struct branches branches;
    struct host_state *nodes;
    struct console consoles[2], *to[3];
    struct event signals, input, lines, patience, alone, beat, foreground, progress;
    int signal_fd, port, code, ended;
    int stopped; /* 1 if this ctrun stopped the job, so its exit code is `code` */
    int ending;  /* 1 if a node has ended, or all nodes were asked to stop */
    /* Number of hosts that answered; seconds spent waiting for the hosts or for node 0's port. */
    int answered, waited;
    int waited_for_reader;
    int early, early_code; /* number and exit code of the first node that failed */
    int input_node;        /* node that gets standard input, FRAME_ALL, or NO_NODE */
    int input_over;
};

static const char *host_of(const struct hosts *h, int node)
{
    return h->start.hosts.hosts[node].name;
}

static void hosts_send_all(struct hosts *h, enum frame_type type, int node, int number)
{
    branches_send(&h->branches, &(struct relay_frame){ type, node, number, NULL, 0 });
}

static void end_progress(struct hosts *h)
{
    event_del(&h->progress);
    console_progress(h->to[STDERR_FILENO], "");
}

/* Sets the limit for all nodes to end.  The limit includes the time that workers have to stop. */
static void begin_patience(struct hosts *h)
{
    const struct timeval time = { END_SECONDS + 2 * (time_t)h->options->shutdown_timeout, 0 };

    if (h->ending)
        return;
    h->ending = 1;
    end_progress(h);
    event_add(&h->patience, &time);
}

static void node_ended(struct hosts *h, int node)
{
    if (h->nodes[node].state == NODE_ENDED)
        return;
    h->nodes[node].state = NODE_ENDED;
    if (++h->ended == h->start.nodes)
        event_base_loopbreak(h->base);
    else
        begin_patience(h);
}

/* Counts a node as ended if its relay has not answered, since nothing runs there yet.  If such a
 * relay starts late, it reads the signal right after FRAME_START. */
static void give_up_unreached(struct hosts *h)
{
    for (int node = 0; node < h->start.nodes; node++)
        if (h->nodes[node].state == NODE_CALLED)
            node_ended(h, node);
}

/* Stops the job because of an error that only this ctrun knows, so that no ctrun on a host would
 * stop the job. */
static void stop_job(struct hosts *h, int code)
{
    if (h->stopped)
        return;
    h->stopped = 1;
    h->code = code;
    hosts_send_all(h, FRAME_SIGNAL, FRAME_ALL, SIGTERM);
    give_up_unreached(h);
    begin_patience(h);
}

/* ---- Output ------------------------------------------------------------------------ */

static void output_relieved(void *arg)
{
    struct hosts *h = arg;

    if (!console_full(h->to[1]) && !console_full(h->to[2]))
        branches_read(&h->branches, 1);
}

static void hosts_show(struct hosts *h, int to, const char *data, size_t size)
{
    console_wipe(h->to[to]);
    console_add(h->to[to], data, size);
    console_flush(h->to[to]);
    if (console_full(h->to[to]))
        branches_read(&h->branches, 0);
}

/* Shows a line of this ctrun's log.  The line replaces the progress line. */
static void hosts_say(void *arg, const char *line, size_t size)
{
    hosts_show(arg, STDERR_FILENO, line, size);
}

static void show_progress(evutil_socket_t fd, short what, void *arg)
{
    struct hosts *h = arg;
    char text[400];

    (void)fd;
    (void)what;
    if (h->answered < h->start.nodes)
        snprintf(text, sizeof text, "waiting %d of %d s: %d of %d hosts %s answered", ++h->waited,
                 START_SECONDS, h->answered, h->start.nodes, h->answered == 1 ? "has" : "have");
    else
        snprintf(text, sizeof text, "waiting %d of %d s: node 0 (%s) does not listen yet",
                 ++h->waited, START_SECONDS, host_of(h, 0));
    console_progress(h->to[STDERR_FILENO], text);
}

/* Shows only whole lines, so that lines of several hosts do not mix. */
static void take_output(struct hosts *h, int node, int to, const char *data, size_t size)
{
    const struct timeval soon = { 0, LINE_WAITS_MS * 1000 };
    struct text *line = &h->nodes[node].line[to];
    const char *end = memrchr(data, '\n', size);
    const size_t whole = end ? (size_t)(end - data) + 1 : 0;

    if (whole) {
        text_add(line, data, whole);
        hosts_show(h, to, line->data, line->used);
        line->used = 0;
    }
    text_add(line, data + whole, size - whole);
    if (line->used && !evtimer_pending(&h->lines, NULL))
        event_add(&h->lines, &soon);
}

static void show_rests(struct hosts *h)
{
    for (int node = 0; node < h->start.nodes; node++)
        for (int to = 1; to <= 2; to++) {
            struct text *line = &h->nodes[node].line[to];

            if (line->used)
                hosts_show(h, to, line->data, line->used);
            line->used = 0;
        }
}

static void lines_waited(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    show_rests(arg);
}

/* ---- Input ------------------------------------------------------------------------- */

static int gets_input(const struct hosts *h, int node)
{
    return h->input_node == FRAME_ALL || h->input_node == node;
}

/* Returns how many more bytes of input may be sent.  Returns 0 or less if a node must read first,
 * and 0 if no node is left that reads input. */
static int64_t input_window(const struct hosts *h)
{
    int64_t most = 0;
    int readers = 0;

    for (int node = 0; node < h->start.nodes; node++)
        if (gets_input(h, node) && h->nodes[node].state != NODE_ENDED) {
            readers++;
            if (h->nodes[node].untaken > most)
                most = h->nodes[node].untaken;
        }
    return readers ? INPUT_WINDOW - most : 0;
}

static void send_input(struct hosts *h, const char *data, size_t size)
{
    branches_send(&h->branches, &(struct relay_frame){ FRAME_INPUT, h->input_node, 0, data, size });
    for (int node = 0; node < h->start.nodes; node++)
        if (gets_input(h, node))
            h->nodes[node].untaken += (int64_t)size;
}

/* True if ctrun runs in the background of a terminal, where a read from the terminal would stop
 * ctrun. */
static int is_in_background(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp();
}

static int may_read_input(void)
{
    return !is_in_background() && poll(&(struct pollfd){ STDIN_FILENO, POLLIN, 0 }, 1, 0) == 1;
}

static void pump_input(struct hosts *h)
{
    const struct timeval later = { 1, 0 };
    char data[1 << 16];

    while (!h->input_over && h->port && input_window(h) > 0 && may_read_input()) {
        const ssize_t got = read(STDIN_FILENO, data, sizeof data);

        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            break;
        h->input_over = got <= 0;
        send_input(h, data, got > 0 ? (size_t)got : 0);
    }
    if (h->input_over || !h->port || input_window(h) <= 0)
        return;
    if (is_in_background())
        event_add(&h->foreground, &later);
    else
        event_add(&h->input, NULL); /* epoll can't watch a file, but a file never blocks */
}

static void input_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    pump_input(arg);
}

/* ---- Nodes ------------------------------------------------------------------------- */

/* Counts a node as ended and logs why it was lost.  Stops the job if the node is node 0.  Stops the
 * job also if `began` is 0, since the node's ctrun has not joined the job, so node 0 would not
 * notice the loss. */
static void node_lost(struct hosts *h, int node, int began, const char *why)
{
    if (h->nodes[node].state == NODE_ENDED)
        return;
    if (!h->stopped)
        log_line(LOG_ERROR, "host %s (node %d): %s", host_of(h, node), node, why);
    node_ended(h, node);
    if (!began || node == 0)
        stop_job(h, 1);
}

/* Ends the wait if all hosts have answered and node 0's port is known. */
static void check_started(struct hosts *h)
{
    if (h->answered < h->start.nodes || !h->port || h->ending)
        return;
    event_del(&h->patience);
    end_progress(h);
    detach_tell_began(h->options);
}

static void node_started(struct hosts *h, const struct relay_frame *frame)
{
    const int node = frame->node;
    char version[24], why[160];

    if (h->nodes[node].state != NODE_CALLED)
        return;
    h->nodes[node].state = h->port ? NODE_LISTENED : NODE_STARTED;
    h->answered++;
    check_started(h);
    if (frame_is_own_version(frame, version))
        return;
    snprintf(why, sizeof why, "its ctrun is version %s, and this one is %s: they must be the same",
             version, CT_VERSION);
    node_lost(h, node, 0, why);
}

static void node_0_listens(struct hosts *h, int port)
{
    if (h->port || port < 1 || port > 65535)
        return;
    h->port = port;
    hosts_send_all(h, FRAME_PORT, FRAME_ALL, port);
    for (int node = 0; node < h->start.nodes; node++) {
        if (h->nodes[node].state == NODE_STARTED)
            h->nodes[node].state = NODE_LISTENED;
        if (!gets_input(h, node))
            hosts_send_all(h, FRAME_INPUT, node, 0);
    }
    h->input_over = h->input_node == NO_NODE;
    check_started(h);
    pump_input(h);
}

/* Stops the job if a node failed, but node 0 has not ended since.  Nodes that have joined a job end
 * together, so the failed node never joined, and the other nodes would wait for it. */
static void ended_alone(evutil_socket_t fd, short what, void *arg)
{
    struct hosts *h = arg;

    (void)fd;
    (void)what;
    /* The job is over.  Nodes that have not ended are late or lost. */
    if (h->nodes[0].state == NODE_ENDED)
        return;
    if (!h->stopped)
        log_line(LOG_ERROR, "host %s (node %d): its ctrun ended with %d; the others are stopped",
                 host_of(h, h->early), h->early, h->early_code);
    stop_job(h, h->early_code);
}

static void take_end(struct hosts *h, int node, int code)
{
    const struct timeval moment = { ALONE_SECONDS, 0 };

    if (node == 0 && !h->stopped)
        h->code = code;
    if (node == 0 && !h->port) { /* node 0's ctrun ended before it bound a port */
        if (code == 0)
            log_line(LOG_ERROR,
                     "host %s (node 0): its ctrun ended with 0 before it listened: is it another "
                     "program of that name? ssh %s ctrun --version",
                     host_of(h, 0), host_of(h, 0));
        stop_job(h, code ? code : 1);
    }
    if (code != 0 && !h->ending) {
        h->early = node;
        h->early_code = code;
        event_add(&h->alone, &moment);
    }
    node_ended(h, node);
}

static const char *how_far(const struct hosts *h, int node)
{
    return h->nodes[node].state == NODE_CALLED ? " before ctrun was started there" : "";
}

static void hosts_from_branch(void *arg, struct branch *branch, const struct relay_frame *frame)
{
    struct hosts *h = arg;
    const int node = frame->node;
    char why[600];

    if (node < branch->first || node >= branch->first + branch->count)
        return;
    switch (frame->type) {
    case FRAME_STARTED:
        node_started(h, frame);
        break;
    case FRAME_LISTENS:
        if (node == 0)
            node_0_listens(h, frame->number);
        break;
    case FRAME_OUTPUT:
        take_output(h, node, frame->number == 2 ? 2 : 1, frame->data, frame->size);
        break;
    case FRAME_TAKEN:
        if (frame->number >= 0 && frame->number <= h->nodes[node].untaken)
            h->nodes[node].untaken -= frame->number;
        pump_input(h);
        break;
    case FRAME_LOST:
        snprintf(why, sizeof why, "%.*s%s", (int)frame->size, frame->data,
                 frame->number == 0 ? how_far(h, node) : "");
        node_lost(h, node, frame->number == 0 && h->nodes[node].state == NODE_LISTENED, why);
        break;
    case FRAME_ENDED:
        take_end(h, node, frame->number);
        break;
    default:
        break;
    }
}

static void hosts_branch_gone(void *arg, struct branch *branch, const char *why)
{
    struct hosts *h = arg;
    char words[400];

    for (int node = branch->first; node < branch->first + branch->count; node++) {
        snprintf(words, sizeof words, "%s%s", why, how_far(h, node));
        node_lost(h, node, h->nodes[node].state == NODE_LISTENED, words);
    }
}

static const struct branch_hooks hooks = { hosts_from_branch, hosts_branch_gone };

/* ---- Time and signals --------------------------------------------------------------- */

static void signals_readable(evutil_socket_t fd, short what, void *arg)
{
    struct signalfd_siginfo info;
    struct hosts *h = arg;

    (void)what;
    while (read(fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        hosts_send_all(h, FRAME_SIGNAL, FRAME_ALL, (int)info.ssi_signo);
        if (!sigismember(&h->options->signals.set, (int)info.ssi_signo))
            continue;
        if (!h->stopped && h->answered < h->start.nodes)
            /* Node 0 may not have started, so it may never send an exit code. */
            h->code = 128 + (int)info.ssi_signo;
        give_up_unreached(h);
        begin_patience(h);
    }
}

static void beat(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    hosts_send_all(arg, FRAME_BEAT, FRAME_ALL, 0);
}

/* Ends a wait.  Before the end of the job, the wait is for hosts that have not answered and for
 * node 0's port.  At the end of the job, the wait is for nodes that have not ended. */
static void patience_over(evutil_socket_t fd, short what, void *arg)
{
    struct hosts *h = arg;
    const struct timeval more = { READER_SECONDS, 0 };
    const int ends = h->ending;

    (void)fd;
    (void)what;
    if (ends && !h->stopped && (console_full(h->to[1]) || console_full(h->to[2]))
        && !h->waited_for_reader++) { /* FRAME_ENDED may come after unread output */
        event_add(&h->patience, &more);
        return;
    }
    if (!ends && h->answered == h->start.nodes)
        log_line(LOG_ERROR,
                 "host %s (node 0): its ctrun does not listen after %d s; see what it does: ctctl "
                 "ps there, or ctctl doctor",
                 host_of(h, 0), START_SECONDS);
    for (int node = 0; node < h->start.nodes; node++) {
        if (h->nodes[node].state == NODE_ENDED || (!ends && h->nodes[node].state > NODE_CALLED))
            continue;
        if (ends)
            log_line(LOG_ERROR, "host %s (node %d): its ctrun has not ended: its connection is cut",
                     host_of(h, node), node);
        else
            log_line(LOG_ERROR, "host %s (node %d) has not answered within %d s", host_of(h, node),
                     node, START_SECONDS);
        if (!ends)
            node_ended(h, node);
    }
    if (ends && h->code == 0)
        h->code = 1;
    if (ends)
        event_base_loopbreak(h->base);
    else
        stop_job(h, 1);
}

/* ---- What the hosts get ------------------------------------------------------------- */

int remote_is_for_front(const char *entry)
{
    static const char *const names[] = { "CT_HOSTS=", "CT_SSH=", "CT_JOB=", "CT_HOSTFILE=",
                                         "CT_STORE_SECRET" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(entry, names[i], strlen(names[i])))
            return 1;
    return 0;
}

/* True if a variable describes this host, this login or the terminal, or is only for the ctrun that
 * the user starts.  Other hosts must not get such a variable. */
static int stays_here(const char *entry)
{
    static const char *const names[] = {
        "HOME=",  "HOST=",       "HOSTNAME=", "LOGNAME=", "MAIL=",    "OLDPWD=",    "PWD=",
        "SHELL=", "SHLVL=",      "USER=",     "_=",       "DISPLAY=", "WINDOWID=",  "SSH_",
        "XDG_",   "XAUTHORITY=", "DBUS_",     "TMUX",     "STY=",     "KRB5CCNAME="
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(entry, names[i], strlen(names[i])))
            return 1;
    return remote_is_for_front(entry);
}

char **remote_environment(int room)
{
    int count = 0;
    char **all;

    for (char **entry = environ; *entry; entry++)
        room++;
    if (!(all = calloc((size_t)room + 1, sizeof *all)))
        return NULL;
    for (char **entry = environ; *entry; entry++)
        if (!stays_here(*entry))
            all[count++] = strdup(*entry);
    return all;
}

/* Returns all settings of this ctrun as words, also those from variables and job.ini, since the
 * ctruns on the hosts do not read job.ini.  Returns NULL if memory runs out. */
static char **words_for_hosts(const struct options *options)
{
    int count = 0, program = 0;
    char **words;

    while (options->program[program])
        program++;
    if (!(words = calloc((size_t)(OPTIONS + program + 3), sizeof *words)))
        return NULL;
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);
        const struct setting *setting = &options->settings[i];
        const int is_on =
            row->value || (row->parse && *(const int *)((const char *)options + row->field));

        if (setting->from == FROM_DEFAULT || !row->parse || !is_on || i == OPTION_HOSTS
            || i == OPTION_HOSTFILE || i == OPTION_SSH || i == OPTION_JOB || i == OPTION_NNODES
            || i == OPTION_STORE_SECRET_FILE)
            continue;
        if (asprintf(&words[count], row->value ? "--%s=%s" : "--%s", row->name, setting->text) < 0)
            return NULL;
        count++;
    }
    words[count++] = strdup("--job=/dev/null");
    words[count++] = strdup("--");
    for (int i = 0; i < program; i++)
        words[count++] = strdup(options->program[i]);
    return words;
}

/* Returns the names of the hosts, separated by commas, for messages about missing nodes.  The
 * caller frees the text.  Returns NULL if the text is too long. */
static char *names_of(const struct host_list *hosts)
{
    struct text names = { 0 };

    for (int i = 0; i < hosts->count && names.used < HOSTS_NAMES_MOST; i++) {
        const char *name = host_without_user(hosts->hosts[i].name);

        if (i > 0)
            text_add(&names, ",", 1);
        text_add(&names, name, strlen(name));
    }
    text_add(&names, "", 1);
    if (names.used <= HOSTS_NAMES_MOST)
        return names.data;
    free(names.data);
    return NULL;
}

/* Returns the variables for the hosts, which are the environment, the variables of [env] and
 * [collectives] in job.ini, the names of the hosts, and the secret.  Returns NULL if memory runs
 * out. */
static char **variables_for_hosts(const struct options *options, const struct host_list *hosts,
                                  const char *secret)
{
    char **all = remote_environment(options->file.count + 2), *names = names_of(hosts);
    int count = 0;

    while (all && all[count])
        count++;
    if (all && names && asprintf(&all[count], HOSTS_NAMES_VARIABLE "=%s", names) > 0)
        count++;
    free(names);
    if (!all)
        return NULL;
    for (int i = 0; i < options->file.count; i++) {
        const struct jobfile_entry *entry = &options->file.entries[i];
        char name[WORKER_ENV_NAME];

        worker_env_name(entry, name, sizeof name);
        if (strcmp(entry->section, "ctrun") != 0 && !(getenv(name) && *getenv(name))
            && asprintf(&all[count], "%s=%s", name, entry->value) > 0)
            count++;
    }
    if (asprintf(&all[count], "CT_STORE_SECRET=%s", secret) < 0)
        all[count] = NULL;
    return all;
}

static int hosts_is_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

/* Refuses options that contradict --hosts or --hostfile, which already lists the nodes.  Returns 0,
 * or -1 after an error is logged. */
static int hosts_check_options(const struct options *options, const struct host_list *hosts)
{
    static const enum option said[] = { OPTION_NODE_RANK, OPTION_STANDALONE, OPTION_RDZV_BACKEND,
                                        OPTION_RDZV_ENDPOINT, OPTION_LOCAL_ADDR };
    char words[600], source[600];

    setting_words(options, options->hosts ? OPTION_HOSTS : OPTION_HOSTFILE, source, sizeof source);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (options->settings[said[i]].from != FROM_DEFAULT) {
            setting_words(options, said[i], words, sizeof words);
            log_line(LOG_ERROR,
                     "%s contradicts %s, which says where the nodes are: leave one of them out (a "
                     "job by ssh is a fixed one; for an elastic one start ctrun on each host)",
                     words, source);
            return -1;
        }
    if (options->settings[OPTION_NNODES].from != FROM_DEFAULT
        && options->nnodes.max != hosts->count) {
        setting_words(options, OPTION_NNODES, words, sizeof words);
        log_line(LOG_ERROR, "%s, but %s names %d %s: leave --nnodes out", words, source,
                 hosts->count, hosts->count == 1 ? "host" : "hosts");
        return -1;
    }
    if (hosts->count > 1 && !options->master_addr
        && hosts_is_loopback(host_without_user(hosts->hosts[0].name))) {
        log_line(LOG_ERROR,
                 "--hosts: the first host is %s, where the other hosts do not find it; give its "
                 "name, or --master-addr",
                 host_without_user(hosts->hosts[0].name));
        return -1;
    }
    for (int i = 1; i < hosts->count && hosts->count > FAN_OUT; i++)
        if (hosts_is_loopback(host_without_user(hosts->hosts[i].name))) {
            log_line(LOG_ERROR,
                     "--hosts: %s names a different host on each host, and with more than %d hosts "
                     "some of them start others; give the host's own name",
                     host_without_user(hosts->hosts[i].name), FAN_OUT);
            return -1;
        }
    return 0;
}

/* Sets input_node to the node that gets standard input, which for --stdin=RANK is the node of that
 * rank.  Returns 0, or -1 after an error is logged, if only the hosts know how many ranks each node
 * has. */
static int find_input_node(struct hosts *h)
{
    const struct options *options = h->options;
    const struct stdin_to *to = &options->stdin_to;
    const int is_given = options->settings[OPTION_NPROC_PER_NODE].from != FROM_DEFAULT;
    int rank = to->rank;

    h->input_node = to->kind == STDIN_ALL ? FRAME_ALL : to->kind == STDIN_NONE ? NO_NODE : 0;
    if (to->kind != STDIN_RANK || rank == 0)
        return 0;
    if (is_given && options->nproc.kind != NPROC_NUMBER) {
        log_line(LOG_ERROR,
                 "--stdin=%d: with --nproc-per-node=%s only each host knows how many workers it "
                 "has; give rank 0, all or none",
                 rank, options->settings[OPTION_NPROC_PER_NODE].text);
        return -1;
    }
    for (h->input_node = 0; h->input_node < h->start.nodes; h->input_node++) {
        const int slots = h->start.hosts.hosts[h->input_node].slots;
        const int workers = is_given ? options->nproc.number : slots ? slots : 1;

        if (rank < workers)
            return 0;
        rank -= workers;
    }
    h->input_node = NO_NODE; /* the ctruns on the hosts report that the job has no such rank */
    return 0;
}

int remote_start(struct start *start, const struct options *options)
{
    static char path[4096], folder[4096], run_id[32];
    unsigned random = (unsigned)getpid();
    struct why why;

    if ((options->hosts ? host_list_parse(&start->hosts, options->hosts, &why)
                        : host_list_read(&start->hosts, options->hostfile, &why))
        < 0) {
        log_line(LOG_ERROR, "--%s: %s", options->hosts ? "hosts" : "hostfile", why.text);
        return 2;
    }
    if (!getcwd(folder, sizeof folder)) {
        log_line(LOG_ERROR, "the working directory: %s", strerror(errno));
        return 1;
    }
    if (getrandom(&random, sizeof random, 0) < 0)
        log_line(LOG_INFO, "no random number for the job's name: it is made of the pid");
    snprintf(run_id, sizeof run_id, "hosts-%08x", random);
    start->nodes = start->hosts.count;
    start->head = (char *)host_without_user(start->hosts.hosts[0].name);
    start->run_id = run_id;
    start->folder = folder;
    program_own(path, sizeof path);
    start->path = path;
    start->shell = (char *)options->ssh;
    return 0;
}

/* Prepares the start of all nodes.  Returns 0, or an exit code after an error is logged. */
static int hosts_plan(struct hosts *h, const struct options *options)
{
    const int code = remote_start(&h->start, options);
    char secret[JOB_SECRET_TEXT];

    if (code != 0)
        return code;
    if (hosts_check_options(options, &h->start.hosts) < 0)
        return 2;
    if (job_secret_make(options, secret) != CT_OK) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        return 1;
    }
    h->start.terminals = (isatty(STDOUT_FILENO) ? 1 : 0) | (isatty(STDERR_FILENO) ? 2 : 0);
    h->start.words = words_for_hosts(options);
    h->start.variables = variables_for_hosts(options, &h->start.hosts, secret);
    h->nodes = calloc((size_t)h->start.nodes, sizeof *h->nodes);
    if (find_input_node(h) < 0)
        return 2;
    if (h->start.words && h->start.variables && h->nodes)
        return 0;
    log_line(LOG_ERROR, "out of memory for %d hosts", h->start.nodes);
    return 1;
}

static void free_list(char **list)
{
    for (int i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static void hosts_close(struct hosts *h)
{
    branches_close(&h->branches);
    for (int node = 0; h->nodes && node < h->start.nodes; node++)
        for (int to = 1; to <= 2; to++)
            free(h->nodes[node].line[to].data);
    free(h->nodes);
    free_list(h->start.words);
    free_list(h->start.variables);
    host_list_free(&h->start.hosts);
    if (h->signal_fd > 0)
        close(h->signal_fd);
    if (h->base)
        event_base_free(h->base);
}

/* Opens the event loop with its signals, timers and consoles.  Returns 0, or -1 after an error is
 * logged. */
static int open_loop(struct hosts *h)
{
    const struct timeval answer = { START_SECONDS, 0 }, often = { BEAT_SECONDS, 0 };
    const struct timeval second = { 1, 0 };
    sigset_t set;

    h->base = event_base_new();
    signals_block(h->options);
    set = signals_watched(h->options);
    h->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!h->base || h->signal_fd < 0) {
        log_line(LOG_ERROR, "cannot watch for events: %s", strerror(errno));
        return -1;
    }
    event_assign(&h->signals, h->base, h->signal_fd, EV_READ | EV_PERSIST, signals_readable, h);
    event_assign(&h->input, h->base, STDIN_FILENO, EV_READ, input_readable, h);
    evtimer_assign(&h->lines, h->base, lines_waited, h);
    evtimer_assign(&h->patience, h->base, patience_over, h);
    evtimer_assign(&h->alone, h->base, ended_alone, h);
    evtimer_assign(&h->foreground, h->base, input_readable, h);
    event_add(&h->signals, NULL);
    event_assign(&h->beat, h->base, -1, EV_PERSIST, beat, h);
    event_add(&h->patience, &answer);
    event_add(&h->beat, &often);
    console_open(&h->consoles[0], h->base, STDOUT_FILENO, output_relieved, h);
    console_open(&h->consoles[1], h->base, STDERR_FILENO, output_relieved, h);
    h->to[1] = &h->consoles[0];
    h->to[2] = console_same(STDOUT_FILENO, STDERR_FILENO) ? &h->consoles[0] : &h->consoles[1];
    event_assign(&h->progress, h->base, -1, EV_PERSIST, show_progress, h);
    if (log_wants(LOG_WARN))
        event_add(&h->progress, &second);
    log_divert(hosts_say, h);
    return 0;
}

int remote_hosts(const struct options *options)
{
    struct hosts h = { .options = options };
    const int seconds = options->shutdown_timeout, most = INT_MAX / 1000;
    const int patience = 1000 * (seconds < most ? seconds : most);
    int code = hosts_plan(&h, options);

    if (code == 0 && open_loop(&h) < 0)
        code = 1;
    if (code != 0) {
        hosts_close(&h);
        return code;
    }
    if (branches_open(&h.branches, h.base, &h.start, 0, h.start.nodes, &hooks, &h) < 0)
        h.code = 1;
    else
        event_base_dispatch(h.base);
    show_rests(&h);
    end_progress(&h);
    log_divert(NULL, NULL);
    console_finish(&h.consoles[0], patience);
    console_finish(&h.consoles[1], patience);
    console_close(&h.consoles[0]);
    console_close(&h.consoles[1]);
    code = h.code;
    hosts_close(&h);
    return code;
}

int remote_hosts_print(FILE *out, const struct options *options)
{
    struct hosts h = { .options = options };
    int code = hosts_plan(&h, options);
    struct why why;

    for (int i = 0; code == 0 && i < h.start.nodes; i++) {
        char **words = branch_command(&h.start, h.start.hosts.hosts[i].name, &why);

        if (words) {
            shell_print(out, words);
            putc('\n', out);
        } else {
            log_line(LOG_ERROR, "%s", why.text);
            code = 2;
        }
        free(words);
    }
    hosts_close(&h);
    return code;
}
