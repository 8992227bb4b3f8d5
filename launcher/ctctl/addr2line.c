/* SPDX-License-Identifier: Apache-2.0 */
/* addr2line.c - addresses as lines of source code.
 *
 * Ranks run the same program and stand in few places: each place is asked for once, all those of
 * a file by one run of the tool. */
#include "launcher/ctctl/addr2line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/ctctl/run_tool.h"
#include "launcher/inspect/elf_module.h"
#include "launcher/inspect/page_reader.h"

#define AT_ONCE 64 /* places */
#define PATIENCE_S 10

struct place {
    struct module module;
    int asked;
    char words[160]; /* "": nothing is known */
};

struct places {
    struct place place[AT_ONCE];
    int count;
};

int source_words(const char *function, const char *place, char *text, size_t size)
{
    const char *file = strrchr(place, '/');
    const char *colon;
    char name[64], line[96];

    file = file ? file + 1 : place;
    colon = strchr(file, ':');
    if (!colon || colon[1] < '1' || colon[1] > '9')
        return 0;
    page_text(line, sizeof line, file,
              (size_t)(colon - file) + 1 + strspn(colon + 1, "0123456789"));
    page_text(name, sizeof name, function, strcspn(function, " \n"));
    if (*name && *name != '?')
        snprintf(text, size, "%s (%s)", line, name);
    else
        snprintf(text, size, "%s", line);
    return 1;
}

/* Two lines for each that was asked for. */
static void take_answer(struct places *places, const int *which, int asked, char *answer)
{
    char *rest = NULL, *function = strtok_r(answer, "\n", &rest);

    for (int i = 0; i < asked && function; i++) {
        struct place *place = &places->place[which[i]];
        const char *line = strtok_r(NULL, "\n", &rest);

        if (!line)
            return;
        source_words(function, line, place->words, sizeof place->words);
        function = strtok_r(NULL, "\n", &rest);
    }
}

/* All places in the file of the first one. */
static void ask(struct places *places, int first)
{
    const char *name = places->place[first].module.name;
    char *argv[AT_ONCE + 5], digits[AT_ONCE][24];
    int which[AT_ONCE], asked = 0, words = 0;
    struct text out = { 0 };

    argv[words++] = tool_is_there("eu-addr2line") ? "eu-addr2line" : "addr2line";
    argv[words++] = "-f";
    argv[words++] = "-e";
    argv[words++] = places->place[first].module.path;
    for (int i = first; i < places->count; i++) {
        if (strcmp(places->place[i].module.name, name) != 0)
            continue;
        snprintf(digits[asked], sizeof digits[asked], "0x%llx",
                 (unsigned long long)places->place[i].module.at);
        places->place[i].asked = 1;
        which[asked] = i;
        argv[words++] = digits[asked++];
    }
    argv[words] = NULL;
    if (tool_run(argv, PATIENCE_S, &out) == 0) {
        text_add(&out, "", 1);
        if (out.data)
            take_answer(places, which, asked, out.data);
    }
    free(out.data);
}

/* NULL: no room for another one. */
static struct place *find_place(struct places *places, const struct module *module)
{
    for (int i = 0; i < places->count; i++)
        if (places->place[i].module.at == module->at
            && !strcmp(places->place[i].module.name, module->name))
            return &places->place[i];
    if (places->count == AT_ONCE)
        return NULL;
    places->place[places->count] = (struct place){ .module = *module };
    return &places->place[places->count++];
}

/* Each call that a rank is in and whose place is known. */
static void each_call(struct job_snapshot *job, struct places *places,
                      void (*act)(struct group_snapshot *group, const struct place *place))
{
    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++) {
            struct group_snapshot *group = &job->rank[i].group[j];
            struct place *place;
            struct module module;

            if (!group->id || group->now.phase != CONTROL_IN || !job->rank[i].process.state
                || module_find(job->rank[i].process.pid, group->caller, &module) < 0)
                continue;
            place = find_place(places, &module);
            if (place && act)
                act(group, place);
        }
}

static void write_where(struct group_snapshot *group, const struct place *place)
{
    if (*place->words)
        snprintf(group->where, sizeof group->where, "%s", place->words);
}

void source_lines(struct job_snapshot *job)
{
    struct places *places = calloc(1, sizeof *places);

    module_places(job); /* stays where there is no room, or no tool */
    if (!places)
        return;
    each_call(job, places, NULL);
    for (int i = 0; i < places->count; i++)
        if (!places->place[i].asked)
            ask(places, i);
    each_call(job, places, write_where);
    free(places);
}
