/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - one control page, copied and made plain. */
#ifndef LAUNCHER_LOOK_PAGE_H
#define LAUNCHER_LOOK_PAGE_H

#include <stddef.h>

#include "launcher/look/look.h"

/* fd is the memory.  0; -1: it is no control page that could be read, errno says more, and
 * nothing is owed. */
int page_read(int fd, struct look_job *job);

/* Bytes of anybody's as text: ends, is UTF-8, and holds nothing that a terminal would obey. */
void page_text(char *text, size_t size, const char *bytes, size_t most);

/* page.c and page_rank.c: 0 or -1. */
int page_read_at(int fd, size_t at, void *to, size_t size); /* all of it, or errno */
int page_take_rank(int fd, const struct look_job *job, int index, struct look_rank *rank);

#endif
