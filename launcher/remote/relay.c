/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - `ctrun --hosts-node`, which ssh starts on a host.  This relay starts the ctrun of its
 * node, and through ssh it starts the relays of the hosts behind it in the tree.  `ctctl
 * --hosts-node` does the same for ctctl doctor.
 *
 * The relay reads frames from its standard input and writes frames to its standard output.  It
 * sends ctrun's output to the user's ctrun, and passes input and signals from there to its ctrun.
 *
 * If the connection ends or is silent for a minute, the relay stops its ctrun with SIGTERM, so that
 * no worker outlives the job.  The user's ctrun may have been killed, its host may be down, or a
 * cable may be cut.  The value of that SIGTERM (sigqueue()) tells ctrun that no user stopped the
 * job, so ctrun exits with 1.  If the relay dies, the kernel kills ctrun. */
#include "launcher/remote/remote.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/values/hosts_node.h"
#include "launcher/remote/branch.h"
#include "launcher/workers/program.h"
#include "launcher/workers/signals.h"
#include "launcher/workers/spawn.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

#define UP_FULL (1 << 20) /* with more bytes in the queue to the user's ctrun, reading stops */
#define UP_LOW (1 << 18)
/* Milliseconds that the relay waits for more output after ctrun's end, since another process may
 * hold the pipes open. */
#define LAST_OUTPUT_MS 1000

struct relay {
    struct event_base *base;
    struct bufferevent *down, *up; /* frames from and to the user's ctrun; NULL if disconnected */
    struct start start;
    int has_start, port;
    struct branches branches;
    /* by node - first: 1 if the relay has passed on that this node, which is behind a branch, has
     * ended or is lost */
    unsigned char *lost_or_ended;
    pid_t pid;                 /* process id of ctrun; 0 before its start and after its end */
    struct bufferevent *input; /* pipe to ctrun's standard input; NULL if closed */
    struct bufferevent *output[3];
    struct bufferevent *listens; /* pipe to which node 0's ctrun writes its port */
    struct event died, give_up, silence;
    size_t unacknowledged; /* bytes of input that no FRAME_TAKEN has confirmed yet */
    int input_ends, stopping, ended, code;
};

static void relay_end_if_done(struct relay *relay);

static void up_send(struct relay *relay, enum frame_type type, int number, const void *data,
                    size_t size)
{
    if (relay->up)
        frame_send(relay->up, type, relay->start.first, number, data, size);
}

static void relay_read(struct relay *relay, int reads)
{
    branches_read(&relay->branches, reads);
    for (int to = 1; to <= 2; to++)
        if (relay->output[to])
            (reads ? bufferevent_enable : bufferevent_disable)(relay->output[to], EV_READ);
}

static void check_queue(struct relay *relay)
{
    if (relay->up && evbuffer_get_length(bufferevent_get_output(relay->up)) > UP_FULL)
        relay_read(relay, 0);
}

static void up_written(struct bufferevent *up, void *arg)
{
    (void)up;
    relay_read(arg, 1);
    relay_end_if_done(arg);
}

/* ---- Its own ctrun ----------------------------------------------------------------- */

static void close_stream(struct bufferevent **stream)
{
    if (*stream)
        bufferevent_free(*stream);
    *stream = NULL;
}

/* Sends ctrun's exit code once ctrun is reaped and all of its output is read. */
static void say_end(struct relay *relay)
{
    if (relay->ended || relay->pid || relay->output[1] || relay->output[2])
        return;
    relay->ended = 1;
    event_del(&relay->give_up);
    up_send(relay, FRAME_ENDED, relay->code, NULL, 0);
    relay_end_if_done(relay);
}

static void output_readable(struct bufferevent *stream, void *arg)
{
    struct relay *relay = arg;
    struct evbuffer *in = bufferevent_get_input(stream);
    const size_t size = evbuffer_get_length(in);

    up_send(relay, FRAME_OUTPUT, stream == relay->output[2] ? 2 : 1,
            evbuffer_pullup(in, (ssize_t)size), size);
    evbuffer_drain(in, size);
    check_queue(relay);
}

