/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pmi.c - what workers send on PMI_FD, cut wherever, while they end, other nodes send what
 * their ranks put, and barriers are over.
 *
 * The input is a byte for the kind of job (bit 0: two nodes), then a row of steps: a byte that says
 * what happens (its low half) and to which worker (its high half), then what the step needs.
 * Whatever comes, a reply is a line of PMI, no more than a request is kept, and a fault is words
 * that a terminal can show. */
#include <event2/event.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/pmi/pmi_server.c"
#include "tests/fuzz/input.h"

enum { WORKERS = 3 };

struct scene {
    struct event_base *base;
    struct pmi_server server;
    int ends[WORKERS]; /* the workers'; -1: closed */
    int nodes, fences;
};

/* ---- The job ------------------------------------------------------------------ */

static void are_plain(const char *text, size_t size)
{
    holds(memchr(text, '\0', size) != NULL);
    for (; *text; text++)
        holds(*text >= ' ' && *text <= '~');
}

static void fence(void *arg, const char *puts, size_t bytes)
{
    struct scene *s = arg;
    struct pmi_space other;

    holds(s->server.waiting == WORKERS);
    holds(pmi_space_open(&other, 0) == 0);
    holds(pmi_space_merge(&other, puts, bytes) == 0); /* what we send another node can read */
    pmi_space_close(&other);
    if (s->nodes == 1)
        pmi_server_fenced(&s->server);
    else
        s->fences++;
}

static void fault(void *arg, int local_rank)
{
    const struct pmi_fault *its = pmi_server_fault(&((struct scene *)arg)->server, local_rank);

    holds(local_rank >= 0 && local_rank < WORKERS && its->code >= 1 && its->code <= 255);
    are_plain(its->what, sizeof its->what);
    are_plain(its->detail, sizeof its->detail);
}

static void gone(void *arg, int rank, const char *what)
{
    holds(((struct scene *)arg)->nodes == 2 && rank == WORKERS && *what);
}

static const struct pmi_hooks hooks = { fence, fault, gone };

/* ---- Steps --------------------------------------------------------------------- */

static void send_bytes(const struct scene *s, int i, struct fuzz_input *in, int is_line)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    if (s->ends[i] >= 0 && send(s->ends[i], in->data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0
        && is_line)
        (void)!send(s->ends[i], "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    in->data += bytes;
    in->left -= bytes;
}

static void send_request(const struct scene *s, int i, unsigned which)
{
    static const char *const lines[] = {
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "cmd=get_maxes\n",
        "cmd=put key=a value=1 2 3\n",
        "cmd=get key=a\n",
        "cmd=barrier_in\n",
        "cmd=finalize\n",
        "cmd=abort exitcode=7 message=the ocean is dry\n",
        "cmd=publish_name service=s port=p q\n",
        "cmd=lookup_name service=s\n",
        "cmd=unpublish_name service=s\n",
        "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nspawnssofar=1\nendcmd\n",
        "cmd=get key=PMI_process_mapping\n",
    };
    const char *line = lines[which % (sizeof lines / sizeof *lines)];

    if (s->ends[i] >= 0)
        (void)!send(s->ends[i], line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void end_worker(struct scene *s, int i, int well)
{
    const struct pmi_fault *its;

    if (s->ends[i] < 0)
        return;
    close(s->ends[i]);
    s->ends[i] = -1;
    its = pmi_server_ended(&s->server, i, well);
    holds(!its || its->code > 0);
}

static void other_node(struct scene *s, struct fuzz_input *in, unsigned what)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    if (s->nodes == 1)
        return;
    if (what % 4 == 0)
        pmi_server_merge(&s->server, (const char *)in->data, bytes);
    else if (what % 4 == 1)
        pmi_server_ended_elsewhere(&s->server, WORKERS);
    else
        pmi_server_fenced(&s->server);
    in->data += bytes;
    in->left -= bytes;
}

static void step(struct scene *s, unsigned what, struct fuzz_input *in)
{
    const int i = (int)(what >> 4) % WORKERS;

    if (what % 16 == 0)
        send_bytes(s, i, in, 0);
    else if (what % 16 < 3)
        send_bytes(s, i, in, 1);
    else if (what % 16 == 3)
        end_worker(s, i, (int)take(in) & 1);
    else if (what % 16 == 4)
        other_node(s, in, take(in));
    else
        send_request(s, i, what % 16 == 5 ? take(in) : what % 16 - 6);
}

/* Replies are lines: "cmd=..."; what is left of one is read with the next. */
static void read_replies(const struct scene *s)
{
    char text[8192];

    for (int i = 0; i < WORKERS; i++) {
        const ssize_t n = s->ends[i] < 0 ? 0 : recv(s->ends[i], text, sizeof text, MSG_DONTWAIT);

        if (n > 0)
            holds(n == sizeof text || text[n - 1] == '\n');
        if (n >= 4)
            holds(!memcmp(text, "cmd=", 4) || n == sizeof text);
    }
}

static void turn(struct scene *s)
{
    int waiting = 0;

    for (int i = 0; i < 3; i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        read_replies(s);
    }
    for (int i = 0; i < WORKERS; i++) {
        holds(s->server.conns[i].have <= PMI_LINE);
        waiting += s->server.conns[i].waits;
    }
    holds(s->server.waiting == waiting);
}

/* ---- One input ------------------------------------------------------------------ */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct scene s = { .nodes = 1 + (int)(take(&in) & 1) };
    const struct pmi_round round = { .size = WORKERS,
                                     .world = WORKERS * s.nodes,
                                     .nodes = s.nodes,
                                     .generation = "g",
                                     .mapping = "(vector,(0,1,3))" };

    log_setup("fuzz", LOG_NONE);
    holds((s.base = event_base_new()) != NULL);
    pmi_server_setup(&s.server, s.base, &hooks, &s, 1);
    holds(pmi_server_begin(&s.server, &round) == 0);
    for (int i = 0; i < WORKERS; i++) {
        s.ends[i] = dup(pmi_server_give(&s.server, i));
        holds(s.ends[i] >= 0);
        pmi_server_given(&s.server, i);
    }
    while (in.left > 0) {
        step(&s, take(&in), &in);
        turn(&s);
    }
    pmi_server_end(&s.server);
    for (int i = 0; i < WORKERS; i++)
        if (s.ends[i] >= 0)
            close(s.ends[i]);
    event_base_free(s.base);
    return 0;
}
