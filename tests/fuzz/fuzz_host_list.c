/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_host_list.c - a list of hosts, any text; the same as the lines of a host file, and as what
 * Slurm says of tasks.  Whose name comes first is found without the others, too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/values/host_list.h"
#include "config/values/slurm.h"
#include "tests/fuzz/input.h"

static void check(const struct host_list *list, int result, const struct why *why)
{
    if (result < 0) {
        holds(!list->hosts && !list->places && list->count == 0);
        holds(why->text[0]); /* no refusal without a reason */
        return;
    }
    holds(list->count >= 1 && list->count <= list->room);
    for (int i = 0; i < list->count; i++) {
        const struct host_slots *host = &list->hosts[i];

        holds(memchr(host->name, 0, HOST_NAME) && *host->name && *host->name != '-');
        holds(host->slots >= 0 && !strpbrk(host->name, "[], \t\n"));
    }
}

static void look_for_first(const struct host_list *list, const char *text)
{
    char name[HOST_NAME];
    const char *first = list->hosts[0].name, *at = strchr(first, '@');

    holds(host_list_first(text, name, sizeof name) == 0);
    holds(!strcmp(name, at ? at + 1 : first));
}

static void read_as_file(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("hosts", MFD_CLOEXEC);
    struct why why = { .text = "" };
    struct host_list list;
    char path[64];
    int result;

    holds(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    result = host_list_read(&list, path, &why);
    check(&list, result, &why);
    host_list_free(&list);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), name[HOST_NAME];
    struct host_list list;
    struct why why = { .text = "" };
    int result;

    holds(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    result = host_list_parse(&list, text, &why);
    check(&list, result, &why);
    if (result == 0)
        look_for_first(&list, text);
    else
        host_list_first(text, name, sizeof name);
    host_list_free(&list);

    read_as_file(data, size);
    for (int node = 0; node < 4; node++)
        holds(slurm_tasks_of_node(text, node) >= 0);
    free(text);
    return 0;
}
