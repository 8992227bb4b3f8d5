/* SPDX-License-Identifier: Apache-2.0 */
/* source_lines.c - finds source lines of C with addr2line, and of Python with py-spy. */
#include "launcher/inspect/source_lines.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/inspect/elf_module.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/util/run_tool.h"
#include "runtime/util/thread.h"

/* ---- Addresses, by addr2line ------------------------------------------------- */

/* Many ranks are at the same few places of a program.  So each place is looked up only once, and
 * addr2line runs only once for all new places in a file.  Places stay known as long as there is
 * room. */

#define MOST_PLACES 64
#define TIMEOUT_S 10

struct source_place {
    struct module module;
    int looked_up;
    unsigned seen;   /* number of the last look that found a rank there */
    char words[160]; /* source line as text; "" if not known */
};

struct source_places {
    struct source_place place[MOST_PLACES];
    int count;
};

static struct {
    pthread_mutex_t lock;
    struct source_places places;
    unsigned looks; /* number of calls of write_places() */
    int is_looking; /* 1 while a thread looks up places, which then keep their index */
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

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

/* Parses the output of addr2line, which has two lines for each address. */
static void parse_output(struct source_places *places, const int *which, int count, char *output)
{
    char *rest = NULL, *function = strtok_r(output, "\n", &rest);

    for (int i = 0; i < count && function; i++) {
        struct source_place *place = &places->place[which[i]];
        const char *line = strtok_r(NULL, "\n", &rest);

        if (!line)
            return;
        source_words(function, line, place->words, sizeof place->words);
        function = strtok_r(NULL, "\n", &rest);
    }
}

static int is_same_file(const struct module *a, const struct module *b)
{
    return a->inode == b->inode && a->changed.tv_sec == b->changed.tv_sec
           && a->changed.tv_nsec == b->changed.tv_nsec && !strcmp(a->name, b->name);
}

/* Looks up all places that are in the same file as place number `first`. */
static void lines_look_up(struct source_places *places, int first)
{
    char *argv[MOST_PLACES + 5], digits[MOST_PLACES][24];
    int which[MOST_PLACES], count = 0, words = 0;
    struct text out = { 0 };

    argv[words++] = tool_is_there("eu-addr2line") ? "eu-addr2line" : "addr2line";
    argv[words++] = "-f";
    argv[words++] = "-e";
    argv[words++] = places->place[first].module.path;
    for (int i = first; i < places->count; i++) {
        if (!is_same_file(&places->place[i].module, &places->place[first].module))
            continue;
        snprintf(digits[count], sizeof digits[count], "0x%llx",
                 (unsigned long long)places->place[i].module.at);
        places->place[i].looked_up = 1;
        which[count] = i;
        argv[words++] = digits[count++];
    }
    argv[words] = NULL;
    if (tool_run(argv, TIMEOUT_S, &out) == 0) {
        text_add(&out, "", 1);
        if (out.data)
            parse_output(places, which, count, out.data);
    }
    free(out.data);
}

/* Returns room for another place; NULL if there is none. */
static struct source_place *place_room(void)
{
    struct source_places *const places = &known.places;

    if (places->count < MOST_PLACES)
        return &places->place[places->count++];
    for (int i = 0; i < MOST_PLACES && !known.is_looking; i++)
        if (places->place[i].seen + 1 < known.looks)
            return &places->place[i];
    return NULL;
}

/* Finds the place among the known ones, or adds it.  Returns NULL if there is no room. */
static struct source_place *find_place(const struct module *module)
{
    struct source_place *place = NULL;

    for (int i = 0; i < known.places.count && !place; i++)
        if (known.places.place[i].module.at == module->at
            && is_same_file(&known.places.place[i].module, module))
            place = &known.places.place[i];
    /* The path is in /proc of the first process that was seen there.  If that process ended before
     * the tool read the file, another process helps. */
    if (place && place->looked_up && !*place->words && access(place->module.path, R_OK) < 0
        && access(module->path, R_OK) == 0)
        *place = (struct source_place){ .module = *module };
    if (!place && (place = place_room()))
        *place = (struct source_place){ .module = *module };
    if (place)
        place->seen = known.looks;
    return place;
}

/* Writes the place of each call that a living rank is in, as its source line if that is known.
 * Adds the place to the known places.  The caller holds the lock. */
static void write_places(struct job_snapshot *job)
{
    known.looks++;
    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++) {
            struct group_snapshot *group = &job->rank[i].group[j];
            const struct source_place *place;
            struct module module;

            if (module_of_call(&job->rank[i], group, &module) < 0)
                continue;
            place = find_place(&module);
            if (place && *place->words)
                snprintf(group->where, sizeof group->where, "%s", place->words);
        }
}

