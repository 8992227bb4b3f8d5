/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.h - copies one control page into a snapshot. */
#ifndef LAUNCHER_INSPECT_PAGE_READER_H
#define LAUNCHER_INSPECT_PAGE_READER_H

#include <stddef.h>

#include "launcher/inspect/snapshot.h"

/* Copies the page; fd is its memory.  0; -1 and errno: it can't be read, or is not a valid control
 * page, and there is nothing to free. */
int page_read(int fd, struct job_snapshot *job);

/* Copies bytes from an untrusted source as text: it fits in size, is UTF-8, and has no control
 * characters. */
void page_text(char *text, size_t size, const char *bytes, size_t most);

#endif
