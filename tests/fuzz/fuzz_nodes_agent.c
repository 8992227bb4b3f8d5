/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nodes_agent.c - what an agent's ctrun hears over its link to node 0, cut wherever,
 * while its own workers fail, end and are told to stop.
 *
 * The input is a byte for the kind of job (bit 0: elastic; bit 1: with --trace), then a row of
 * steps: a byte that says what happens, then what the step needs.
 * The link is one end of a socket pair; what the agent says in answer must be messages.
 * A round is started only if its numbers can be, and ctrun never ends with more than 255. */
#include <event2/event.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/nodes/agent.c"
#include "runtime/net/peer_uid.h"
#include "runtime/trace/trace_json.h"
#include "tests/fuzz/input.h"

enum { WORKERS = 3, NODES = 4 };

struct scene {
    struct event_base *base;
    struct nodes *nodes;
    int end; /* ours; -1: closed */
    int runs, is_over;
    int first, world; /* of the last round */
    unsigned char sent[4096];
    size_t have;
};

/* ---- Instead of runtime/net/peer_uid.c ----------------------------------------- */

int peer_uid_open(void)
{
    return -1;
}

enum peer_place peer_uid(int netlink, const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *self, uid_t *uid)
{
    holds(netlink == -1 && peer->ss_family == AF_INET6 && self->ss_family == AF_INET6);
    *uid = geteuid();
    return PEER_HERE;
}

/* ---- The job ----------------------------------------------------------------------- */

static void round_begins(void *job, const struct plan *plan)
{
    struct scene *s = job;

    holds(!s->is_over && !s->runs);
    holds(plan->base >= 0 && plan->base <= plan->world - WORKERS && plan->restarts >= 0);
    holds(plan->role_base >= 0 && plan->role_base <= plan->role_world - WORKERS);
    holds(strlen(plan->generation) < NODE_GENERATION);
    s->runs = 1;
    s->first = plan->base;
    s->world = plan->world;
}

static void stop(void *job, int number, int rank, const char *why)
{
    holds(number >= 0 && number <= 255 && rank >= -1 && ((struct scene *)job)->world > 0
          && strlen(why) < NODE_TEXT + 64);
}

static void is_over(void *job, int code, int rank, const char *why)
{
    struct scene *s = job;

    holds(!s->is_over && rank >= -1 && code >= 0 && code <= 255 && strlen(why) < NODE_TEXT);
    s->is_over = 1;
}

static void member(void *job, int node, int there)
{
    (void)job;
    holds(node == 0 && !there);
}

/* Of another node's workers. */
static void died(void *job, const struct control_death *death, int count)
{
    const struct scene *s = job;

    holds(s->world > 0 && death->rank >= 0 && count >= 0 && death->rank + count <= s->world);
    holds(death->rank + count <= s->first || death->rank >= s->first + WORKERS);
    holds(death->tombs >= 0 && death->tombs <= CONTROL_TOMBS);
    holds(memchr(death->host, '\0', sizeof death->host) != NULL);
}

static void stop_asked(void *job, int for_good)
{
    (void)job;
    holds(for_good == 0 || for_good == 1);
}

static void puts_come(void *job, const char *puts, size_t bytes)
{
    (void)puts;
    holds(((struct scene *)job)->runs && bytes < NODE_PIECE);
}

static void fenced(void *job)
{
    holds(((struct scene *)job)->runs);
}

static void look(void *job, unsigned number)
{
    struct scene *s = job;

    s->nodes->ops->rows(s->nodes, number, "row\n", 4);
}

static void waits(void *job, const char *text)
{
    holds(!((struct scene *)job)->runs && strlen(text) < NODE_TEXT);
}

static void clock_shows(void *job, const struct clock_reading *reading)
{
    (void)job;
    holds(reading->asked_ns <= reading->heard_ns && reading->shown_ns <= TRACE_MOST_NS);
    holds(*reading->clock && strlen(reading->clock) < NODE_TEXT);
}

static const struct nodes_hooks hooks = { .round = round_begins,
                                          .stop = stop,
                                          .over = is_over,
                                          .member = member,
                                          .died = died,
                                          .stop_asked = stop_asked,
                                          .puts = puts_come,
                                          .fenced = fenced,
                                          .look = look,
                                          .waits = waits,
                                          .clock = clock_shows };

/* ---- Steps ---------------------------------------------------------------------------- */

