/* SPDX-License-Identifier: Apache-2.0 */
/* root_cause.c - finds the rank that caused the failure of a round.
 *
 * From each rank that failed by itself, ctrun follows the edges to a rank without an edge, which is
 * the end of the chain.  If there are several ends, the kind that takes precedence is the root
 * cause (enum root_kind), and within a kind the earliest end.  The time of an end is that in its
 * error file, or else its place in the order of deaths.
 *
 * A rank that ctrun stopped is an end only if an edge leads to that rank.  Such a rank may have
 * been in a call without the time to blame a rank.  ctrun then adds an edge from it to the rank
 * that is furthest behind.
 *
 * A circle has no end.  But an edge with the reason BLAME_DIED is younger than the failure of the
 * dead rank.  So the end is the rank that wrote the youngest such edge, since this rank came too
 * late and found the other ranks dead.  Ranks that make different calls blame each other.  In this
 * case the root is the smallest set of ranks that made the same call.  Any other circle is a
 * deadlock, and all of its ranks are the root. */
#include "launcher/report/root_cause.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/report/first_failure.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/ranges.h"
#include "runtime/util/signal_name.h"

enum { CIRCLE_NONE, CIRCLE_DEADLOCK, CIRCLE_MISMATCH };

struct root_rank {
    struct control_death death; /* only ->blame is set while the rank runs */
    int order;                  /* place in the order of deaths, from 1; 0 while the rank runs */
    unsigned walk;              /* number of the last walk that passed this rank */
    unsigned known;             /* value of graph->edges for which ->end and ->circle are valid */
    int end;                    /* last rank of a walk from here, or the first rank of a circle */
    int searched;               /* value of graph->deaths at the last search for a missing edge */
    uint8_t circle;             /* kind of circle in which a walk ends, or CIRCLE_NONE */
    uint8_t blamed_for;         /* lowest enum blame_reason of the ranks that blame this rank */
    uint8_t is_root;            /* 1 if root_graph_end() or root_graph_find() marked this rank */
};

/* ---- The graph ---------------------------------------------------------------- */

/* Begins a graph.  Uses calloc(), so that the kernel allocates only the pages to which a death is
 * written. */
void root_graph_begin(struct root_graph *graph, int world)
{
    root_graph_free(graph);
    graph->ranks = calloc((size_t)world, sizeof *graph->ranks);
    graph->world = graph->ranks ? world : 0;
    graph->edges = 1;
}

void root_graph_free(struct root_graph *graph)
{
    free(graph->ranks);
    *graph = (struct root_graph){ 0 };
}

void root_graph_died(struct root_graph *graph, const struct control_death *death, int count)
{
    for (int rank = death->rank; rank < death->rank + count && rank < graph->world; rank++) {
        if (rank < 0 || graph->ranks[rank].order)
            continue;
        graph->ranks[rank].death = *death;
        graph->ranks[rank].death.rank = rank;
        graph->ranks[rank].order = ++graph->deaths;
        graph->edges++;
    }
}

void root_graph_blames(struct root_graph *graph, int rank, const struct control_blame *blame)
{
    if (rank < 0 || rank >= graph->world || graph->ranks[rank].order)
        return;
    graph->ranks[rank].death.blame = *blame;
    graph->edges++;
}

/* True if the rank died of a signal that ctrun sent, so that its end can't be the cause of a
 * failure. */
static int was_ended_by_ctrun(const struct control_death *death)
{
    return death->asked && death->how != CLD_EXITED && death->code == death->asked;
}

static int reason_of(const struct root_graph *graph, int rank)
{
    return graph->ranks[rank].death.blame.on.reason;
}

/* Returns the rank that `rank` blames, or -1 if `rank` blames no other rank. */
static int edge_of(const struct root_graph *graph, int rank)
{
    const struct blame on = graph->ranks[rank].death.blame.on;

    return on.reason <= BLAME_NONE || on.reason >= BLAME_REASONS || on.rank < 0
                   || on.rank >= graph->world || on.rank == rank
               ? -1
               : on.rank;
}

/* Returns the same as edge_of(), with one exception.  Returns -1 if `rank` blames the death of a
 * rank that ctrun stopped and that itself blames no rank. */
