/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_status.c - what nodes send for the status page, in pieces and in any order, and its two
 * forms.  Steps: a byte for the node (its low bits) and whether the piece is the last one, a byte
 * for the size, the piece. */
#include <string.h>

#include "launcher/status/board.h"
#include "runtime/util/json_writer.h"
#include "tests/fuzz/input.h"

enum { NODES = 3 };

static const struct job_facts facts = { .job = "job",
                                        .program = "./app",
                                        .state = "running",
                                        .version = "0",
                                        .said = &(struct text){ .data = NULL } };

/* Valid UTF-8 that a terminal and a browser only show. */
static void is_text(const struct text *text, int lines)
{
    const unsigned char *at = (const unsigned char *)text->data;

    for (size_t i = 0; i < text->used;) {
        const size_t size = json_character(at + i, text->used - i);

        holds(size > 0 && (at[i] >= ' ' || (lines && at[i] == '\n')) && at[i] != 127);
        i += size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct board board = { .look = 1 };
    struct text json = { 0 }, metrics = { 0 };

    holds(board_set_nodes(&board, NODES) == 0);
    while (in.left > 0) {
        const unsigned step = take(&in);
        size_t bytes = take(&in);

        bytes = bytes < in.left ? bytes : in.left;
        if (board_take(&board, (int)(step % 4), 1, step & 16, (const char *)in.data, bytes) < 0)
            board.node[step % 4].coming.used = 0; /* that node is lost */
        in.data += bytes;
        in.left -= bytes;
    }
    board_judge(&board);
    board_json(&board, &facts, &json);
    board_metrics(&board, &facts, &metrics);
    is_text(&json, 0);
    holds(!metrics.used || !memchr(metrics.data, '\0', metrics.used));
    free(json.data);
    free(metrics.data);
    board_free(&board);
    return 0;
}
