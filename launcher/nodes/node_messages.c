/* SPDX-License-Identifier: Apache-2.0 */
/* node_messages.c - reads and writes the messages between ctruns.  A message is a list of words
 * with a space between two words.  The functions that read a message check that each number is
 * within its bounds and that nothing follows the last word. */
#include "launcher/nodes/node_messages.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/trace_json.h"

/* ---- Words ------------------------------------------------------------------ */

/* Copies the next word to `to`, and moves *at behind the word, and behind the space if another word
 * follows.  Returns 0 if no word is left or the word is too long, else 1. */
static int message_word(const char **at, char *to, size_t size)
{
    const size_t length = strcspn(*at, " ");

    if (length == 0 || length >= size)
        return 0;
    memcpy(to, *at, length);
    to[length] = 0;
    *at += length;
    *at += **at == ' ' && (*at)[1];
    return 1;
}

static int message_number(const char **at, int least, int most, int *value)
{
    char text[16], *end;
    long long read;

    if (!message_word(at, text, sizeof text))
        return 0;
    errno = 0;
    read = strtoll(text, &end, 10);
    if (errno || *end || read < least || read > most)
        return 0;
    *value = (int)read;
    return 1;
}

static int large(const char **at, uint64_t *value)
{
    char text[24], *end;

    if (!message_word(at, text, sizeof text) || text[0] == '-')
        return 0;
    errno = 0;
    *value = strtoull(text, &end, 16);
    return !errno && !*end;
}

/* Writes a host's name as one word; "-" if the name is "". */
static void print_host(const char *host, char word_of_it[64])
{
    snprintf(word_of_it, 64, "%.63s", *host ? host : "-");
    for (char *c = word_of_it; *c; c++)
        if (*c == ' ')
            *c = '_';
}

static int read_host(const char **at, char host[64])
{
    if (!message_word(at, host, 64))
        return 0;
    if (!strcmp(host, "-"))
        host[0] = 0;
    return 1;
}

/* ---- Joining ---------------------------------------------------------------- */

void node_join_name(const struct node_join *join, int is_elastic, char *name, size_t size)
{
    if (is_elastic)
        snprintf(name, size, "node %s (pid %d)", join->host, join->pid);
    else
        snprintf(name, size, "node %d (%s)", join->node, join->host);
}

void node_host_name(const struct options *options, char *host, size_t size)
{
    if (options->local_addr)
        snprintf(host, size, "%s", options->local_addr);
    else if (gethostname(host, size - 1) < 0)
        snprintf(host, size, "localhost");
    host[size - 1] = 0; /* gethostname() may have cut the name */
}

int node_join_read(const char *text, struct node_join *join)
{
    const char *at = text;
    int role;

    *join = (struct node_join){ .node = 0 };
    if (!message_number(&at, -1, INT32_MAX, &join->node)
        || !message_number(&at, 1, INT32_MAX, &join->min)
        || !message_number(&at, join->min, INT32_MAX, &join->max)
        || !message_number(&at, 1, NODE_WORKERS_MOST, &join->workers)
        || !message_word(&at, join->version, sizeof join->version) || !read_host(&at, join->host)
        || !message_number(&at, 0, INT32_MAX, &join->pid)
        || !message_number(&at, 0, sizeof join->role - 1, &role) || strlen(at) < (size_t)role + 1
        || at[role] != ' ')
        return -1;
    memcpy(join->role, at, (size_t)role);
    join->role[role] = 0;
    join->job = at + role + 1;
    return 0;
}

void node_join_print(const struct node_join *join, char text[NODE_TEXT])
{
    char host[64];

    print_host(join->host, host);
    snprintf(text, NODE_TEXT, "%d %d %d %d %s %s %d %zu %s %.256s", join->node, join->min,
             join->max, join->workers, join->version, host, join->pid, strlen(join->role),
             join->role, join->job);
}

/* ---- Rounds ----------------------------------------------------------------- */