static int blamed_by(const struct root_graph *graph, int rank)
{
    const int on = edge_of(graph, rank);

    return on >= 0 && reason_of(graph, rank) == BLAME_DIED
                   && was_ended_by_ctrun(&graph->ranks[on].death)
                   && reason_of(graph, on) == BLAME_NONE
               ? -1
               : on;
}

int root_graph_has_edge(const struct root_graph *graph, int rank)
{
    return rank >= 0 && rank < graph->world && blamed_by(graph, rank) >= 0;
}

/* ---- Ranks that ctrun ended before they could blame another --------------------------- */

/* Returns the rank for which other ranks wait in the call.  This is a stopped rank (SIGSTOP) if
 * there is one, else the rank that is furthest behind.  Returns -1 if all ranks have begun the
 * call. */
static int awaited_in(const struct root_graph *graph, uint64_t group, uint64_t seq)
{
    uint64_t least = 0;
    int last = -1, last_stopped = 0;

    for (int rank = 0; rank < graph->world; rank++) {
        const struct control_death *death = &graph->ranks[rank].death;
        const int stopped = death->stopped != 0;

        for (int i = 0; i < death->tombs && i < CONTROL_TOMBS; i++) {
            const uint64_t begun = death->tomb[i].begun;

            if (death->tomb[i].group != group || begun > seq || (begun == seq && !stopped))
                continue;
            if (last >= 0
                && (stopped < last_stopped || (stopped == last_stopped && begun >= least)))
                continue;
            last = rank;
            last_stopped = stopped;
            least = begun;
        }
    }
    return last;
}

/* True if ctrun ended this rank while it waited in a call, before it could blame a rank.  `reason`
 * is the reason why another rank blames this rank. */
static int was_cut_off(const struct root_rank *r, int reason)
{
    return (reason == BLAME_LATE || (reason == BLAME_DIED && was_ended_by_ctrun(&r->death)))
           && r->death.asked && !r->death.stopped && r->death.blame.on.reason == BLAME_NONE
           && r->death.blame.call.seq;
}

/* Adds an edge for each rank that was cut off (was_cut_off()).  The edge leads to the rank for
 * which the call waited.  This rank may have been cut off, too, so the loop follows the chain.
 * Ranks in the same call share one search. */
static void add_missing_edges(struct root_graph *graph)
{
    uint64_t group = 0, seq = 0;
    int on = -1;

    for (int i = 0; i < graph->world; i++)
        for (int at = i, next; (next = edge_of(graph, at)) >= 0; at = next) {
            struct root_rank *r = &graph->ranks[next];

            if (r->searched == graph->deaths || !was_cut_off(r, reason_of(graph, at)))
                break;
            r->searched = graph->deaths;
            if (r->death.blame.group != group || r->death.blame.call.seq != seq) {
                group = r->death.blame.group;
                seq = r->death.blame.call.seq;
                on = awaited_in(graph, group, seq);
            }
            if (on < 0)
                break;
            r->death.blame.on.rank = on;
            r->death.blame.on.reason = graph->ranks[on].death.stopped ? BLAME_STOPPED : BLAME_LATE;
            graph->edges++;
        }
}

/* ---- Walking ------------------------------------------------------------------ */

static int says_it_failed(const struct root_graph *graph, int rank)
{
    return reason_of(graph, rank) == BLAME_DIED || reason_of(graph, rank) == BLAME_FAILED;
}

/* Returns the rank at the end of the circle that contains `rank`, or -1 if the circle has no
 * end. */
static int end_of_circle(const struct root_graph *graph, int rank)
{
    int at = rank;

    do {
        const int next = blamed_by(graph, at);

        if (!says_it_failed(graph, at) && says_it_failed(graph, next))
            return next;
        at = next;
    } while (at != rank);
    return -1;
}

static int first_of_circle(const struct root_graph *graph, int rank)
{
    int first = rank;

    for (int at = blamed_by(graph, rank); at != rank; at = blamed_by(graph, at))
        first = at < first ? at : first;
    return first;
}

/* True if a rank from `from` to the rank before `to` says that the next rank made a different call.
 * If `from` and `to` are the same rank, looks at all ranks of the circle that contains it. */
static int has_mismatch(const struct root_graph *graph, int from, int to)
{
    int at = from;

    do {
        if (reason_of(graph, at) == BLAME_MISMATCH)
            return 1;
        at = blamed_by(graph, at);
    } while (at >= 0 && at != to);
    return 0;
}

