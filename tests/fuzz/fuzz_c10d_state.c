/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_c10d_state.c - whatever lies in the store where a rendezvous state should.
 *
 * The input is the pickle, whose base64 is made here; behind a tab it is the text
 * itself.  What is accepted is written, read back and written once more, and both
 * texts must be the same.  Then an agent decides and acts, and that must come back too. */
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/base64.h"
#include "launcher/nodes/c10d/heartbeats.h"
#include "launcher/nodes/c10d/state_rules.h"
#include "tests/fuzz/input.h"

static int read_it(struct c10d_state *state, const uint8_t *data, size_t size, struct why *why)
{
    char *text;
    int status;

    if (size > 0 && data[0] == '\t')
        return c10d_state_read(state, (const char *)data + 1, size - 1, why);
    holds((text = malloc(BASE64_LETTERS(size) + 1)) != NULL);
    base64_encode(data, size, text);
    status = c10d_state_read(state, text, BASE64_LETTERS(size), why);
    free(text);
    return status;
}

static void comes_back(const struct c10d_state *state)
{
    struct c10d_state again = { .naive = state->naive };
    struct why why = { .text = "" };
    size_t size, size_again;
    char *text = c10d_state_write(state, &size);
    char *text_again;

    holds(text != NULL && strlen(text) == size);
    holds(c10d_state_read(&again, text, size, &why) == C10D_READ);
    holds(again.count == state->count && again.round == state->round);
    holds(again.naive == state->naive && again.no_spares == state->no_spares);
    holds(again.others_size == state->others_size);
    holds((text_again = c10d_state_write(&again, &size_again)) != NULL);
    holds(size == size_again && !memcmp(text, text_again, size));
    free(text);
    free(text_again);
    c10d_state_free(&again);
}

/* One of its nodes, or a newcomer. */
static void act(struct c10d_state *state, const uint8_t *data, size_t size)
{
    const struct c10d_settings settings = { 1 + data[size - 1] % 3, 3 + data[size - 1] % 5,
                                            30000000, 5000000, 3 };
    const struct c10d_now now = { .utc = INT64_C(1795231513710030), .monotonic = data[size / 2] };
    const size_t which = data[size / 2] % (state->count + 1);
    const struct c10d_node newcomer = { "me", 1, 0 };
    struct c10d_node me;
    struct c10d_ranks ranks = { 0 };
    struct c10d_watch watch = { 0 };

    holds(c10d_node_copy(&me, which < state->count ? &state->members[which].node : &newcomer) == 0);
    holds(c10d_ranks_take(&ranks, state) == 0);
    for (int i = 0; i < 20; i++) {
        const enum c10d_action action = c10d_decide_join(state, &me, now, 200, &settings);

        holds(c10d_apply(state, action, &me, now, &settings, &ranks) == 0);
        if (c10d_is(state, &me, C10D_PARTICIPANT) && action == C10D_FINISH)
            holds(c10d_find(state, &me)->rank < (int64_t)c10d_count(state, C10D_PARTICIPANT));
        holds(c10d_drop_dead(state, &watch, &me, 1000000 * i, &settings) >= 0);
    }
    comes_back(state);
    c10d_remove(state, &me, C10D_PARTICIPANT | C10D_WAITING | C10D_SPARE, &settings);
    holds(!c10d_find(state, &me));
    free((char *)me.addr);
    c10d_ranks_free(&ranks);
    c10d_watch_free(&watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct c10d_state state = { 0 };
    struct why why = { .text = "" };
    int status;

    if (size == 0)
        return 0;
    status = read_it(&state, data, size, &why);
    holds(status != -1 || (why.text[0] && state.count == 0));
    if (status == C10D_READ) {
        comes_back(&state);
        act(&state, data, size);
    }
    c10d_state_free(&state);
    return 0;
}
