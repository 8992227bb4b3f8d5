/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.c - prints a line on stderr about what the program left undone, when the program calls
 * exit(0) or returns 0 from main().
 *
 * Prints nothing if the program ends with another code or by a signal, or if its default group has
 * failed, since the program then has another problem to report.  Prints nothing with CT_LOG=none or
 * error. */
#include "runtime/group/leftovers.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/forks.h"
#include "runtime/util/log.h"

static struct {
    int rank, is_first_of_host; /* is_first_of_host: 1 if the local rank is 0 */
    pid_t process;              /* the process of the default group; 0 if there was no group */
    int is_destroyed;           /* 1 if the default group was destroyed */
    int has_failed;             /* 1 if a default group had failed when it was destroyed */
    _Atomic int works;          /* number of works for which the program did not wait */
    const char *_Atomic verb;   /* the verb and the number of the last such work */
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

/* Counts the works of the default group and of the groups created from it.  Skips a group if
 * another thread holds the lock of the group's works. */
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

/* Writes "with 1 asynchronous call (all_reduce #4) that was never waited for", or "" if there is no
 * such call. */
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

/* Prints the line.  Only one rank of each host reports that the default group was not destroyed,
 * since most programs destroy it on all ranks or on none. */
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

/* Registers the exit handler when libct is loaded.  Exit handlers run in reverse order, so this
 * handler runs after the program's own, which may still wait for works and destroy groups. */
__attribute__((constructor)) static void register_at_exit(void)
{
    /* musl has no on_exit(), so a program that is linked with it gets no such line. */
#ifdef __GLIBC__
    on_exit(leftovers_say, NULL);
#else
    (void)leftovers_say;
#endif
}