/* Sets ->end and ->circle for all ranks of the chain that starts at `rank`, so that all walks
 * together visit each rank only a few times. */
static void walk(struct root_graph *graph, int rank)
{
    const unsigned number = ++graph->walk;
    struct root_rank *const ranks = graph->ranks;
    int at = rank, end;
    int circle = CIRCLE_NONE;

    while (ranks[at].known != graph->edges && ranks[at].walk != number
           && blamed_by(graph, at) >= 0) {
        ranks[at].walk = number;
        at = blamed_by(graph, at);
    }
    if (ranks[at].known == graph->edges) {
        end = ranks[at].end;
        circle = ranks[at].circle;
    } else if (blamed_by(graph, at) < 0) {
        end = at;
    } else {
        end = end_of_circle(graph, at);
        if (end < 0)
            circle = has_mismatch(graph, at, at) ? CIRCLE_MISMATCH : CIRCLE_DEADLOCK;
        end = end < 0 ? first_of_circle(graph, at) : end;
    }
    for (at = rank; at >= 0 && ranks[at].known != graph->edges; at = blamed_by(graph, at)) {
        ranks[at].known = graph->edges;
        ranks[at].end = end;
        ranks[at].circle = (uint8_t)circle;
    }
}

/* Returns the entry of a rank after its ->end and ->circle are updated to the current edges. */
static const struct root_rank *walk_from(struct root_graph *graph, int rank)
{
    if (graph->ranks[rank].known != graph->edges)
        walk(graph, rank);
    return &graph->ranks[rank];
}

static void unmark(struct root_graph *graph)
{
    for (int i = 0; i < graph->world; i++)
        graph->ranks[i].is_root = 0;
}

static void mark_circle(struct root_graph *graph, int rank)
{
    int at = rank;

    do {
        graph->ranks[at].is_root = 1;
        at = blamed_by(graph, at);
    } while (at != rank);
}

int root_graph_end(struct root_graph *graph, int rank)
{
    const struct root_rank *from;
    int end, mismatch;

    unmark(graph);
    if (rank < 0 || rank >= graph->world)
        return rank;
    from = walk_from(graph, rank);
    end = from->end;
    mismatch = from->circle == CIRCLE_MISMATCH || has_mismatch(graph, rank, end);
    if (from->circle == CIRCLE_NONE)
        graph->ranks[end].is_root = 1;
    else
        mark_circle(graph, end);
    for (int i = graph->world - 1; i >= 0; i--) {
        if (graph->ranks[i].order)
            continue;
        if (graph->ranks[i].is_root)
            end = i;
        graph->ranks[i].is_root |= (uint8_t)mismatch;
    }
    return end;
}

int root_graph_is_marked(const struct root_graph *graph, int rank)
{
    return rank >= 0 && rank < graph->world && graph->ranks[rank].is_root;
}

/* ---- What an end did ----------------------------------------------------------- */

static void note_reasons(struct root_graph *graph)
{
    for (int i = 0; i < graph->world; i++)
        graph->ranks[i].blamed_for = BLAME_NONE;
    for (int i = 0; i < graph->world; i++) {
        const int on = blamed_by(graph, i), reason = reason_of(graph, i);

        if (on >= 0 && (!graph->ranks[on].blamed_for || reason < graph->ranks[on].blamed_for))
            graph->ranks[on].blamed_for = (uint8_t)reason;
    }
}

/* True if the rank ended without a signal of ctrun.  ctrun may also have sent a signal to a rank
 * that was dead already, and in this case other ranks blame it with BLAME_DIED. */
static int ended_by_itself(const struct root_rank *r)
{
    return r->order && (r->death.asked == 0 || r->blamed_for == BLAME_DIED);
}

static int was_killed_unprovoked(const struct control_death *death)
{
    return death->how != CLD_EXITED && signal_is_unprovoked(death->code);
}

static int exit_code(const struct control_death *death)
{
    return death->how == CLD_EXITED ? death->code : 128 + death->code;
}

static enum root_kind kind_of(const struct root_graph *graph, int rank)
{
    const struct root_rank *r = &graph->ranks[rank];
    const int reason = r->blamed_for;