/* Returns the index of the first place that was not looked up; -1 if there is none. */
static int first_new(const struct source_places *places)
{
    for (int i = 0; i < places->count; i++)
        if (!places->place[i].looked_up)
            return i;
    return -1;
}

/* Looks up all new places.  Does not hold the lock while a tool runs. */
static void *look_up_new(void *unused)
{
    struct source_places *copy = calloc(1, sizeof *copy);
    int first;

    (void)unused;
    do {
        pthread_mutex_lock(&known.lock);
        for (int i = 0; copy && i < copy->count; i++) {
            known.places.place[i].looked_up = copy->place[i].looked_up;
            memcpy(known.places.place[i].words, copy->place[i].words, sizeof copy->place[i].words);
        }
        if (copy)
            *copy = known.places;
        first = copy ? first_new(copy) : -1;
        known.is_looking = first >= 0;
        pthread_mutex_unlock(&known.lock);
        if (first >= 0)
            lines_look_up(copy, first);
    } while (first >= 0);
    free(copy);
    return NULL;
}

void source_lines(struct job_snapshot *job)
{
    pthread_mutex_lock(&known.lock);
    write_places(job);
    pthread_mutex_unlock(&known.lock);
    look_up_new(NULL);
    pthread_mutex_lock(&known.lock);
    write_places(job);
    pthread_mutex_unlock(&known.lock);
}

void source_lines_known(struct job_snapshot *job)
{
    pthread_mutex_lock(&known.lock);
    write_places(job);
    if (!known.is_looking && first_new(&known.places) >= 0)
        known.is_looking = thread_start(NULL, look_up_new, NULL) == 0;
    pthread_mutex_unlock(&known.lock);
}

/* ---- Python, by py-spy, which reads the memory of the process from outside --- */

int python_is_it(const struct process_snapshot *process)
{
    char path[64], link[512];
    const char *name;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    length = readlink(path, link, sizeof link - 1);
    link[length > 0 ? length : 0] = '\0';
    name = strrchr(link, '/');
    return !strncmp(name ? name + 1 : process->name, "python", 6);
}

/* Parses the output of py-spy, such as
 *
 *     Thread 4310 (idle): "MainThread"
 *         step (train.py:12)
 *         <module> (train.py:40) */
int python_frame(const char *dump, char *text, size_t size)
{
    const char *thread = strstr(dump, "\"MainThread\""), *line, *open, *close;
    char function[80], place[100];

    line = thread ? strchr(thread, '\n') : NULL;
    if (!line || strncmp(line, "\n    ", 5) != 0)
        return 0;
    line += 5;
    open = strstr(line, " (");
    close = open ? strchr(open, ')') : NULL;
    if (!close || memchr(line, '\n', (size_t)(close - line)))
        return 0;
    page_text(function, sizeof function, line, (size_t)(open - line));
    page_text(place, sizeof place, open + 2, (size_t)(close - open - 2));
    snprintf(text, size, "%s (%s)", place, function);
    return 1;
}

int python_line(const struct rank_snapshot *rank, char *text, size_t size)
{
    char pid[24], *argv[] = { "py-spy", "dump", "--nonblocking", "--pid", pid, NULL };
    struct text out = { 0 };
    int found = 0;

    if (!rank->process.state || !tool_is_there("py-spy") || !python_is_it(&rank->process))
        return 0;
    snprintf(pid, sizeof pid, "%d", (int)rank->process.pid);
    if (tool_run(argv, TIMEOUT_S, &out) == 0) {
        text_add(&out, "", 1);
        found = out.data && python_frame(out.data, text, size);
    }
    free(out.data);
    return found;
}