/* Checks that the ranks of this node are below the number of all workers, since the text came over
 * a network. */
int node_round_read(const char *text, int size, struct plan *plan, char generation[NODE_GENERATION],
                    char mapping[NODE_MAPPING])
{
    const char *at = text;
    const int is_one = message_number(&at, 0, WORLD_MOST - size, &plan->base)
                       && message_number(&at, plan->base + size, WORLD_MOST, &plan->world)
                       && message_number(&at, 0, WORLD_MOST - size, &plan->role_base)
                       && message_number(&at, plan->role_base + size, WORLD_MOST, &plan->role_world)
                       && message_number(&at, 0, INT32_MAX, &plan->node)
                       && message_number(&at, plan->node + 1, INT32_MAX, &plan->nodes)
                       && message_number(&at, 0, INT32_MAX, &plan->round)
                       && message_number(&at, 0, INT32_MAX, &plan->restarts)
                       && message_number(&at, 1, 65535, &plan->port)
                       && message_word(&at, generation, NODE_GENERATION)
                       && message_word(&at, mapping, NODE_MAPPING) && !*at;

    if (is_one && !strcmp(mapping, "-"))
        mapping[0] = 0;
    return is_one ? 0 : -1;
}

void node_round_print(const struct plan *plan, char text[NODE_TEXT])
{
    snprintf(text, NODE_TEXT, "%d %d %d %d %d %d %d %d %d %s %s", plan->base, plan->world,
             plan->role_base, plan->role_world, plan->node, plan->nodes, plan->round,
             plan->restarts, plan->port, plan->generation, *plan->mapping ? plan->mapping : "-");
}

int round_end_read(const char *text, struct round_end *end)
{
    const char *at = text;

    return message_number(&at, -1, 255, &end->stop_code) && message_number(&at, 0, 1, &end->done)
                   && !*at
               ? 0
               : -1;
}

void round_end_print(const struct round_end *end, char text[NODE_TEXT])
{
    snprintf(text, NODE_TEXT, "%d %d", end->stop_code, end->done);
}

/* ---- Many lines -------------------------------------------------------------- */

/* Returns the length of the longest start of a text that has at most `most` bytes and ends with a
 * newline.  Returns `bytes` if the text has at most `most` bytes, or if its first line is
 * longer. */
static size_t piece_of(const char *text, size_t bytes, size_t most)
{
    const char *end;

    if (bytes <= most)
        return bytes;
    end = memrchr(text, '\n', most);
    return end ? (size_t)(end + 1 - text) : bytes;
}

void node_pieces(const char *head, const char *text, size_t bytes,
                 void (*send)(void *arg, const char *data, size_t bytes), void *arg)
{
    char data[NODE_PIECE];
    const size_t used = (size_t)snprintf(data, sizeof data, "%s\n", head);

    while (bytes > 0) {
        const size_t piece = piece_of(text, bytes, sizeof data - used);

        if (piece > sizeof data - used) /* the line does not fit; callers have no such line */
            return;
        memcpy(data + used, text, piece);
        send(arg, data, used + piece);
        text += piece;
        bytes -= piece;
    }
}

const char *node_rows_read(const char *data, size_t bytes, unsigned *look)
{
    const char *const end = memchr(data, '\n', bytes < 16 ? bytes : 16);
    char text[16];
    int value;

    if (!end)
        return NULL;
    snprintf(text, sizeof text, "%.*s", (int)(end - data), data);
    if (node_number_read(text, 0, INT_MAX, &value) < 0)
        return NULL;
    *look = (unsigned)value;
    return end + 1;
}

const char *fence_puts_read(const char *data, size_t bytes, const char *generation)
{
    const size_t length = strlen(generation);

    return bytes > length && !memcmp(data, generation, length) && data[length] == '\n'
               ? data + length + 1
               : NULL;
}

/* ---- Failures --------------------------------------------------------------- */

