/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.h - copies one control page into a snapshot. */
#ifndef LAUNCHER_INSPECT_PAGE_READER_H
#define LAUNCHER_INSPECT_PAGE_READER_H

#include <stddef.h>

#include "launcher/inspect/snapshot.h"

/* fd is the page's memory.  0; -1 and errno: it is no valid control page, or could not be read;
 * then there is nothing to free. */
int page_read(int fd, struct job_snapshot *job);

/* Bytes from an untrusted source as text: it ends within size, is UTF-8, and holds no control
 * characters. */
void page_text(char *text, size_t size, const char *bytes, size_t most);

#endif