static void output_event(struct bufferevent *stream, short what, void *arg)
{
    struct relay *relay = arg;

    if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
        return;
    close_stream(&relay->output[stream == relay->output[2] ? 2 : 1]);
    say_end(relay);
}

static void stop_waiting(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = { LAST_OUTPUT_MS / 1000, LAST_OUTPUT_MS % 1000 * 1000 };
    struct relay *relay = arg;

    (void)fd;
    (void)what;
    if (relay->up && evbuffer_get_length(bufferevent_get_output(relay->up)) > UP_LOW) {
        event_add(&relay->give_up, &again); /* a full queue has stopped the reading */
        return;
    }
    close_stream(&relay->output[1]);
    close_stream(&relay->output[2]);
    say_end(relay);
}

static void ctrun_died(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval patience = { LAST_OUTPUT_MS / 1000, LAST_OUTPUT_MS % 1000 * 1000 };
    struct relay *relay = arg;
    struct signalfd_siginfo info;
    int status = 0;
    const ssize_t signals = read(fd, &info, sizeof info); /* before the wait; fails on a pidfd */
    const pid_t got = waitpid(relay->pid, &status, WNOHANG);

    (void)what;
    (void)signals;
    if (got == 0)
        return;
    relay->pid = 0;
    relay->code = got < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    event_del(&relay->died);
    close(fd);
    close_stream(&relay->input);
    close_stream(&relay->listens);
    event_add(&relay->give_up, &patience);
    say_end(relay);
}

static void input_written(struct bufferevent *input, void *arg)
{
    struct relay *relay = arg;

    (void)input;
    if (relay->unacknowledged)
        up_send(relay, FRAME_TAKEN, (int)relay->unacknowledged, NULL, 0);
    relay->unacknowledged = 0;
    if (relay->input_ends)
        close_stream(&relay->input);
}

/* Is called if a write fails, since neither ctrun nor a worker reads the pipe any more. */
static void input_event(struct bufferevent *input, short what, void *arg)
{
    struct relay *relay = arg;

    (void)what;
    relay->input_ends = 1;
    input_written(input, relay); /* drops the rest, so that the user's ctrun may send more */
}

static void port_readable(struct bufferevent *listens, void *arg)
{
    struct relay *relay = arg;
    char *line = evbuffer_readln(bufferevent_get_input(listens), NULL, EVBUFFER_EOL_LF);

    if (line)
        up_send(relay, FRAME_LISTENS, atoi(line), NULL, 0);
    free(line);
}

static void port_event(struct bufferevent *listens, short what, void *arg)
{
    (void)listens;
    (void)what;
    close_stream(&((struct relay *)arg)->listens);
}

/* Returns the environment for ctrun, which is the relay's environment, made by sshd, with the
 * user's variables added or put in place of those with the same name.  `own` is the last entry.
 * Returns NULL if memory runs out. */
static char **environment(const struct start *start, char *own)
{
    int count = 0, room = 2;
    char **all;

    for (char **entry = environ; *entry; entry++)
        room++;
    for (int i = 0; start->variables[i]; i++)
        room++;
    if (!(all = calloc((size_t)room, sizeof *all)))
        return NULL;
    for (char **entry = environ; *entry; entry++) {
        const size_t length = strcspn(*entry, "=") + 1;
        int over = 0;

        for (int i = 0; start->variables[i] && !over; i++)
            over = !strncmp(start->variables[i], *entry, length);
        if (!over && !remote_is_for_front(*entry)) /* skips variables of the user's ctrun */
            all[count++] = *entry;
    }
    for (int i = 0; start->variables[i]; i++)
        all[count++] = start->variables[i];
    all[count] = own;
    return all;
}

/* Opens a pipe between the relay and its child.  *stream is the relay's end, and *theirs is the
 * child's end.  Returns 0, or -1 with errno set. */
static int relay_open_pipe(struct relay *relay, int for_writing, struct bufferevent **stream,
                           int *theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *theirs = ends[for_writing ? 0 : 1];
    evutil_make_socket_nonblocking(ends[for_writing ? 1 : 0]);
    *stream = bufferevent_socket_new(relay->base, ends[for_writing ? 1 : 0], BEV_OPT_CLOSE_ON_FREE);
    return *stream ? 0 : -1;
}

