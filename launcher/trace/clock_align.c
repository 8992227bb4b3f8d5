/* SPDX-License-Identifier: Apache-2.0 */
/* clock_align.c - see clock_align.h.
 *
 * 1. For two clocks, one of which is placed already, all lines that break no bound are a convex
 *    polygon over (offset at the first time, offset at the last).  It is cut out of the lines that
 *    clocks may have, message by message.  The line is taken from its middle; how far the polygon
 *    reaches from there is the error.  Where no line fits, since a clock did not run evenly, all
 *    bounds are loosened by as little as makes one fit.
 * 2. From clock 0 on the clock with the least error is placed next, errors of the clocks between
 *    added up: the shortest paths (Dijkstra).
 * 3. Two clocks that were not placed by each other may still break bounds of messages between them,
 *    by less than their errors.  Those lines are moved apart, the less certain one further, until
 *    none does (Agmon's relaxation). */
#include "launcher/trace/clock_align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DRIFT 2e-4 /* two quartzes, one of them corrected by NTP */
#define SLEWED 0.1      /* chrony, while it makes up for a wrong start */
#define CORNERS 128
#define MOST_STEPS 4e8 /* of the relaxation: seconds */
#define MARGIN_NS 2    /* more than rounding takes */

/* No sum of a time, a base and an offset leaves 64 bits: a time that is mapped is cut to FAR_NS. */
#define FAR_NS INT64_C(3000000000000000000)
#define OFFSET_MOST 2e18

/* ---- Lines ------------------------------------------------------------------- */

static double part_of(const struct clock_line *line, int64_t ns)
{
    return (double)(ns - line->first) / (double)(line->last - line->first);
}

int64_t clock_line_map(const struct clock_line *line, int64_t ns)
{
    const double offset = line->at_first + (line->at_last - line->at_first) * part_of(line, ns);

    const int64_t mapped = ns + line->base + llround(fmax(-OFFSET_MOST, fmin(offset, OFFSET_MOST)));

    return mapped < -FAR_NS ? -FAR_NS : mapped > FAR_NS ? FAR_NS : mapped;
}

static int is_far(const struct clock_line *line)
{
    return llabs(clock_line_map(line, line->first)) == FAR_NS
           || llabs(clock_line_map(line, line->last)) == FAR_NS;
}

static int64_t error_of(double ns)
{
    return (int64_t)fmin(ceil(ns), OFFSET_MOST);
}

/* ---- Two clocks -------------------------------------------------------------- */

struct messages {
    const struct clock_message *at;
    size_t count;
};

/* A line, by its offsets. */
struct corner {
    double first, last;
};

struct polygon {
    struct corner at[CORNERS];
    int count;
};

/* What a message says of a line's offset at one of its times: it is at least (sign 1) or at most
 * (-1) the limit. */
struct bound {
    double part, limit, sign;
};

/* Of the line of clock `child`.  Its base is near the truth, so a double is exact to nanoseconds.
 */
static struct bound bound_of(const struct clock_line *clocks, int child,
                             const struct clock_message *m)
{
    const struct clock_line *line = &clocks[child];
    const int is_taken = m->to == child;
    const int64_t own = is_taken ? m->taken : m->sent;
    const int64_t other = is_taken ? clock_line_map(&clocks[m->from], m->sent)
                                   : clock_line_map(&clocks[m->to], m->taken);

    return (struct bound){ part_of(line, own), (double)(other - own - line->base),
                           is_taken ? 1 : -1 };
}

static double inside(struct corner line, struct bound b)
{
    return b.sign * (line.first + (line.last - line.first) * b.part - b.limit);
}

static void cut(struct polygon *lines, struct bound b)
{
    struct polygon left;
    int i = 0;

    while (i < lines->count && inside(lines->at[i], b) >= 0)
        i++;
    if (i == lines->count) /* as most messages leave it */
        return;
    left.count = 0;
    for (i = 0; i < lines->count; i++) {
        const struct corner c = lines->at[i], next = lines->at[(i + 1) % lines->count];
        const double here = inside(c, b), there = inside(next, b), way = here / (here - there);

        /* Beyond CORNERS one is cut off: what is left still breaks no bound. */
        if (here >= 0 && left.count < CORNERS)
            left.at[left.count++] = c;
        if ((here >= 0) != (there >= 0) && left.count < CORNERS)
            left.at[left.count++] = (struct corner){ c.first + (next.first - c.first) * way,
                                                     c.last + (next.last - c.last) * way };
    }
    lines->count = left.count;
    memcpy(lines->at, left.at, (size_t)left.count * sizeof *left.at);
}