enum { MAY_RESTART = 1, IS_CAUSE = 2 };

int node_failure(const char *text, struct failure *failure)
{
    const char *at = text;
    int flags;

    if (!message_number(&at, -1, INT32_MAX, &failure->rank)
        || !message_number(&at, -1, WORLD_MOST, &failure->culprit)
        || !message_number(&at, 1, 255, &failure->code)
        || !message_number(&at, 0, MAY_RESTART | IS_CAUSE, &flags))
        return -1;
    failure->may_restart = (flags & MAY_RESTART) != 0;
    failure->is_cause = (flags & IS_CAUSE) != 0;
    failure->what = at;
    return 0;
}

void node_failure_print(const struct failure *failure, char text[NODE_TEXT])
{
    const int flags = (failure->may_restart ? MAY_RESTART : 0) | (failure->is_cause ? IS_CAUSE : 0);

    snprintf(text, NODE_TEXT, "%d %d %d %d %.900s", failure->rank, failure->culprit, failure->code,
             flags, failure->what);
}

/* ---- Deaths ----------------------------------------------------------------- */

static int is_a_way_to_die(int how)
{
    return how == CLD_EXITED || how == CLD_KILLED || how == CLD_DUMPED || how == CONTROL_HOST_LOST;
}

static int read_tombs(const char **at, struct control_death *death)
{
    uint64_t call;

    for (int i = 0; i < death->tombs; i++) {
        struct control_tomb *tomb = &death->tomb[i];

        if (!large(at, &tomb->group) || !large(at, &tomb->begun) || !large(at, &tomb->done)
            || !large(at, &call) || call > UINT32_MAX)
            return 0;
        tomb->call = (uint32_t)call;
    }
    return 1;
}

/* Reads `stopped`, `noted_ns` and the blame.  Of the blame's call, reads only the fields that error
 * messages need. */
static int read_blame(const char **at, struct control_death *death)
{
    struct control_blame *blame = &death->blame;
    uint64_t noted, hash;
    int operation;

    if (!message_number(at, 0, 1, &death->stopped) || !large(at, &noted) || noted > INT64_MAX
        || !message_number(at, 0, BLAME_REASONS - 1, &blame->on.reason)
        || !message_number(at, 0, WORLD_MOST, &blame->on.rank) || !large(at, &blame->group)
        || !large(at, &blame->call.seq) || !large(at, &blame->call.begun_ns)
        || !message_number(at, 0, 255, &operation) || !large(at, &hash) || hash > UINT32_MAX)
        return 0;
    blame->call_hash = (uint32_t)hash;
    death->noted_ns = (int64_t)noted;
    blame->call.operation = (uint8_t)operation;
    return 1;
}

int node_death_read(const char *text, struct node_death *dead)
{
    struct control_death *death = &dead->death;
    const char *at = text;

    *dead = (struct node_death){ .count = 0 };
    return message_word(&at, dead->generation, sizeof dead->generation)
                   && message_number(&at, 0, WORLD_MOST, &death->rank)
                   && message_number(&at, 1, NODE_WORKERS_MOST, &dead->count)
                   && message_number(&at, 0, CONTROL_HOST_LOST, &death->how)
                   && is_a_way_to_die(death->how)
                   && (dead->count == 1 || death->how == CONTROL_HOST_LOST)
                   && message_number(&at, 0, 255, &death->code)
                   && message_number(&at, 0, INT32_MAX, &death->pid)
                   && message_number(&at, 0, SIGRTMAX, &death->asked) && read_host(&at, death->host)
                   && read_blame(&at, death) && message_number(&at, 0, CONTROL_TOMBS, &death->tombs)
                   && read_tombs(&at, death) && !*at
               ? 0
               : -1;
}

