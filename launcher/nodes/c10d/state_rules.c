/* SPDX-License-Identifier: Apache-2.0 */
/* state_rules.c - what an agent does next.
 *
 * The first rule that fits decides, so their order is the protocol; the numbers are those
 * of the tests.  Times: a heartbeat is due *at* its interval, a deadline is
 * over only *after* it. */
#include "launcher/nodes/c10d/state_rules.h"

enum { ROLLBACK_US = 5000000 }; /* after the join deadline, to take oneself out again */

const char *c10d_action_name(enum c10d_action action)
{
    static const char *const names[] = {
        [C10D_FINISH] = "finish",
        [C10D_SLEEP] = "sleep",
        [C10D_KEEP_ALIVE] = "keep alive",
        [C10D_JOIN] = "join",
        [C10D_JOIN_WAIT_LIST] = "join the wait list",
        [C10D_JOIN_SPARES] = "join the spares",
        [C10D_LEAVE] = "leave",
        [C10D_LEAVE_WAIT_LIST] = "leave the wait list",
        [C10D_LEAVE_SPARES] = "leave the spares",
        [C10D_COMPLETE] = "complete",
        [C10D_CLOSE] = "close",
        [C10D_CLOSED_ERROR] = "closed",
        [C10D_TIMEOUT_ERROR] = "timeout",
        [C10D_QUIT] = "quit",
    };

    return names[action];
}

int c10d_keep_alive_due(const struct c10d_state *state, const struct c10d_node *me,
                        struct c10d_now now, const struct c10d_settings *settings)
{
    const struct c10d_member *member = c10d_find(state, me);

    return member && (member->roles & C10D_BEATS)
           && member->heartbeat <= now.utc - settings->keep_alive_interval;
}

static enum c10d_action beat_or_sleep(const struct c10d_state *state, const struct c10d_node *me,
                                      struct c10d_now now, const struct c10d_settings *settings)
{
    return c10d_keep_alive_due(state, me, now, settings) ? C10D_KEEP_ALIVE : C10D_SLEEP;
}

/* n ranks below n that have the sum and the sum of squares of 0 to n-1 are these, short
 * of malice, against which the agents of a job have no defence anyway. */
int c10d_world_is_whole(const struct c10d_state *state, const struct c10d_settings *settings)
{
    const uint64_t n = c10d_count(state, C10D_PARTICIPANT);
    uint64_t sum = 0, squares = 0;

    if (n < settings->min)
        return 0;
    for (size_t i = 0; i < state->count; i++) {
        const uint64_t rank = (uint64_t)state->members[i].rank;

        if (!(state->members[i].roles & C10D_PARTICIPANT))
            continue;
        if (rank >= n)
            return 0;
        sum += rank;
        squares += rank * rank;
    }
    return n == 0 || (sum == n * (n - 1) / 2 && squares == (n - 1) * n * (2 * n - 1) / 6);
}

/* Rule 2, of spares.  They have no deadline.  More participants than `max` (somebody's
 * is higher than ours) leave no place either; PyTorch's spare goes in and out then. */
static enum c10d_action decide_spare(const struct c10d_state *state, const struct c10d_node *me,
                                     struct c10d_now now, const struct c10d_settings *settings)
{
    if (c10d_count(state, C10D_PARTICIPANT) < settings->max)
        return C10D_LEAVE_SPARES;
    return beat_or_sleep(state, me, now, settings);
}

/* Rule 4. */
static enum c10d_action decide_late(unsigned roles, struct c10d_now now, int64_t deadline)
{
    if (now.monotonic > deadline + ROLLBACK_US)
        return C10D_TIMEOUT_ERROR;
    if (roles & C10D_PARTICIPANT)
        return C10D_LEAVE;
    return roles & C10D_WAITING ? C10D_LEAVE_WAIT_LIST : C10D_TIMEOUT_ERROR;
}

/* Rules 5 and 6: the round is complete without us.  C10D_FINISH: neither fits.  Agents
 * that know no spares would never let one in. */
static enum c10d_action decide_outside(const struct c10d_state *state, unsigned roles,
                                       const struct c10d_settings *settings)
{
    if (roles & C10D_WAITING)
        return C10D_FINISH;
    if (c10d_count(state, C10D_PARTICIPANT) < settings->max)
        return C10D_JOIN_WAIT_LIST;
    return state->no_spares ? C10D_FINISH : C10D_JOIN_SPARES;
}

/* Rules 7 and 8: the round is open. */
static enum c10d_action decide_open(const struct c10d_state *state, unsigned roles,
                                    struct c10d_now now, const struct c10d_settings *settings)
{
    const size_t count = c10d_count(state, C10D_PARTICIPANT);

    if (!(roles & C10D_PARTICIPANT))
        return C10D_JOIN;
    if (count >= settings->min && count <= settings->max && state->has_deadline
        && state->deadline < now.utc)
        return C10D_COMPLETE;
    return C10D_FINISH;
}

enum c10d_action c10d_decide_join(const struct c10d_state *state, const struct c10d_node *me,
                                  struct c10d_now now, int64_t deadline,
                                  const struct c10d_settings *settings)
{
    const struct c10d_member *member = c10d_find(state, me);
    const unsigned roles = member ? member->roles : 0;
    enum c10d_action action;

    if (state->closed) /* 1 */
        return roles & C10D_SPARE ? C10D_QUIT : C10D_CLOSED_ERROR;
    if (roles & C10D_SPARE) /* 2 */
        return decide_spare(state, me, now, settings);
    /* 3: or somebody left between the last one's coming and our reading of it; the
     * others are stopped as soon as one leaves, and the next round has us all. */
    if (state->complete && (roles & C10D_PARTICIPANT))
        return c10d_world_is_whole(state, settings) ? C10D_FINISH : C10D_LEAVE;
    if (now.monotonic > deadline) /* 4 */
        return decide_late(roles, now, deadline);
    action = state->complete ? decide_outside(state, roles, settings)
                             : decide_open(state, roles, now, settings);
    if (action != C10D_FINISH) /* 5 to 8 */
        return action;
    return beat_or_sleep(state, me, now, settings); /* 9, 10 */
}

enum c10d_action c10d_decide_leave(const struct c10d_state *state, const struct c10d_node *me,
                                   struct c10d_now now, int64_t deadline)
{
    if (!c10d_is(state, me, C10D_PARTICIPANT))
        return C10D_FINISH;
    return now.monotonic > deadline ? C10D_TIMEOUT_ERROR : C10D_LEAVE;
}

enum c10d_action c10d_decide_close(const struct c10d_state *state, struct c10d_now now,
                                   int64_t deadline)
{
    if (state->closed)
        return C10D_FINISH;
    return now.monotonic > deadline ? C10D_TIMEOUT_ERROR : C10D_CLOSE;
}

enum c10d_action c10d_decide_keep_alive(const struct c10d_state *state, const struct c10d_node *me,
                                        struct c10d_now now, int64_t deadline,
                                        const struct c10d_settings *settings)
{
    if (!c10d_keep_alive_due(state, me, now, settings))
        return C10D_FINISH;
    return now.monotonic > deadline ? C10D_TIMEOUT_ERROR : C10D_KEEP_ALIVE;
}
