/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.c - prints one line on stderr when the program calls exit(0) or returns 0 from main().
 *
 * If the program ends by a signal or with another code, or its default group failed, it has
 * reported something else.  Then, and with CT_LOG=none or error, no line is printed. */
#include "runtime/group/leftovers.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/forks.h"
#include "runtime/util/log.h"

static struct {
    int rank, is_first_of_host;
    pid_t process;    /* 0: there was no default group */
    int is_destroyed; /* the default group */
    int has_failed;   /* likewise */
    /* Works that ended with their groups: how many, and the last one's verb and number. */
    _Atomic int works;
    const char *_Atomic verb;
    _Atomic uint64_t seq;
} left;

void leftovers_begin(const ct_group *world, int local_rank)
{
    left.rank = world->rank;
    left.is_first_of_host = local_rank == 0;
    left.process = world->maker;
    left.is_destroyed = 0;
}

void leftovers_end(const ct_group *world)
{
    left.is_destroyed = 1;
    left.has_failed |= atomic_load(&world->failure.status) != CT_OK;
}

void leftovers_forget(void)
{
    left.process = 0;
    left.has_failed = 0;
    atomic_store(&left.works, 0);
}

void leftovers_add(const struct group_work *work)
{
    atomic_store(&left.verb, work->verb);
    atomic_store(&left.seq, work->seq);
    atomic_fetch_add(&left.works, 1);
}

/* Adds the works of the default group and of the groups made from it.  Skips works whose lock
 * another thread holds when the program ends. */
static void add_works_of_world(void)
{
    ct_group *world = default_group();

    if (!world || pthread_mutex_trylock(&world->children) != 0)
        return;
    for (ct_group *g = world; g; g = g->next) {
        if (pthread_mutex_trylock(&g->async.lock) != 0)
            continue;
        for (const struct group_work *work = g->async.works; work; work = work->next)
            leftovers_add(work);
        pthread_mutex_unlock(&g->async.lock);
    }
    pthread_mutex_unlock(&world->children);
}

/* Writes "with 1 asynchronous call (all_reduce #4) that was never waited for"; "": no such call. */
static void describe_works(char *text, size_t size)
{
    const int works = atomic_load(&left.works);
    char number[32] = "";

    *text = '\0';
    if (atomic_load(&left.seq) > 0)
        snprintf(number, sizeof number, " #%llu", (unsigned long long)atomic_load(&left.seq));
    if (works == 1)
        snprintf(text, size, "with 1 asynchronous call (%s%s) that was never waited for",
                 atomic_load(&left.verb), number);
    else if (works > 1)
        snprintf(text, size, "with %d asynchronous calls that were never waited for", works);
}

/* Prints the line.  Only one rank of each host says that the group was not destroyed, since in most
 * programs that is so on all ranks. */
static void leftovers_say(int code, void *arg)
{
    const char *chosen = getenv("CT_LOG");
    char works[160], line[300];
    int silent = code != 0 || !left.process || left.process != this_process || left.has_failed;
    int undestroyed;

    (void)arg;
    if (!silent && !left.is_destroyed)
        silent = atomic_load(&default_group()->failure.status) != CT_OK;
    if (silent || (chosen && *chosen && !log_wants(LOG_WARN)))
        return;
    add_works_of_world();
    describe_works(works, sizeof works);
    undestroyed = !left.is_destroyed && left.is_first_of_host;
    if (*works || undestroyed)
        log_text(line, (size_t)snprintf(line, sizeof line, "rank %d: the program ended %s%s%s\n",
                                        left.rank, works, *works && undestroyed ? " and " : "",
                                        undestroyed ? "without ct_destroy_process_group()" : ""));
}

/* Registers the handler first, so that it runs last: the program's own handlers may still wait for
 * works and destroy groups. */
__attribute__((constructor)) static void register_at_exit(void)
{
    on_exit(leftovers_say, NULL);
}