/* All lines for the child with at most that drift that break no bound by more than `loose`: how
 * many corners they have.  -1: the messages do not go both ways. */
static int fitting_lines(const struct clock_line *clocks, int child, struct messages messages,
                         double drift, double loose, struct polygon *lines)
{
    const double turn = drift * (double)(clocks[child].last - clocks[child].first);
    double least = -INFINITY, most = INFINITY;

    for (size_t i = 0; i < messages.count; i++) {
        const struct bound b = bound_of(clocks, child, &messages.at[i]);

        least = b.sign > 0 ? fmax(least, b.limit) : least;
        most = b.sign < 0 ? fmin(most, b.limit) : most;
    }
    if (isinf(least) || isinf(most))
        return -1;
    least -= turn + loose;
    most += turn + loose;
    lines->at[0] = (struct corner){ least, least - turn };
    lines->at[1] = (struct corner){ most, most - turn };
    lines->at[2] = (struct corner){ most, most + turn };
    lines->at[3] = (struct corner){ least, least + turn };
    lines->count = least <= most ? 4 : 0;
    for (size_t i = 0; i < messages.count && lines->count > 0; i++) {
        struct bound b = bound_of(clocks, child, &messages.at[i]);

        b.limit -= b.sign * loose;
        cut(lines, b);
    }
    return lines->count;
}

/* The mean of all lines, which breaks no bound either, since the polygon is convex: the sum over
 * the triangles that it has at corner 0.  Of lines through one point it is the mean of the corners.
 */
static struct corner centre(const struct polygon *lines)
{
    const struct corner zero = lines->at[0];
    struct corner mean = { 0, 0 }, sum = { 0, 0 };
    double area = 0;

    for (int i = 0; i < lines->count; i++) {
        const struct corner *at = &lines->at[i], *next = &lines->at[(i + 1) % lines->count];
        const struct corner a = { at->first - zero.first, at->last - zero.last };
        const struct corner b = { next->first - zero.first, next->last - zero.last };
        const double doubled = a.first * b.last - a.last * b.first;

        area += doubled;
        sum.first += doubled * (a.first + b.first) / 3;
        sum.last += doubled * (a.last + b.last) / 3;
        mean.first += at->first / lines->count;
        mean.last += at->last / lines->count;
    }
    if (area < 1e-3)
        return mean;
    return (struct corner){ zero.first + sum.first / area, zero.last + sum.last / area };
}

static void take_line(struct clock_line *line, const struct polygon *lines)
{
    const struct corner middle = centre(lines);
    double error = 0;

    for (const struct corner *c = lines->at; c < lines->at + lines->count; c++)
        error = fmax(error, fmax(fabs(c->first - middle.first), fabs(c->last - middle.last)));
    line->at_first = middle.first;
    line->at_last = middle.last;
    line->error_ns = error_of(error);
}

/* The child's line by the messages that it exchanged with a clock that is placed.  Returns how much
 * the bounds had to be loosened, to 1 %; -1: there is no line, since all messages go one way. */
static double fit(struct clock_line *clocks, int child, struct messages messages)
{
    struct clock_line *line = &clocks[child];
    struct polygon lines;
    double low = 0, loose = 0;
    int corners;

    line->base = 0;
    line->base = (int64_t)bound_of(clocks, child, messages.at).limit;
    corners = fitting_lines(clocks, child, messages, MOST_DRIFT, 0, &lines);
    if (corners == 0)
        corners = fitting_lines(clocks, child, messages, SLEWED, 0, &lines);
    for (; corners == 0; corners = fitting_lines(clocks, child, messages, SLEWED, loose, &lines)) {
        low = loose;
        loose = loose > 0 ? 2 * loose : 1;
    }
    while (loose - low > 1 + loose / 100) {
        const double middle = (low + loose) / 2;

        if (fitting_lines(clocks, child, messages, SLEWED, middle, &lines) > 0)
            loose = middle;
        else
            low = middle;
    }
    if (corners < 0)
        return -1;
    if (loose > 0)
        fitting_lines(clocks, child, messages, SLEWED, loose, &lines);
    take_line(line, &lines);
    line->error_ns = error_of((double)line->error_ns + loose);
    return loose;
}