static void say(const struct scene *s, const void *data, size_t bytes)
{
    if (s->end >= 0 && send(s->end, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; /* closed by the agent */
}

static void say_bytes(const struct scene *s, struct fuzz_input *in)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    say(s, in->data, bytes);
    in->data += bytes;
    in->left -= bytes;
}

/* A message whose size is right.  A beat answers what the agent has asked. */
static void say_message(const struct scene *s, unsigned type, struct fuzz_input *in)
{
    uint32_t size = take(in);
    unsigned char message[5 + 255 + 20];
    const long long asked = ((const struct agent *)s->nodes)->asked_ns;
    const int used = type == NODE_BEAT ? snprintf((char *)message + 5, 20, "%llx ", asked) : 0;

    size = size < in->left ? size : (uint32_t)in->left;
    memcpy(message + 5 + used, in->data, size);
    in->data += size;
    in->left -= size;
    message[4] = (unsigned char)type;
    size += 1 + (uint32_t)used;
    memcpy(message, &size, 4);
    say(s, message, 4 + size);
}

/* Of this node's workers, as a job says it; or time passes, and node 0 says nothing. */
static void happen(struct scene *s, unsigned what)
{
    static const struct round_end failed = { -1, 0 }, stopped = { 3, 0 }, done = { -1, 1 };
    const struct failure failure = { 2, -1, 1 + (int)(what % 255), 0, "local rank 2 failed", 0 };
    const struct control_death death = { .rank = s->first,
                                         .how = CLD_KILLED,
                                         .code = SIGKILL,
                                         .pid = 7,
                                         .tombs = what < 7 ? 0 : CONTROL_TOMBS,
                                         .host = "a host" };
    struct agent *a = (struct agent *)s->nodes;

    if (what == 14)
        s->nodes->ops->ask_stop(s->nodes, 0);
    else if (what == 13 && s->runs)
        s->nodes->ops->fence(s->nodes, "a 1\n", 4);
    else if (what % 7 == 0)
        s->nodes->ops->signalled(s->nodes, SIGTERM);
    else if (what % 7 == 6) {
        a->last_message = a->heartbeat.woke = a->heartbeat.woke - (what < 7 ? 0 : 3600 * 1000);
        agent_on_beat(a);
    } else if (!s->runs)
        return;
    else if (what % 7 == 1)
        s->nodes->ops->failed(s->nodes, &failure);
    else if (what % 7 == 2)
        s->nodes->ops->lost(s->nodes, &failure);
    else if (what % 7 == 3)
        s->nodes->ops->refused(s->nodes, 127);
    else if (what % 7 == 5)
        s->nodes->ops->died(s->nodes, &death);
    else {
        s->runs = 0;
        s->nodes->ops->ended(s->nodes, what < 7 ? &failed : what < 14 ? &stopped : &done);
    }
}

static void end_link(struct scene *s)
{
    if (s->end >= 0)
        close(s->end);
    s->end = -1;
}

static void step(struct scene *s, unsigned what, struct fuzz_input *in)
{
    if (what % 16 == 0)
        say_bytes(s, in);
    else if (what % 16 == 1)
        happen(s, what >> 4);
    else if (what % 16 == 2)
        end_link(s);
    else if (what % 16 == 3)
        say_message(s, take(in), in);
    else if (what % 16 == 4)
        say_message(s, AGENT_WHO, in);
    else
        say_message(s, AGENT_FIRST + what % 16 - 3, in);
}

/* What the agent said: whole messages, and of a kind that an agent sends. */
static void listen_to_it(struct scene *s)
{
    const ssize_t got =
        s->end < 0 ? 0 : recv(s->end, s->sent + s->have, sizeof s->sent - s->have, MSG_DONTWAIT);
    uint32_t size;

    s->have += got > 0 ? (size_t)got : 0;
    while (s->have >= 4) {
        memcpy(&size, s->sent, 4);
        holds(size >= 1 && size <= NODE_TEXT + 1);
        if (s->have < 4 + size)
            return;
        holds(s->sent[4] == AGENT_OURS || s->sent[4] == NODE_ROWS
              || (s->sent[4] >= NODE_JOIN && s->sent[4] <= NODE_FENCE));
        holds(s->sent[4] != NODE_REFUSED && s->sent[4] != NODE_ROUND && s->sent[4] != NODE_STOP
              && s->sent[4] != NODE_OVER);
        s->have -= 4 + size;
        memmove(s->sent, s->sent + 4 + size, s->have);
    }
}

static void turn(struct scene *s)
{
    for (int i = 0; i < 3 && !s->is_over; i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        listen_to_it(s);
    }
}

/* ---- One input --------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    const unsigned what = take(&in);
    const struct options options = { .node_rank = 1,
                                     .nnodes = { NODES, NODES },
                                     .role = "default",
                                     .trace = what & 2 ? "run.json" : NULL };
    struct job_rendezvous meet = { .address = "127.0.0.1",
                                   .port = 1,
                                   .run_id = "none",
                                   .title = "node 0",
                                   .is_elastic = (int)what & 1 };
    struct scene s = { .end = -1 };
    int ends[2];

    log_setup("fuzz", LOG_NONE);
    signal(SIGPIPE, SIG_IGN); /* as in ctrun, which blocks it */
    holds((s.base = event_base_new()) != NULL);
    holds((s.nodes = nodes_agent(s.base, &meet, &options, WORKERS, &hooks, &s)) != NULL);
    holds(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    s.end = ends[1];
    join((struct agent *)s.nodes, ends[0], NULL);
    while (in.left > 0 && !s.is_over) {
        step(&s, take(&in), &in);
        turn(&s);
    }
    s.nodes->ops->destroy(s.nodes);
    end_link(&s);
    event_base_free(s.base);
    return 0;
}
