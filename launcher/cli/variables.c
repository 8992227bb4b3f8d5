/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - warns about misspelt CT_ and PET_ variables.  An unknown name that is not similar
 * to a known name is ignored, since the variable may belong to another program. */
#include "launcher/cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/option_table.h"
#include "config/values/suggest.h"
#include "launcher/workers/worker_env.h"
#include "runtime/bootstrap/variables.h"
#include "runtime/util/log.h"

/* Returns the PET_ variable that the user may have meant.  Compares only the text after "PET_".
 * Returns NULL if ctrun reads `name` itself, or if no known name is similar. */
static const char *torchruns_meant(const char *name)
{
    struct suggestion best = { NULL, 0 };

    for (enum option i = 0; i < OPTIONS; i++)
        for (int v = 0; v < 2 && option_row(i)->variables[v]; v++) {
            const char *variable = option_row(i)->variables[v];

            if (!strcmp(name, variable))
                return NULL;
            if (!strncmp(variable, "PET_", 4))
                suggest(&best, name + 4, variable + 4);
        }
    return best.word ? best.word - 4 : NULL;
}

/* Returns 1 if ctrun reads the variable from its own environment.  Then the variable has no effect
 * in a worker's environment. */
static int is_option(const char *name)
{
    for (enum option i = 0; i < OPTIONS; i++)
        for (int v = 0; v < 2 && option_row(i)->variables[v]; v++)
            if (!strcmp(name, option_row(i)->variables[v]))
                return 1;
    return 0;
}

int variables_check(const struct jobfile *file, char *error, size_t size)
{
    for (int i = 0; i < file->count; i++) {
        const struct jobfile_entry *entry = &file->entries[i];
        char name[WORKER_ENV_NAME], key[64] = "";

        if (strcmp(entry->section, "collectives") != 0)
            continue;
        worker_env_name(entry, name, sizeof name);
        if (is_option(name)) {
            snprintf(error, size,
                     "%s:%d: '%s' in [collectives] is an option: it belongs in [ctrun]", file->path,
                     entry->line, entry->key);
            return -1;
        }
        if (variable_is_known(name))
            continue;
        if (variable_meant(name))
            snprintf(key, sizeof key, "%s", variable_meant(name) + 3);
        for (char *c = key; *c; c++)
            *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
        if (*key)
            snprintf(error, size, "%s:%d: unknown key '%s' in [collectives]; did you mean %s?",
                     file->path, entry->line, entry->key, key);
        else
            snprintf(error, size,
                     "%s:%d: unknown key '%s' in [collectives]; it has operations, as "
                     "all-reduce = ring, and what else libct reads, without CT_",
                     file->path, entry->line, entry->key);
        return -1;
    }
    return 0;
}

static void variable_warn(const char *where, const char *text, size_t length)
{
    char name[64];
    const char *meant;

    if (*text != 'C' && *text != 'P') /* most variables have another first letter */
        return;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    meant = !strncmp(name, "CT_", 3)    ? variable_meant(name)
            : !strncmp(name, "PET_", 4) ? torchruns_meant(name)
                                        : NULL;
    if (meant)
        log_line(LOG_WARN, "%s%s has no effect; did you mean %s?", where, name, meant);
}

void variables_warn(const struct jobfile *file)
{
    char where[300];

    for (char **entry = environ; *entry; entry++)
        variable_warn("", *entry, strcspn(*entry, "="));
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->entries[i].section, "env")) {
            snprintf(where, sizeof where, "%s:%d: ", file->path, file->entries[i].line);
            variable_warn(where, file->entries[i].key, strlen(file->entries[i].key));
        }
}
