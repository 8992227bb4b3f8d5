/* SPDX-License-Identifier: Apache-2.0 */
/* host_list.h - hosts of a job and how many workers each may have: as --hosts, a host file or a
 * scheduler names them. */
#ifndef CONFIG_VALUES_HOST_LIST_H
#define CONFIG_VALUES_HOST_LIST_H

#include <stddef.h>

#include "config/values/parse_number.h"

#define HOST_NAME 256 /* bytes of a name, with its end; "user@" included */

struct host_slots {
    char name[HOST_NAME]; /* without brackets; may begin with "user@" */
    int slots;            /* 0: not said */
};

/* Zero is an empty list. */
struct host_list {
    struct host_slots *hosts; /* malloc'ed */
    int count;
    int room, *places; /* of hosts; a hash table from a name to its index (host_list.c) */
};

/* "a,b:4,[fd00::1]:2,node[01-03,7]:8": what Slurm writes as SLURM_JOB_NODELIST is such a list.  A
 * host that comes again adds its slots (1 if none are said).  -1: `why` says what is wrong, and the
 * list is empty. */
int host_list_parse(struct host_list *list, const char *text, struct why *why);

/* The lines of a host file: "a", "a:4", "a slots=4" (Open MPI; other words are passed over), "a 4"
 * (Grid Engine).  A host on several lines has as many slots as lines (PBS, LSF).  '#' begins a
 * comment.  -1: as above, with the line's number. */
int host_list_read(struct host_list *list, const char *path, struct why *why);

value_parser parse_hosts; /* const char *: a text that host_list_parse() takes */

void host_list_free(struct host_list *list);

/* Behind "user@". */
const char *host_without_user(const char *name);

/* The first host of such a list, without "user@"; -1: there is none. */
int host_list_first(const char *text, char *name, size_t size);

#endif