/* ---- All clocks -------------------------------------------------------------- */

struct alignment {
    struct clock_line *clocks;
    int count;
    struct messages messages; /* those of two clocks side by side */
    struct clock_line *found; /* the best line so far of each clock, and its error from clock 0, or
                                 from the one that was placed by its wall clock */
    int *parent;              /* the clock whose messages gave that; -1: none has */
    char *is_placed;
    double loose; /* bounds of clocks that no line fits */
};

static int low_of(const struct clock_message *m)
{
    return m->from < m->to ? m->from : m->to;
}

static int by_pair(const void *a, const void *b)
{
    const struct clock_message *one = a, *other = b;

    if (low_of(one) != low_of(other))
        return low_of(one) < low_of(other) ? -1 : 1;
    return one->from + one->to - other->from - other->to;
}

static void fit_pair(struct alignment *a, int placed, struct messages pair)
{
    const int child = pair.at->from + pair.at->to - placed;
    double loose;

    if ((pair.at->from != placed && pair.at->to != placed) || a->is_placed[child]
        || (loose = fit(a->clocks, child, pair)) < 0)
        return;
    a->loose = fmax(a->loose, loose);
    a->clocks[child].error_ns =
        error_of((double)a->clocks[child].error_ns + (double)a->found[placed].error_ns);
    if (a->parent[child] < 0 || a->clocks[child].error_ns < a->found[child].error_ns) {
        a->found[child] = a->clocks[child];
        a->parent[child] = placed;
    }
}

/* A clock was placed: its messages may place others better than what was found before. */
static void fit_by_messages(struct alignment *a, int placed)
{
    struct messages rest = a->messages;

    while (rest.count > 0) {
        struct messages pair = { rest.at, 1 };

        while (pair.count < rest.count && by_pair(pair.at, pair.at + pair.count) == 0)
            pair.count++;
        fit_pair(a, placed, pair);
        rest.at += pair.count;
        rest.count -= pair.count;
    }
}

/* By messages the one with the least error, if there is any; else the first one, by its wall clock.
 * Without that its trace begins with the one of clock 0. */
static int place_next(struct alignment *a)
{
    struct clock_line *line;
    int next = 0;

    for (int i = a->count - 1; i > 0; i--)
        if (!a->is_placed[i]
            && (next == 0 || a->parent[next] < 0
                || (a->parent[i] >= 0 && a->found[i].error_ns < a->found[next].error_ns)))
            next = i;
    line = &a->clocks[next];
    if (a->parent[next] >= 0) {
        *line = a->found[next];
        if (a->clocks[a->parent[next]].error_ns < 0)
            line->error_ns = -1;
        return next;
    }
    line->at_first = line->at_last = 0;
    line->base = line->has_wall && a->clocks->has_wall ? line->wall - a->clocks->wall
                                                       : a->clocks->first - line->first;
    line->error_ns = -1;
    return next;
}

/* 0: a clock lies far from all times, and no other one can be placed by it. */
static int place_all(struct alignment *a)
{
    int placed = 0;

    a->clocks->base = a->clocks->error_ns = 0;
    a->clocks->at_first = a->clocks->at_last = 0;
    for (int i = 1; i < a->count; i++) {
        a->is_placed[placed] = 1;
        fit_by_messages(a, placed);
        placed = place_next(a);
        if (is_far(&a->clocks[placed]))
            return 0;
    }
    return 1;
}

/* ---- Messages between clocks that were not placed by each other -------------- */

/* By how much the message is taken before it was sent; negative: it is not. */
static double too_early(const struct clock_line *clocks, const struct clock_message *m)
{
    return (double)(clock_line_map(&clocks[m->from], m->sent)
                    - clock_line_map(&clocks[m->to], m->taken));
}