static void cannot_start(struct relay *relay, const char *what)
{
    char why[600];

    snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
    up_send(relay, FRAME_LOST, 1, why, strlen(why));
    relay->ended = 1;
    relay_end_if_done(relay);
}

/* Returns a descriptor that becomes readable when ctrun has ended: a pidfd, or without pidfd_open()
 * one for SIGCHLD, which is blocked.  Returns -1 with errno set if no descriptor is left. */
static int end_of_ctrun(const struct relay *relay)
{
    const int fd = process_open(relay->pid);
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return fd >= 0 ? fd : signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Watches ctrun's pipes and its end.  Returns 0, or -1 with errno set. */
static int watch_ctrun(struct relay *relay)
{
    const int fd = end_of_ctrun(relay);

    if (fd < 0)
        return -1;
    bufferevent_setcb(relay->input, NULL, input_written, input_event, relay);
    for (int to = 1; to <= 2; to++) {
        bufferevent_setcb(relay->output[to], output_readable, NULL, output_event, relay);
        bufferevent_enable(relay->output[to], EV_READ);
    }
    if (relay->listens) {
        bufferevent_setcb(relay->listens, port_readable, NULL, port_event, relay);
        bufferevent_enable(relay->listens, EV_READ);
    }
    event_assign(&relay->died, relay->base, fd, EV_READ | EV_PERSIST, ctrun_died, relay);
    event_add(&relay->died, NULL);
    if (relay->input_ends && relay->unacknowledged == 0)
        close_stream(&relay->input);
    return 0;
}

static void start_ctrun(struct relay *relay)
{
    const struct start *start = &relay->start;
    const int is_node_0 = start->first == 0 && !start->at_once;
    char own[1024], **variables, **words, path[4096];
    int theirs[4] = { -1, -1, -1, -1 }, execed, count = 0;
    struct hosts_node node;
    sigset_t ignored;

    program_own(path, sizeof path);
    if (chdir(start->folder) < 0) {
        cannot_start(relay, start->folder);
        return;
    }
    if (relay_open_pipe(relay, 1, &relay->input, &theirs[0]) < 0
        || relay_open_pipe(relay, 0, &relay->output[1], &theirs[1]) < 0
        || relay_open_pipe(relay, 0, &relay->output[2], &theirs[2]) < 0
        || (is_node_0 && relay_open_pipe(relay, 0, &relay->listens, &theirs[3]) < 0)) {
        cannot_start(relay, "pipes for ctrun");
        return;
    }
    node = (struct hosts_node){ .nodes = start->nodes,
                                .node = start->first,
                                .port = is_node_0 ? 0 : relay->port,
                                .workers = start->hosts.hosts[0].slots,
                                .port_fd = theirs[3],
                                .terminals = start->terminals };
    snprintf(node.head, sizeof node.head, "%s", start->head);
    snprintf(node.run_id, sizeof node.run_id, "%s", start->run_id);
    strcpy(own, HOSTS_NODE_VARIABLE "=");
    hosts_node_print(&node, own + strlen(own), sizeof own - strlen(own));
    while (start->words[count])
        count++;
    variables = environment(start, own);
    words = calloc((size_t)count + 2, sizeof *words);
    if (variables && words) {
        words[0] = path;
        memcpy(words + 1, start->words, (size_t)count * sizeof *words);
        signals_ignored(&ignored);
        relay->pid = spawn(&(struct spawn_args){ .path = path,
                                                 .argv = words,
                                                 .envp = variables,
                                                 .in = theirs[0],
                                                 .out = theirs[1],
                                                 .err = theirs[2],
                                                 .ignored = &ignored,
                                                 .keep = { theirs[3] } },
                           &execed);
    }
    for (int i = 0; i < 4; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    free(variables);
    free(words);
    if (relay->pid > 0 && watch_ctrun(relay) == 0)
        return;
    if (relay->pid > 0)
        kill(relay->pid, SIGKILL); /* ctrun has not started a worker yet */
    relay->pid = 0;
    cannot_start(relay, path);
}

/* ---- Frames from the nodes behind this one ------------------------------------------ */

static void relay_from_branch(void *arg, struct branch *branch, const struct relay_frame *frame)
{
    struct relay *relay = arg;

    if (frame->node < branch->first || frame->node >= branch->first + branch->count)
        return;
    if (frame->type == FRAME_ENDED || frame->type == FRAME_LOST)
        relay->lost_or_ended[frame->node - relay->start.first] = 1;
    if (relay->up)
        frame_send(relay->up, frame->type, frame->node, frame->number, frame->data, frame->size);
    check_queue(relay);
}

static void relay_branch_gone(void *arg, struct branch *branch, const char *why)
{
    struct relay *relay = arg;

    for (int node = branch->first; node < branch->first + branch->count; node++)
        if (!relay->lost_or_ended[node - relay->start.first] && relay->up)
            frame_send(relay->up, FRAME_LOST, node, 0, why, strlen(why));
    relay_end_if_done(relay);
}

static const struct branch_hooks branch_hooks = { relay_from_branch, relay_branch_gone };

/* ---- Frames from the user's ctrun ---------------------------------------------------- */

static void take_input(struct relay *relay, const struct relay_frame *frame)
{
    if (frame->size == 0) {
        relay->input_ends = 1;
        if (relay->input && relay->unacknowledged == 0)
            close_stream(&relay->input);
    } else if (relay->input) {
        relay->unacknowledged += frame->size;
        bufferevent_write(relay->input, frame->data, frame->size);
    } else {
        /* No process reads the input any more, so the relay drops it. */
        up_send(relay, FRAME_TAKEN, (int)frame->size, NULL, 0);
    }
}

static void take_signal(struct relay *relay, int number)
{
    if (relay->pid > 0)
        kill(relay->pid, number);
    else if (!relay->ended
             && (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)) {
        relay->stopping = relay->ended = 1;
        relay->code = 128 + number;
        up_send(relay, FRAME_ENDED, relay->code, NULL, 0);
        relay_end_if_done(relay);
    }
}

/* Tells the user's ctrun that the hosts behind this one can't be reached.  branches_open() has
 * logged the cause, and ssh shows that line to the user. */
static void cannot_reach(struct relay *relay)
{
    static const char why[] = "the host before it in the tree can't start ssh";

    for (int node = 0; node < relay->start.hosts.count; node++)
        frame_send(relay->up, FRAME_LOST, relay->start.first + node, 1, why, sizeof why - 1);
    branches_close(&relay->branches);
    relay->code = 1;
    relay->ended = 1;
    relay_end_if_done(relay);
}

static void take_start(struct relay *relay, const struct relay_frame *frame)
{
    if (relay->has_start)
        return;
    /* The relay sends its version first, since it may not be able to read the start of another
     * version. */
    relay->start.first = frame->node;
    up_send(relay, FRAME_STARTED, 0, CT_VERSION, strlen(CT_VERSION));
    if (start_read(&relay->start, frame->data, frame->size) < 0) {
        relay->ended = 1; /* the user's ctrun compares the versions and prints the error */
        relay_end_if_done(relay);
        return;
    }
    relay->has_start = 1;
    relay->lost_or_ended = calloc((size_t)relay->start.hosts.count, 1);
    if (!relay->lost_or_ended
        || (relay->start.hosts.count > 1
            && branches_open(&relay->branches, relay->base, &relay->start, relay->start.first + 1,
                             relay->start.hosts.count - 1, &branch_hooks, relay)
                   < 0)) {
        cannot_reach(relay);
        return;
    }
    if (relay->start.first == 0 || relay->start.at_once)
        start_ctrun(relay);
}

static void relay_take(struct relay *relay, const struct relay_frame *frame)
{
    const int is_own =
        relay->has_start && (frame->node == relay->start.first || frame->node == FRAME_ALL);

    if (frame->type == FRAME_START) {
        take_start(relay, frame);
        return;
    }
    if (!relay->has_start)
        return;
    branches_send(&relay->branches, frame);
    if (!is_own)
        return;
    if (frame->type == FRAME_PORT && !relay->port) {
        relay->port = frame->number;
        if (relay->start.first > 0 && !relay->start.at_once && !relay->ended)
            start_ctrun(relay);
    } else if (frame->type == FRAME_INPUT) {
        take_input(relay, frame);
    } else if (frame->type == FRAME_SIGNAL) {
        take_signal(relay, frame->number);
    }
}

/* ---- The connection ------------------------------------------------------------------ */

/* Stops ctrun after the connection is lost.  The relay still reads ctrun's output, and drops it. */
static void connection_lost(struct relay *relay)
{
    event_del(&relay->silence);
    close_stream(&relay->down);
    close_stream(&relay->up);
    relay_read(relay, 1);
    branches_close(&relay->branches);
    if (relay->pid > 0 && !relay->stopping) {
        sigqueue(relay->pid, SIGTERM, (union sigval){ .sival_int = HOSTS_CONNECTION_LOST });
        kill(relay->pid, SIGCONT); /* a ctrun that is stopped by SIGSTOP would not end */
    }
    relay->stopping = 1;
    if (relay->pid == 0)
        relay->ended = 1;
    relay_end_if_done(relay);
}

static void silence_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    connection_lost(arg);
}

static void down_readable(struct bufferevent *down, void *arg)
{
    const struct timeval patience = { SILENCE_SECONDS, 0 };
    struct relay *relay = arg;
    struct evbuffer *in = bufferevent_get_input(down);
    struct relay_frame frame;
    int got = 0;

    event_add(&relay->silence, &patience);
    while (relay->down && (got = frame_peek(in, &frame)) > 0) {
        relay_take(relay, &frame);
        if (relay->down)
            frame_drop(in, &frame);
    }
    if (got < 0)
        connection_lost(relay);
}

static void connection_event(struct bufferevent *which, short what, void *arg)
{
    (void)which;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        connection_lost(arg);
}

/* Ends the loop if ctrun has ended, no branch is left, and all frames are sent. */
static void relay_end_if_done(struct relay *relay)
{
    if (relay->ended && !branches_alive(&relay->branches)
        && (!relay->up || evbuffer_get_length(bufferevent_get_output(relay->up)) == 0))
        event_base_loopbreak(relay->base);
}

static int relay_open(struct relay *relay)
{
    const struct timeval patience = { SILENCE_SECONDS, 0 };

    relay->base = event_base_new();
    if (!relay->base)
        return -1;
    evutil_make_socket_nonblocking(STDIN_FILENO);
    evutil_make_socket_nonblocking(STDOUT_FILENO);
    relay->down = bufferevent_socket_new(relay->base, STDIN_FILENO, 0);
    relay->up = bufferevent_socket_new(relay->base, STDOUT_FILENO, 0);
    if (!relay->down || !relay->up)
        return -1;
    evtimer_assign(&relay->give_up, relay->base, stop_waiting, relay);
    evtimer_assign(&relay->silence, relay->base, silence_over, relay);
    event_add(&relay->silence, &patience);
    bufferevent_setcb(relay->down, down_readable, NULL, connection_event, relay);
    bufferevent_setcb(relay->up, NULL, up_written, connection_event, relay);
    bufferevent_setwatermark(relay->up, EV_WRITE, UP_LOW, 0);
    bufferevent_enable(relay->down, EV_READ);
    bufferevent_enable(relay->up, EV_WRITE);
    return 0;
}

int remote_node(void)
{
    struct relay relay = { 0 };
    sigset_t all;

    sigfillset(&all); /* spawn() needs all signals blocked; the relay handles no signal */
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, the kernel would drop ctrun's exit code */
    if (relay_open(&relay) < 0) {
        log_line(LOG_ERROR, "out of memory");
        return 1;
    }
    event_base_dispatch(relay.base);
    close_stream(&relay.input);
    close_stream(&relay.output[1]);
    close_stream(&relay.output[2]);
    close_stream(&relay.listens);
    close_stream(&relay.down);
    close_stream(&relay.up);
    branches_close(&relay.branches);
    start_free(&relay.start);
    free(relay.lost_or_ended);
    event_base_free(relay.base);
    return relay.code;
}
