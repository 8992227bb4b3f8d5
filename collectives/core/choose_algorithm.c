/* SPDX-License-Identifier: Apache-2.0 */
/* choose_algorithm.c - chooses the algorithm that carries out a call.
 *
 * A call uses the first row of the user's override (algorithm_overrides.h) that can do the call.
 * Without such a row it uses the first row of the operation's table that can do the call and is
 * meant for so many bytes.  Between hosts it uses the row that is fastest by a model of the
 * network.  All ranks choose the same row, since only facts that all ranks agree on decide.  The
 * row's number is a part of the signature, so ranks with different overrides get an error.
 *
 * The model changes when calls have measured the network (collectives/hosts/measure_network.c).  A
 * program may make a call while earlier calls have not run, and not on all ranks at the same point.
 * So the model decides when the call runs. */
#include "collectives/core/algorithm_overrides.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"

/* Returns the bytes that are compared with the limits of rows and overrides.  Returns SIZE_MAX if
 * not all ranks know the sizes of the blocks. */
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

/* Returns the row that an override sets for this call, or -1 if there is no such row that can do
 * the call.  Sets *cannot to a row that an override has but that can't do the call. */
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

/* Returns the path that an override sets for a call on device memory, or PATH_NONE. */
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

/* Writes the row's cost, such as " (60 us)", at line + used.  Returns its length, or 0 if the row
 * has no model. */
static size_t say_cost(const struct algorithm *row, const struct call *c, char *line, size_t used,
                       size_t size)
{
    double us;

    if (!row->cost || !can(row, c) || used >= size)
        return 0;
    us = cost_of(row, c);
    return isinf(us) ? (size_t)snprintf(line + used, size - used, " (once the network is measured)")
                     : (size_t)snprintf(line + used, size - used, " (%.0f us)", us);
}

static void choose_explain(const struct choices *choices, const struct call *c)
{
    const int operation = c->signature.operation;
    const struct algorithm *const *rows = c->algorithms;
    char line[768], least[80];
    size_t used = explain_begin(c, 0, line, sizeof line);

    if (used == 0)
        return;
    snprintf(least, sizeof least, "the least on a network of %.0f us and %.3g GB/s",
             c->network->alpha_us, 1e-3 / c->network->us_per_byte);
    if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s, %s", c->algorithm->name,
                                 c->by_override       ? choices->source[operation]
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

/* Returns 1 if the override has a single row, for any size.  If that row can't do the call, the
 * call fails. */
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

/* A row replaces the best row before it only if its cost is below LESS times the best cost.
 * Otherwise programs that were compiled differently might round a tie differently. */
#define LESS 0.99

/* Returns the first row that suits.  The last row of a table can do every call, of any size. */
static int first_row(const struct algorithm *const *rows, const struct call *c)
{
    int row = 0;

    while (!can(rows[row], c) || (rows[row]->most && size_of(c) > rows[row]->most))
        row++;
    return row;
}

/* Returns the fastest of this row, which has a model, and the rows with a model that directly
 * follow it. */
static int fastest_row(const struct algorithm *const *rows, const struct call *c, int row)
{
    int best = row;

    while (rows[++row] && rows[row]->cost)
        if (can(rows[row], c) && cost_of(rows[row], c) < LESS * cost_of(rows[best], c))
            best = row;
    return best;
}

static void use_row(struct call *c, int row)
{
    c->signature.algorithm = (c->signature.algorithm & ~SIGNATURE_ROW_MASK) | (uint32_t)row;
    c->algorithm = c->algorithms[row];
}

/* Sets the path for a call on device memory.  The chosen row is used too, if the call is staged
 * through host memory. */
static void choose_override(struct call *c)
{
    c->override = overridden_path(c->group->algorithms.choices, c);
    c->signature.algorithm |= SIGNATURE_DEVICE | SIGNATURE_WAY(c->override);
}

ct_status call_choose(struct call *c)
{
    const struct algorithm *const *rows = c->algorithms;
    struct choices *choices = c->group->algorithms.choices;
    int row = -1, cannot = -1;

    c->signature.algorithm = 0;
    if (choices->count[c->signature.operation] > 0)
        row = overridden_row(choices, c, &cannot);
    if (row < 0 && cannot >= 0 && is_mandatory(choices, c->signature.operation))
        return ct_fail(CT_ERR_UNSUPPORTED, "algorithm \"%s\" can't do this call (%s)",
                       rows[cannot]->name, choices->source[c->signature.operation]);
    c->by_override = row >= 0;
    use_row(c, c->by_override ? row : first_row(rows, c));
    if (c->place.space && sizes_are_agreed(c))
        choose_override(c);
    return CT_OK;
}

void call_choose_fastest(struct call *c)
{
    const struct choices *choices = c->group->algorithms.choices;

    if (c->algorithm->cost && !c->by_override)
        use_row(c, fastest_row(c->algorithms, c, (int)signature_row(&c->signature)));
    atomic_store_explicit(&c->group->algorithms.last, c->algorithm->name, memory_order_relaxed);
    if (choices->explain && !c->place.space)
        choose_explain(choices, c);
}

const char *ct_last_algorithm(const ct_group *group)
{
    ct_group *g;

    return group_resolve((ct_group *)(uintptr_t)group, &g) == CT_OK ? g->algorithms.last : NULL;
}