static double worst(const struct alignment *a)
{
    double most = 0;

    for (size_t i = 0; i < a->messages.count; i++)
        most = fmax(most, too_early(a->clocks, &a->messages.at[i]));
    return most;
}

/* How easily a line moves: the square of its error, as for least squares. */
static double freedom(const struct clock_line *clocks, int i)
{
    const double error = clocks[i].error_ns < 0 ? 1e12 : fmax((double)clocks[i].error_ns, 1);

    return i == 0 ? 0 : error * error;
}

/* Moves both lines as little as makes the message later by that. */
static void move_apart(struct clock_line *clocks, const struct clock_message *m, double by)
{
    struct clock_line *from = &clocks[m->from], *to = &clocks[m->to];
    const double f = part_of(from, m->sent), t = part_of(to, m->taken);
    const double from_moves = freedom(clocks, m->from), to_moves = freedom(clocks, m->to);
    const double step =
        1.5 * by
        / (from_moves * (f * f + (1 - f) * (1 - f)) + to_moves * (t * t + (1 - t) * (1 - t)));

    from->at_first -= step * from_moves * (1 - f);
    from->at_last -= step * from_moves * f;
    to->at_first += step * to_moves * (1 - t);
    to->at_last += step * to_moves * t;
}

/* Keeps the best lines of all that it tries, in `best`.  Returns how far messages are too early
 * then. */
static double relax(struct alignment *a, struct clock_line *best)
{
    const size_t bytes = (size_t)a->count * sizeof *best;
    const double sweeps = fmin(1000, MOST_STEPS / (double)(a->messages.count + 1));
    double least = worst(a), now = least;

    memcpy(best, a->clocks, bytes);
    for (double i = 0; i < sweeps && now > a->loose; i++) {
        for (size_t j = 0; j < a->messages.count; j++) {
            const double by = too_early(a->clocks, &a->messages.at[j]) + MARGIN_NS - a->loose;

            if (by > 0)
                move_apart(a->clocks, &a->messages.at[j], by);
        }
        now = worst(a);
        if (now < least)
            memcpy(best, a->clocks, bytes);
        least = fmin(least, now);
    }
    return least;
}

/* 0: a line leads far from all times. */
static int take_best(struct alignment *a, const struct clock_line *placed,
                     const struct clock_line *best)
{
    for (int i = 0; i < a->count; i++) {
        a->clocks[i] = best[i];
        if (best[i].error_ns >= 0) /* what it was moved by may be wrong too */
            a->clocks[i].error_ns = error_of((double)best[i].error_ns
                                             + fmax(fabs(best[i].at_first - placed[i].at_first),
                                                    fabs(best[i].at_last - placed[i].at_last)));
        if (is_far(&a->clocks[i]))
            return 0;
    }
    return 1;
}

int64_t clocks_align(struct clock_line *clocks, int count, struct clock_message *messages,
                     size_t message_count)
{
    const size_t n = (size_t)count;
    struct alignment a = { .clocks = clocks,
                           .count = count,
                           .messages = { messages, message_count },
                           .found = calloc(2 * n, sizeof *clocks),
                           .parent = calloc(n, sizeof *a.parent),
                           .is_placed = calloc(n, 1) };
    int64_t left = CLOCKS_NO_MEMORY;

    if (a.found && a.parent && a.is_placed) {
        for (int i = 0; i < count; i++) {
            a.parent[i] = -1;
            if (clocks[i].last <= clocks[i].first)
                clocks[i].last = clocks[i].first + 1;
        }
        if (message_count > 0)
            qsort(messages, message_count, sizeof *messages, by_pair);
        left = CLOCKS_FAR_APART;
        if (place_all(&a)) {
            memcpy(a.found, clocks, n * sizeof *clocks); /* before they are moved */
            left = (int64_t)relax(&a, a.found + n);
            if (!take_best(&a, a.found, a.found + n))
                left = CLOCKS_FAR_APART;
        }
    }
    free(a.found);
    free(a.parent);
    free(a.is_placed);
    return left;
}
