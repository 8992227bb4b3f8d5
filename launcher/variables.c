/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - which CT_ and PET_ variables are read, and which one a misspelt one was meant to
 * be.  Unknown ones that are near to none are let alone: they may be some other program's. */
#include "launcher/variables.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/option_rows.h"
#include "config/suggest.h"
#include "launcher/worker_env.h"
#include "runtime/log.h"
#include "runtime/signature.h"

/* What libct reads beside CT_<OPERATION> (docs/protocol.md), and what scripts/ reads. */
static const char *const others[] = {
    "CT_DEADLINE",     "CT_DEVICE",     "CT_EXPLAIN", "CT_FAULT",  "CT_HANDOVER",
    "CT_JOBS",         "CT_LIBNCCL",    "CT_LINK",    "CT_LOG",    "CT_ORDER",
    "CT_STORE_SECRET", "CT_TIMEOUT_MS", "CT_TRACE",   "CT_TUNING",
};

/* A name that is looked for among those that there are. */
struct search {
    const char *name;
    struct suggestion best;
    char meant[64]; /* the nearest; "": none is near */
};

/* 1: this is it.  The nearness is that of what stands behind CT_ or PET_. */
static int is(struct search *search, const char *variable)
{
    const char *tail = strchr(search->name, '_'), *behind = strchr(variable, '_');

    if (!strcmp(search->name, variable))
        return 1;
    if (tail && !strncmp(search->name, variable, (size_t)(behind + 1 - variable))
        && suggest(&search->best, tail + 1, behind + 1))
        snprintf(search->meant, sizeof search->meant, "%s", variable);
    return 0;
}

static int is_of_libct(struct search *search)
{
    char variable[64];

    for (int i = OPERATION_BROADCAST; i <= OPERATION_BARRIER; i++) {
        snprintf(variable, sizeof variable, "CT_%s", operation_name(i));
        for (char *c = variable; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        if (is(search, variable))
            return 1;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(search, others[i]))
            return 1;
    return 0;
}

static int is_of_ctrun(struct search *search)
{
    for (enum option i = 0; i < OPTIONS; i++)
        for (int v = 0; v < 2 && option_row(i)->variables[v]; v++)
            if (is(search, option_row(i)->variables[v]))
                return 1;
    return 0;
}

int variables_check(const struct jobfile *file, char *error, size_t size)
{
    for (int i = 0; i < file->count; i++) {
        const struct jobfile_entry *entry = &file->entries[i];
        char name[64];
        struct search search = { .name = name };

        if (strcmp(entry->section, "collectives") != 0)
            continue;
        worker_env_name(entry, name, sizeof name);
        if (is_of_libct(&search))
            continue;
        for (char *c = search.meant; *c; c++)
            *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
        if (*search.meant)
            snprintf(error, size, "%s:%d: unknown key '%s' in [collectives]; did you mean %s?",
                     file->path, entry->line, entry->key, search.meant + 3);
        else
            snprintf(error, size,
                     "%s:%d: unknown key '%s' in [collectives]; it has operations, as "
                     "all-reduce = ring, and what else libct reads, without CT_",
                     file->path, entry->line, entry->key);
        return -1;
    }
    return 0;
}

static void warn(const char *where, const char *text, size_t length)
{
    char name[64];
    struct search search = { .name = name };

    if (strncmp(text, "CT_", 3) != 0 && strncmp(text, "PET_", 4) != 0)
        return;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (!is_of_libct(&search) && !is_of_ctrun(&search) && *search.meant)
        log_line(LOG_WARN, "%s%s has no effect; did you mean %s?", where, name, search.meant);
}

void variables_warn(const struct jobfile *file)
{
    char where[300];

    for (char **entry = environ; *entry; entry++)
        warn("", *entry, strcspn(*entry, "="));
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->entries[i].section, "env")) {
            snprintf(where, sizeof where, "%s:%d: ", file->path, file->entries[i].line);
            warn(where, file->entries[i].key, strlen(file->entries[i].key));
        }
}