    if (reason == BLAME_MISMATCH)
        return ROOT_MISMATCH;
    if (ended_by_itself(r) && was_killed_unprovoked(&r->death))
        return ROOT_KILLED;
    if (ended_by_itself(r) && exit_code(&r->death) != 0)
        return ROOT_EXITED;
    if (ended_by_itself(r))
        return ROOT_LEFT;
    if (r->death.stopped || reason == BLAME_STOPPED)
        return ROOT_STOPPED;
    return reason == BLAME_LEFT ? ROOT_DESTROYED : reason == BLAME_FAILED ? ROOT_FAILED : ROOT_LATE;
}

/* ---- Different calls ------------------------------------------------------------ */

#define CALLS_COMPARED 16

/* A set of ranks that made the same call. */
struct camp {
    uint32_t call;
    int ranks;
};

/* Returns the hash of the call with the number `seq` on a rank, or 0 if that call of the rank is
 * not known.  If a rank has destroyed the group, only its blame has the call. */
static uint32_t call_of(const struct control_death *death, uint64_t group, uint64_t seq)
{
    if (death->blame.group == group && death->blame.call.seq == seq)
        return death->blame.call_hash;
    for (int i = 0; i < death->tombs && i < CONTROL_TOMBS; i++)
        if (death->tomb[i].group == group && death->tomb[i].begun == seq)
            return death->tomb[i].call;
    return 0;
}

static int count_camps(const struct root_graph *graph, uint64_t group, uint64_t seq,
                       struct camp camps[CALLS_COMPARED])
{
    int count = 0;

    for (int i = 0; i < graph->world; i++) {
        const uint32_t call = call_of(&graph->ranks[i].death, group, seq);
        int at = 0;

        while (at < count && camps[at].call != call)
            at++;
        if (!call || at == CALLS_COMPARED)
            continue;
        if (at == count)
            camps[count++] = (struct camp){ call, 0 };
        camps[at].ranks++;
    }
    return count;
}

/* Marks the smallest sets of ranks with the same call as the root, which are all sets if their
 * sizes are equal.  If only one set is known, marks `rank` and `other`.  Returns the first marked
 * rank. */
static int mark_minority(struct root_graph *graph, int rank, int other)
{
    const struct control_blame *blame = &graph->ranks[rank].death.blame;
    const uint64_t group = blame->group, seq = blame->call.seq;
    struct camp camps[CALLS_COMPARED];
    const int count = seq ? count_camps(graph, group, seq, camps) : 0;
    int least = graph->world, first = -1;

    for (int i = 0; i < count; i++)
        least = camps[i].ranks < least ? camps[i].ranks : least;
    for (int i = 0; i < graph->world; i++) {
        const uint32_t call = count > 1 ? call_of(&graph->ranks[i].death, group, seq) : 0;

        graph->ranks[i].is_root = count > 1 ? 0 : i == rank || i == other;
        for (int at = 0; at < count && call; at++)
            if (camps[at].call == call && camps[at].ranks == least)
                graph->ranks[i].is_root = 1;
        if (graph->ranks[i].is_root && first < 0)
            first = i;
    }
    return first;
}

/* ---- The root -------------------------------------------------------------------- */

/* True if this rank failed before ctrun sent it a signal. */
static int failed_by_itself(const struct root_rank *r)
{
    return r->order && r->death.asked == 0 && exit_code(&r->death) != 0
           && r->death.how != CONTROL_HOST_LOST;
}

/* A possible root cause: a rank that failed by itself, and the end of its chain. */
struct candidate {
    int start, end, circle;
    enum root_kind kind;
};

static int root_is_earlier(const struct root_graph *graph, int a, int b)
{
    const struct root_rank *const x = &graph->ranks[a], *const y = &graph->ranks[b];

    if (x->death.noted_ns && y->death.noted_ns && x->death.noted_ns != y->death.noted_ns)
        return x->death.noted_ns < y->death.noted_ns;
    if (!x->death.noted_ns != !y->death.noted_ns)
        return x->death.noted_ns != 0;
    return x->order && (!y->order || x->order < y->order);
}

/* Returns the candidate for a rank.  Most chains end at the same rank as the chain of the best
 * candidate so far.  In this case the kind of that candidate is used again. */
