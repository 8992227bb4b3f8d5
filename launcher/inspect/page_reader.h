/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.h - one control page, copied and made plain. */
#ifndef LAUNCHER_INSPECT_PAGE_READER_H
#define LAUNCHER_INSPECT_PAGE_READER_H

#include <stddef.h>

#include "launcher/inspect/snapshot.h"

/* fd is the memory.  0; -1: it is no control page that could be read, errno says more, and
 * nothing is owed. */
int page_read(int fd, struct job_snapshot *job);

/* Bytes of anybody's as text: ends, is UTF-8, and holds nothing that a terminal would obey. */
void page_text(char *text, size_t size, const char *bytes, size_t most);

#endif
