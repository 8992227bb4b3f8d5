/* SPDX-License-Identifier: Apache-2.0 */
/* choose_algorithm.c - which algorithm carries out a call.
 *
 * A call takes the first row of the user's override (algorithm_overrides.h) that can do it. Without
 * such a row it takes the operation's first row that can do it and is meant for so many bytes;
 * between hosts it takes the row that is fastest by a model of the network.  Only what all ranks
 * agree on decides, so all take the same row.  The row's number travels in the signature, so ranks
 * with different overrides find out. */
#include "collectives/core/algorithm_overrides.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"

/* Gives the size that overrides are compared with.  Blocks whose sizes not all ranks know count as
 * large. */
static size_t size_of(const struct call *c)
{
    return c->signature.count == 0 && blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv) > 0
               ? SIZE_MAX
               : call_bytes(c);
}

static int can(const struct algorithm *row, const struct call *c)
{
    return !row->fits || row->fits(c);
}

static double cost_of(const struct algorithm *row, const struct call *c)
{
    return row->cost(c, row->way);
}

/* Gives the row that an override names for this call; -1: none.  *cannot: a row that was named but
 * can't do the call. */
static int overridden_row(const struct choices *choices, const struct call *c, int *cannot)
{
    const int operation = c->signature.operation;
    const struct algorithm *const *rows = c->algorithms;
    const size_t size = size_of(c);

    for (int i = 0; i < choices->count[operation]; i++) {
        const struct algorithm_override *o = &choices->overrides[operation][i];

        if (o->path != PATH_NONE || size > o->upto)
            continue;
        if (can(rows[o->row], c))
            return o->row;
        *cannot = o->row;
    }
    return -1;
}

/* Gives the path that an override names for a call on device memory. */
static enum path_number overridden_path(const struct choices *choices, const struct call *c)
{
    const int operation = c->signature.operation;

    for (int i = 0; i < choices->count[operation]; i++) {
        const struct algorithm_override *o = &choices->overrides[operation][i];

        if (o->path != PATH_NONE && size_of(c) <= o->upto)
            return o->path;
    }
    return PATH_NONE;
}

size_t explain_begin(const struct call *c, int on_device, char *line, size_t size)
{
    const size_t bytes = call_bytes(c);
    const uint64_t bit = (uint64_t)1 << (bytes ? 63 - __builtin_clzll(bytes) : 0);
    const int operation = c->signature.operation;

    if (atomic_fetch_or(&c->group->algorithms.choices->explained[on_device][operation], bit) & bit
        || c->group->rank != 0)
        return 0;
    return (size_t)snprintf(
        line, size,
        "ct: %s, %zu bytes per rank%s, group %s of %d on %d host%s: ", operation_name(operation),
        bytes, on_device ? " on a device" : "", c->group->name, c->group->size,
        c->group->order.hosts, c->group->order.hosts == 1 ? "" : "s");
}

void explain_end(char *line, size_t used, size_t size)
{
    if (used > size - 2)
        used = size - 2;
    line[used++] = '\n';
    log_text(line, used);
}

/* Writes " (60 us)" at line + used; returns its length. */
static size_t say_cost(const struct algorithm *row, const struct call *c, char *line, size_t used,
                       size_t size)
{
    if (!row->cost || !can(row, c) || used >= size)
        return 0;
    return (size_t)snprintf(line + used, size - used, " (%.0f us)", cost_of(row, c));
}

static void choose_explain(const struct choices *choices, const struct call *c, int by_override)
{
    const int operation = c->signature.operation;
    const struct algorithm *const *rows = c->algorithms;
    char line[768], least[80];
    size_t used = explain_begin(c, 0, line, sizeof line);

    if (used == 0)
        return;
    snprintf(least, sizeof least, "the least on a network of %.0f us and %.3g GB/s",
             choices->network.alpha_us, 1e-3 / choices->network.us_per_byte);
    if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s, %s", c->algorithm->name,
                                 by_override          ? choices->source[operation]
                                 : c->algorithm->cost ? least
                                                      : "the first that suits");
    used += say_cost(c->algorithm, c, line, used, sizeof line);
    for (int i = 0; rows[i]; i++) {
        if (rows[i] == c->algorithm || used >= sizeof line
            || (rows[i]->backend && strcmp(rows[i]->backend, c->group->backend) != 0))
            continue;
        used += (size_t)snprintf(line + used, sizeof line - used, "; %s %s", rows[i]->name,
                                 !can(rows[i], c)                              ? "can't"
                                 : rows[i]->most && size_of(c) > rows[i]->most ? "is for less"
                                                                               : "could");
        used += say_cost(rows[i], c, line, used, sizeof line);
    }
    explain_end(line, used, sizeof line);
}

/* Says whether the override has one row alone, for any size.  The call fails if that row can't do
 * it. */
static int is_mandatory(const struct choices *choices, int operation)
{
    size_t upto = 0;
    int rows = 0;

    for (int i = 0; i < choices->count[operation]; i++)
        if (choices->overrides[operation][i].path == PATH_NONE) {
            upto = choices->overrides[operation][i].upto;
            rows++;
        }
    return rows == 1 && upto == SIZE_MAX;
}

/* A row must cost this much less than the best one before it: programs that were compiled
 * differently may round a tie differently. */
#define LESS 0.99

/* Gives the first row that suits.  If that has a model, gives the fastest of it and the rows behind
 * it that have one.  The last row can do every call, of any size. */
static int first_row(const struct algorithm *const *rows, const struct call *c)
{
    int row = 0, best;

    while (!can(rows[row], c) || (rows[row]->most && size_of(c) > rows[row]->most))
        row++;
    for (best = row; rows[best]->cost && rows[++row] && rows[row]->cost;)
        if (can(rows[row], c) && cost_of(rows[row], c) < LESS * cost_of(rows[best], c))
            best = row;
    return best;
}

/* On device memory the row is used by a call that is staged through host memory. */
static void choose_override(struct call *c)
{
    c->override = overridden_path(c->group->algorithms.choices, c);
    c->signature.algorithm |= SIGNATURE_DEVICE | SIGNATURE_WAY(c->override);
}

ct_status call_choose(struct call *c)
{
    const struct algorithm *const *rows = c->algorithms;
    struct choices *choices = c->group->algorithms.choices;
    int row = -1, cannot = -1, by_override;

    if (choices->count[c->signature.operation] > 0)
        row = overridden_row(choices, c, &cannot);
    if (row < 0 && cannot >= 0 && is_mandatory(choices, c->signature.operation))
        return ct_fail(CT_ERR_UNSUPPORTED, "algorithm \"%s\" can't do this call (%s)",
                       rows[cannot]->name, choices->source[c->signature.operation]);
    by_override = row >= 0;
    if (!by_override)
        row = first_row(rows, c);
    c->signature.algorithm = (uint32_t)row;
    c->algorithm = rows[row];
    c->group->algorithms.last = c->algorithm->name;
    if (c->place.space && sizes_are_agreed(c))
        choose_override(c);
    if (choices->explain && !c->place.space)
        choose_explain(choices, c, by_override);
    return CT_OK;
}

const char *ct_last_algorithm(const ct_group *group)
{
    ct_group *g;

    return group_resolve((ct_group *)(uintptr_t)group, &g) == CT_OK ? g->algorithms.last : NULL;
}
