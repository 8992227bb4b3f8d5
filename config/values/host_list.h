/* SPDX-License-Identifier: Apache-2.0 */
/* host_list.h - the hosts of a job and how many workers each may have, as given by --hosts, a host
 * file or a scheduler. */
#ifndef CONFIG_VALUES_HOST_LIST_H
#define CONFIG_VALUES_HOST_LIST_H

#include <stddef.h>

#include "config/values/parse_number.h"

#define HOST_NAME 256 /* bytes of a name, with "user@" and the final 0 */

struct host_slots {
    char name[HOST_NAME]; /* without brackets; may begin with "user@" */
    int slots;            /* workers that the host may have; 0 if not given */
};

/* A zeroed struct is an empty list. */
struct host_list {
    struct host_slots *hosts; /* malloc'ed */
    int count;
    /* Capacity of hosts, and a hash table from a name to its index (host_list.c). */
    int room, *places;
};

/* Parses a list such as "a,b:4,[fd00::1]:2,node[01-03,7]:8".  Slurm writes SLURM_JOB_NODELIST in
 * this form.  The slots of a host that appears again are added, 1 if not given.  Returns 0, or -1
 * with the reason in `why` and an empty list.  The caller frees the list with host_list_free(). */
int host_list_parse(struct host_list *list, const char *text, struct why *why);

/* Reads a host file with lines such as "a", "a:4", "a slots=4" (Open MPI; other words are ignored)
 * or "a 4" (Grid Engine).  The slots of a host on several lines (PBS, LSF) are added, 1 for a line
 * without slots.  '#' begins a comment.  Returns 0, or -1 with the reason and the line's number in
 * `why` and an empty list. */
int host_list_read(struct host_list *list, const char *path, struct why *why);

value_parser parse_hosts; /* writes a const char *, a text that host_list_parse() takes */

void host_list_free(struct host_list *list);

/* Returns the part of the name behind "user@", or the name if it has no user. */
const char *host_without_user(const char *name);

/* Copies the name of the first host in a list, without "user@".  Returns 0, or -1 if the list has
 * no host, is wrong, or the name does not fit. */
int host_list_first(const char *text, char *name, size_t size);

#endif