void node_death_print(const struct node_death *dead, char text[NODE_TEXT])
{
    const struct control_death *death = &dead->death;
    char host[64];
    int used;

    print_host(death->host, host);
    used = snprintf(
        text, NODE_TEXT, "%s %d %d %d %d %d %d %s %d %llx %d %d %llx %llx %llx %d %x %d",
        dead->generation, death->rank, dead->count, death->how, death->code, death->pid,
        death->asked, host, death->stopped, (unsigned long long)death->noted_ns,
        death->blame.on.reason, death->blame.on.rank, (unsigned long long)death->blame.group,
        (unsigned long long)death->blame.call.seq, (unsigned long long)death->blame.call.begun_ns,
        death->blame.call.operation, death->blame.call_hash, death->tombs);
    for (int i = 0; i < death->tombs && used < NODE_TEXT; i++)
        used += snprintf(text + used, NODE_TEXT - (size_t)used, " %llx %llx %llx %x",
                         (unsigned long long)death->tomb[i].group,
                         (unsigned long long)death->tomb[i].begun,
                         (unsigned long long)death->tomb[i].done, death->tomb[i].call);
}

struct node_death node_host_lost(const char *generation, int base, int count, const char *host,
                                 int code)
{
    struct node_death dead = { .count = count };

    snprintf(dead.generation, sizeof dead.generation, "%s", generation);
    snprintf(dead.death.host, sizeof dead.death.host, "%s", host);
    dead.death.rank = base;
    dead.death.how = CONTROL_HOST_LOST;
    dead.death.code = code;
    return dead;
}

/* ---- One number ------------------------------------------------------------- */

int node_number_read(const char *text, int least, int most, int *value)
{
    return message_number(&text, least, most, value) && !*text ? 0 : -1;
}

/* A space may follow the last number even if `why` is "". */
int node_code_read(const char *text, int *code, int *rank, const char **why)
{
    if (!message_number(&text, 0, 255, code) || !message_number(&text, -1, WORLD_MOST, rank))
        return -1;
    *why = text + (*text == ' ');
    return 0;
}

/* ---- Clocks ------------------------------------------------------------------- */

int clock_reading_read(const char *text, struct clock_reading *reading)
{
    const char *at = text;
    uint64_t asked, shown = 0;

    if (!large(&at, &asked) || asked > TRACE_MOST_NS
        || (*at && (!large(&at, &shown) || shown > TRACE_MOST_NS)))
        return -1;
    *reading = (struct clock_reading){ (int64_t)asked, (int64_t)shown, 0, at };
    return 0;
}

/* ---- Shares of time ---------------------------------------------------------- */

int node_shares_read(const char *text, struct node_shares *shares)
{
    struct collective_shares *const s = &shares->shares;
    const char *at = text;

    *shares = (struct node_shares){ .generation = "" };
    return message_word(&at, shares->generation, sizeof shares->generation)
                   && message_number(&at, 0, WORLD_MOST, &s->rank)
                   && message_number(&at, 0, 100, &s->least)
                   && message_number(&at, 0, 100, &s->next) && message_number(&at, 0, 100, &s->most)
                   && message_number(&at, 0, INT_MAX, &s->calls) && !*at
               ? 0
               : -1;
}

void node_shares_print(const struct node_shares *shares, char text[NODE_TEXT])
{
    const struct collective_shares *const s = &shares->shares;

    snprintf(text, NODE_TEXT, "%s %d %d %d %d %d", shares->generation, s->rank, s->least, s->next,
             s->most, s->calls);
}

/* ---- Stopping --------------------------------------------------------------- */

int stop_request_read(const char *text, struct stop_request *request)
{
    const char *at = text;

    *request = (struct stop_request){ .for_good = 0 };
    return message_word(&at, request->generation, sizeof request->generation)
                   && message_number(&at, 0, 1, &request->for_good) && !*at
               ? 0
               : -1;
}

struct stop_request stop_request(const char *generation, int for_good)
{
    struct stop_request request = { .for_good = for_good };

    snprintf(request.generation, sizeof request.generation, "%s", generation);
    return request;
}
