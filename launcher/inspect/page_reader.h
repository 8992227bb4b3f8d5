/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.h - copies one control page into a snapshot. */
#ifndef LAUNCHER_INSPECT_PAGE_READER_H
#define LAUNCHER_INSPECT_PAGE_READER_H

#include <stddef.h>

#include "launcher/inspect/snapshot.h"

/* Copies the page from its file fd.  Returns 0, or -1 with errno set if fd can't be read or has no
 * valid control page.  After -1 the caller has nothing to free. */
int page_read(int fd, struct job_snapshot *job);

/* Copies at most `most` bytes from an untrusted source as text of fewer than `size` bytes.  The
 * text is valid UTF-8 without control characters: '?' replaces each other byte. */
void page_text(char *text, size_t size, const char *bytes, size_t most);

#endif
