/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.c - one line on stderr when the program calls exit(0), or returns 0 from main().
 *
 * A program that ends by a signal or with another code has reported something else, and so has one
 * whose default group failed: there is no line then.  CT_LOG=none or error: no line either. */
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
    /* Of all works that were not waited for: how many, and the sums of their verbs' addresses and
     * of their calls' numbers.  Of a single one those are its own. */
    _Atomic int works;
    _Atomic uintptr_t verbs;
    _Atomic uint64_t seqs;
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
    atomic_store(&left.verbs, 0);
    atomic_store(&left.seqs, 0);
}

void leftovers_count(const char *verb, uint64_t seq, int by)
{
    atomic_fetch_add_explicit(&left.works, by, memory_order_relaxed);
    atomic_fetch_add_explicit(&left.verbs, (uintptr_t)by * (uintptr_t)verb, memory_order_relaxed);
    atomic_fetch_add_explicit(&left.seqs, (uint64_t)by * seq, memory_order_relaxed);
}

/* "with 1 asynchronous call (all_reduce #4) that was never waited for"; "": there is none. */
static void describe_works(char *text, size_t size)
{
    const int works = atomic_load(&left.works);
    char number[32] = "";

    *text = '\0';
    if (atomic_load(&left.seqs) > 0)
        snprintf(number, sizeof number, " #%llu", (unsigned long long)atomic_load(&left.seqs));
    if (works == 1)
        snprintf(text, size, "with 1 asynchronous call (%s%s) that was never waited for",
                 (const char *)atomic_load(&left.verbs), number);
    else if (works > 1)
        snprintf(text, size, "with %d asynchronous calls that were never waited for", works);
}

/* That the group was not destroyed is said by one rank of each host, as it holds for all of them in
 * most programs. */
static void say(int code, void *arg)
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
    describe_works(works, sizeof works);
    undestroyed = !left.is_destroyed && left.is_first_of_host;
    if (*works || undestroyed)
        log_text(line, (size_t)snprintf(line, sizeof line, "rank %d: the program ended %s%s%s\n",
                                        left.rank, works, *works && undestroyed ? " and " : "",
                                        undestroyed ? "without ct_destroy_process_group()" : ""));
}

/* The first handler to be registered runs last, behind those of the program that may still wait and
 * destroy. */
__attribute__((constructor)) static void register_at_exit(void)
{
    on_exit(say, NULL);
}
