/* SPDX-License-Identifier: Apache-2.0 */
/* node_messages.c - words between spaces, numbers within bounds, and nothing behind them. */
#include "launcher/nodes/node_messages.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ------------------------------------------------------------------ */

/* The next word, and the space before another one; 0: there is none, or it is too long. */
static int word(const char **at, char *to, size_t size)
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

static int number(const char **at, int least, int most, int *value)
{
    char text[16], *end;
    long long read;

    if (!word(at, text, sizeof text))
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

    if (!word(at, text, sizeof text) || text[0] == '-')
        return 0;
    errno = 0;
    *value = strtoull(text, &end, 16);
    return !errno && !*end;
}

/* A host's name as one word; "-" is none. */
static void print_host(const char *host, char word_of_it[64])
{
    snprintf(word_of_it, 64, "%.63s", *host ? host : "-");
    for (char *c = word_of_it; *c; c++)
        if (*c == ' ')
            *c = '_';
}

static int read_host(const char **at, char host[64])
{
    if (!word(at, host, 64))
        return 0;
    if (!strcmp(host, "-"))
        host[0] = 0;
    return 1;
}

/* ---- Joining ---------------------------------------------------------------- */

int node_join_read(const char *text, struct node_join *join)
{
    const char *at = text;
    int role;

    if (!number(&at, INT32_MIN, INT32_MAX, &join->node)
        || !number(&at, INT32_MIN, INT32_MAX, &join->nodes)
        || !number(&at, 1, NODE_WORKERS_MOST, &join->workers)
        || !word(&at, join->version, sizeof join->version) || !read_host(&at, join->host)
        || !number(&at, 0, sizeof join->role - 1, &role) || strlen(at) < (size_t)role + 1
        || at[role] != ' ')
        return -1;
    memcpy(join->role, at, (size_t)role);
    join->role[role] = 0;
    join->job = at + role + 1;
    return 0;
}

/* ---- Failures --------------------------------------------------------------- */

enum { MAY_RESTART = 1, IS_CAUSE = 2 };

int node_failure(const char *text, struct failure *failure)
{
    const char *at = text;
    int flags;

    if (!number(&at, -1, INT32_MAX, &failure->rank) || !number(&at, 1, 255, &failure->code)
        || !number(&at, 0, MAY_RESTART | IS_CAUSE, &flags))
        return -1;
    failure->may_restart = (flags & MAY_RESTART) != 0;
    failure->is_cause = (flags & IS_CAUSE) != 0;
    failure->what = at;
    return 0;
}

void node_failure_print(const struct failure *failure, char text[NODE_TEXT])
{
    const int flags = (failure->may_restart ? MAY_RESTART : 0) | (failure->is_cause ? IS_CAUSE : 0);

    snprintf(text, NODE_TEXT, "%d %d %d %.900s", failure->rank, failure->code, flags,
             failure->what);
}

/* ---- Deaths ----------------------------------------------------------------- */

static int is_a_way_to_die(int how)
{
    return how == CLD_EXITED || how == CLD_KILLED || how == CLD_DUMPED || how == CONTROL_HOST_LOST;
}

static int read_tombs(const char **at, struct control_death *death)
{
    for (int i = 0; i < death->tombs; i++) {
        struct control_tomb *tomb = &death->tomb[i];

        if (!large(at, &tomb->group) || !large(at, &tomb->begun) || !large(at, &tomb->done))
            return 0;
    }
    return 1;
}

int node_death_read(const char *text, struct node_death *dead)
{
    struct control_death *death = &dead->death;
    const char *at = text;

    *dead = (struct node_death){ .count = 0 };
    return word(&at, dead->generation, sizeof dead->generation)
                   && number(&at, 0, NODE_WORKERS_MOST, &death->rank)
                   && number(&at, 1, NODE_WORKERS_MOST, &dead->count)
                   && number(&at, 0, CONTROL_HOST_LOST, &death->how) && is_a_way_to_die(death->how)
                   && (dead->count == 1 || death->how == CONTROL_HOST_LOST)
                   && number(&at, 0, 255, &death->code) && number(&at, 0, INT32_MAX, &death->pid)
                   && number(&at, 0, SIGRTMAX, &death->asked) && read_host(&at, death->host)
                   && number(&at, 0, CONTROL_TOMBS, &death->tombs) && read_tombs(&at, death) && !*at
               ? 0
               : -1;
}

void node_death_print(const struct node_death *dead, char text[NODE_TEXT])
{
    const struct control_death *death = &dead->death;
    char host[64];
    int used;

    print_host(death->host, host);
    used = snprintf(text, NODE_TEXT, "%s %d %d %d %d %d %d %s %d", dead->generation, death->rank,
                    dead->count, death->how, death->code, death->pid, death->asked, host,
                    death->tombs);
    for (int i = 0; i < death->tombs && used < NODE_TEXT; i++)
        used += snprintf(text + used, NODE_TEXT - (size_t)used, " %llx %llx %llx",
                         (unsigned long long)death->tomb[i].group,
                         (unsigned long long)death->tomb[i].begun,
                         (unsigned long long)death->tomb[i].done);
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

void node_death_deliver(const struct nodes *nodes, const struct node_death *dead)
{
    struct control_death death = dead->death;

    for (int i = 0; i < dead->count; i++, death.rank++)
        nodes->hooks->died(nodes->job, &death);
}

int node_workers_read(const char *text, struct node_workers *workers)
{
    const char *at = text;

    *workers = (struct node_workers){ .count = 0 };
    return word(&at, workers->generation, sizeof workers->generation)
                   && number(&at, 0, NODE_WORKERS_MOST, &workers->base)
                   && number(&at, 1, NODE_WORKERS_MOST, &workers->count) && !*at
               ? 0
               : -1;
}

/* ---- Stopping --------------------------------------------------------------- */

int node_wish_read(const char *text, struct node_wish *wish)
{
    const char *at = text;

    *wish = (struct node_wish){ .for_good = 0 };
    return word(&at, wish->generation, sizeof wish->generation)
                   && number(&at, 0, 1, &wish->for_good) && !*at
               ? 0
               : -1;
}

struct node_wish node_wish(const char *generation, int for_good)
{
    struct node_wish wish = { .for_good = for_good };

    snprintf(wish.generation, sizeof wish.generation, "%s", generation);
    return wish;
}

/* A step is less than half of what a word holds: the top bit is not the count's, and the step
 * behind it must be one too. */
int node_steps_read(const char *text, struct node_steps *steps)
{
    const char *at = text;

    *steps = (struct node_steps){ .step = 0 };
    return word(&at, steps->generation, sizeof steps->generation) && large(&at, &steps->step)
                   && steps->step < UINT64_MAX / 4 && number(&at, 0, 1, &steps->for_good) && !*at
               ? 0
               : -1;
}

void node_steps_print(const struct node_steps *steps, char text[NODE_TEXT])
{
    snprintf(text, NODE_TEXT, "%s %llx %d", steps->generation, (unsigned long long)steps->step,
             steps->for_good);
}
