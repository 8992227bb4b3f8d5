/* SPDX-License-Identifier: Apache-2.0 */
/* debug_wrapper.c - splits the command of --exec-on, finds it along PATH and puts it before the
 * program. */
#include "launcher/workers/debug_wrapper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"
#include "runtime/util/log.h"

int wrapper_find(struct wrapper *wrapper, const struct options *options)
{
    const char *command = options->exec_on.command;
    char open;
    int cause;

    *wrapper = (struct wrapper){ .ranks = options->exec_on.ranks };
    if (!wrapper->ranks)
        return 0;
    if (!(wrapper->words = shell_split(command, &open)) || !wrapper->words[0]) {
        if (wrapper->words || open)
            log_line(LOG_ERROR, "--exec-on: %s: %c is not closed", command, open);
        else
            log_line(LOG_ERROR, "out of memory");
        return open ? 2 : 1;
    }
    cause = program_search(wrapper->words[0], wrapper->path, sizeof wrapper->path);
    if (cause == 0)
        return 0;
    log_line(LOG_ERROR, "--exec-on: no worker was started");
    return program_refuse(wrapper->words[0], cause);
}

void wrapper_free(struct wrapper *wrapper)
{
    free(wrapper->words);
    *wrapper = (struct wrapper){ 0 };
}

int wrapper_has(const struct wrapper *wrapper, int rank, int world)
{
    return wrapper->ranks && ranks_have(wrapper->ranks, rank, world);
}

/* Returns the number of ranks that run under the command, but at most 2. */
static int ranks_under(const struct wrapper *wrapper, int world)
{
    int ranks = 0;

    for (int rank = 0; rank < world && ranks < 2; rank++)
        ranks += wrapper_has(wrapper, rank, world);
    return ranks;
}

int wrapper_has_one(const struct wrapper *wrapper, int world)
{
    return ranks_under(wrapper, world) == 1;
}

void wrapper_check(const struct wrapper *wrapper, int world)
{
    if (wrapper->ranks && ranks_under(wrapper, world) == 0)
        log_line(LOG_WARN, "--exec-on=%s: the ranks are 0 to %d; none runs under %s",
                 wrapper->ranks, world - 1, wrapper->words[0]);
}

char **wrapper_argv(const struct wrapper *wrapper, const char *path, char **argv)
{
    size_t count = 1, bytes = strlen(path) + 1, n = 0;
    char **all, *text;

    if (!argv)
        return NULL;
    for (int i = 0; wrapper->words[i]; i++)
        count++;
    for (int i = 1; argv[i]; i++, count++)
        bytes += strlen(argv[i]) + 1;
    if ((all = malloc((count + 1) * sizeof *all + bytes))) {
        text = (char *)(all + count + 1);
        for (; wrapper->words[n]; n++)
            all[n] = wrapper->words[n];
        for (int i = 0; i == 0 || argv[i]; i++) {
            all[n++] = text;
            text = stpcpy(text, i == 0 ? path : argv[i]) + 1;
        }
        all[n] = NULL;
    }
    free(argv);
    return all;
}