static struct candidate candidate_from(struct root_graph *graph, int rank,
                                       const struct candidate *best)
{
    const struct root_rank *from = walk_from(graph, rank);
    struct candidate c = { .start = rank, .end = from->end, .circle = from->circle };

    if (best->kind != ROOT_NONE && best->end == c.end)
        c.kind = best->kind;
    else if (c.circle == CIRCLE_NONE)
        c.kind = kind_of(graph, c.end);
    else
        c.kind = c.circle == CIRCLE_MISMATCH ? ROOT_MISMATCH : ROOT_DEADLOCK;
    return c;
}

static int is_better(const struct root_graph *graph, const struct candidate *a,
                     const struct candidate *b)
{
    if (b->kind == ROOT_NONE || a->kind != b->kind)
        return b->kind == ROOT_NONE || a->kind < b->kind;
    if (a->end != b->end && root_is_earlier(graph, a->end, b->end))
        return 1;
    return a->end == b->end && root_is_earlier(graph, a->start, b->start);
}

/* Returns the first marked rank that failed by itself, or `first` if there is no such rank. */
static int speaker(const struct root_graph *graph, int first)
{
    for (int i = 0; i < graph->world; i++)
        if (graph->ranks[i].is_root && failed_by_itself(&graph->ranks[i]))
            return i;
    return first;
}

static void set_code(const struct root_graph *graph, struct root_cause *root)
{
    const struct root_rank *r = &graph->ranks[root->rank];
    const struct control_death *of = NULL;

    if (root->kind == ROOT_KILLED || root->kind == ROOT_EXITED || failed_by_itself(r))
        of = &r->death;
    else if (root->victim >= 0 && !(r->order && r->death.asked == 0))
        of = &graph->ranks[root->victim].death;
    root->code = of ? exit_code(of) : 1; /* 1 if the rank left with exit code 0 */
    root->is_signal = of && of->how != CLD_EXITED;
}

static void mark(struct root_graph *graph, struct root_cause *root, const struct candidate *best)
{
    unmark(graph);
    graph->ranks[best->end].is_root = 1;
    root->rank = best->end;
    if (best->kind == ROOT_DEADLOCK) {
        mark_circle(graph, best->end);
        root->rank = speaker(graph, best->end);
    } else if (best->kind == ROOT_MISMATCH) {
        const int from = best->circle ? best->end : best->start;

        root->rank = speaker(graph, mark_minority(graph, from, blamed_by(graph, from)));
    }
}

struct root_cause root_graph_find(struct root_graph *graph)
{
    struct root_cause root = { .kind = ROOT_NONE, .rank = -1, .victim = -1 };
    struct candidate best = { .kind = ROOT_NONE };
    int edges = 0;

    add_missing_edges(graph);
    note_reasons(graph);
    for (int i = 0; i < graph->world; i++) {
        struct candidate c;

        edges += blamed_by(graph, i) >= 0;
        if (!failed_by_itself(&graph->ranks[i]))
            continue;
        c = candidate_from(graph, i, &best);
        if (graph->ranks[c.end].death.how != CONTROL_HOST_LOST && is_better(graph, &c, &best))
            best = c;
    }
    if (!edges || best.kind == ROOT_NONE)
        return root;
    mark(graph, &root, &best);
    root.kind = best.kind;
    for (int i = 0; i < graph->world; i++) {
        if (!graph->ranks[i].is_root && failed_by_itself(&graph->ranks[i])
            && walk_from(graph, i)->end == best.end
            && (root.victim < 0 || graph->ranks[i].order < graph->ranks[root.victim].order))
            root.victim = i;
    }
    set_code(graph, &root);
    return root;
}

/* ---- In words --------------------------------------------------------------------- */

/* Writes the ranks for which is() returns non-zero, such as "rank 2 (pid 4310)" or "ranks 0-1 and
 * 3".  Returns the number of these ranks. */
static int name_ranks(const struct root_graph *graph, int (*is)(const void *graph, int rank),
                      char *text, size_t size)
{
    char ranges[160], words[240] = "";
    const int count = ranges_print(0, graph->world, is, graph, ranges, sizeof ranges);

    ranges_as_words(ranges, words, sizeof words);
    if (count == 1)
        snprintf(text, size, "rank %s (pid %d)", words, graph->ranks[atoi(words)].death.pid);
    else
        snprintf(text, size, "ranks %s", words);
    return count;
}

