/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tools.c - what py-spy and addr2line write of a program that may be anybody's, as ctctl
 * shows it.  The first byte says which of the two; no tool is run. */
#include <stdint.h>

#include "launcher/inspect/source_lines.c"
#include "tests/fuzz/input.h"

/* ---- Instead of launcher/util/run_tool.c ------------------------------------------- */

static const char *answer;

int tool_is_there(const char *name)
{
    return strcmp(name, "eu-addr2line") != 0;
}

int tool_run(char *const *argv, int seconds, struct text *out)
{
    holds(argv[0] && seconds > 0);
    text_add(out, answer, strlen(answer));
    return 0;
}

/* ---- One input ------------------------------------------------------------------- */

/* Nothing that a terminal would obey. */
static void is_text(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);

    holds(length < size);
    for (size_t i = 0; i < length; i++)
        holds((unsigned char)text[i] >= ' ' && text[i] != 127);
}

/* Three places, two of them in one file. */
static void look_up_three(void)
{
    struct source_places *places = calloc(1, sizeof *places);

    holds(places != NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(places->place[i].module.name, sizeof places->place[i].module.name, "file%d",
                 i / 2);
        places->place[i].module.at = 4096 + (uint64_t)i;
    }
    places->count = 3;
    for (int i = 0; i < places->count; i++)
        if (!places->place[i].looked_up)
            lines_look_up(places, i);
    for (int i = 0; i < places->count; i++)
        is_text(places->place[i].words, sizeof places->place[i].words);
    free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text, frame[160] = "";

    if (size == 0)
        return -1;
    holds((text = malloc(size)) != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    answer = text;
    if (data[0] % 2)
        look_up_three();
    else if (python_frame(text, frame, sizeof frame))
        is_text(frame, sizeof frame);
    free(text);
    return 0;
}