static int root_is_named(const void *graph, int rank)
{
    return root_graph_is_marked(graph, rank);
}

/* True if the rank is not marked as a root, but blames a marked rank. */
static int waits_for_named(const void *of, int rank)
{
    const struct root_graph *graph = of;
    const int on = blamed_by(graph, rank);

    return !graph->ranks[rank].is_root && on >= 0 && graph->ranks[on].is_root;
}

/* Returns the blame with the call in which the victim was. */
static const struct control_blame *victim_blame(const struct root_graph *graph,
                                                const struct root_cause *root)
{
    const int from = root->victim >= 0 ? root->victim : root->rank;
    const struct control_blame *blame = &graph->ranks[from].death.blame;

    /* Use the latest call.  If a call failed before it began, the blame has the previous call. */
    for (int i = 0; i < graph->world; i++)
        if (waits_for_named(graph, i) && graph->ranks[i].death.blame.call.seq > blame->call.seq)
            blame = &graph->ranks[i].death.blame;
    return blame;
}

/* True if a rank has begun the call of this blame and did not fail in it.  A rank that came too
 * late fails, because the other ranks have given up. */
static int stands_still(const struct root_graph *graph, int rank, const struct control_blame *blame)
{
    return blame->call.seq && reason_of(graph, rank) == BLAME_NONE
           && call_of(&graph->ranks[rank].death, blame->group, blame->call.seq) != 0;
}

/* Writes the name of a call, such as "all_reduce #4". */
static void name_call(const struct control_call *call, char *text, size_t size)
{
    if (call->begun_ns == 0)
        snprintf(text, size, "ct_init_process_group(), or at the store");
    else if (call->seq)
        snprintf(text, size, "%.24s #%llu", operation_name(call->operation),
                 (unsigned long long)call->seq);
    else
        snprintf(text, size, "%.24s", operation_name(call->operation));
}

static void name_end(const struct root_graph *graph, int rank, char *text, size_t size)
{
    const struct control_death *death = &graph->ranks[rank].death;
    char name[32];

    if (death->how == CLD_EXITED)
        snprintf(text, size, "exited with code %d", death->code);
    else
        snprintf(text, size, "was killed by %s", signal_name(death->code, name, sizeof name));
}

void root_graph_words(struct root_graph *graph, const struct root_cause *root, char *text,
                      size_t size)
{
    static const char *const did[] = {
        [ROOT_LEFT] = "left with exit code 0",    [ROOT_FAILED] = "had a call that failed",
        [ROOT_DESTROYED] = "destroyed its group", [ROOT_STOPPED] = "was stopped",
        [ROOT_LATE] = "did not join in time",
    };
    const struct control_blame *const blame = victim_blame(graph, root);
    char roots[200], waiting[200], call[64], end[64];
    const int many = name_ranks(graph, root_is_named, roots, sizeof roots) > 1;
    const int waits = name_ranks(graph, waits_for_named, waiting, sizeof waiting);
    int used;

    name_call(&blame->call, call, sizeof call);
    name_end(graph, root->rank, end, sizeof end);
    if (root->kind == ROOT_KILLED || root->kind == ROOT_EXITED)
        used = snprintf(text, size, "%s %s", roots, end);
    else if (root->kind == ROOT_DEADLOCK)
        used = snprintf(text, size, "%s wait for each other in %s (a deadlock)", roots, call);
    else if (root->kind == ROOT_MISMATCH && many)
        used = snprintf(text, size, "%s disagree: they made different calls in %s", roots, call);
    else if (root->kind == ROOT_MISMATCH)
        used = snprintf(text, size, "%s made a different call than %s, which %s in %s", roots,
                        waiting, waits == 1 ? "was" : "were", call);
    else
        used = snprintf(text, size, "%s %s while %s %s in %s", roots,
                        root->kind == ROOT_LATE && stands_still(graph, root->rank, blame)
                            ? "got no further in the same call"
                            : did[root->kind],
                        waits ? waiting : "others", waits == 1 ? "was" : "were", call);
    if (root->victim < 0 || root->kind == ROOT_KILLED || root->kind == ROOT_EXITED || used < 0
        || (size_t)used >= size)
        return;
    name_end(graph, root->victim, end, sizeof end);
    snprintf(text + used, size - (size_t)used, "; rank %d then %s", root->victim, end);
}
