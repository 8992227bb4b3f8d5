/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - functions of ct_manual, which writes the manual's pages in mdoc(7) during the build.
 * Lists of options and variables are made from the tables that the parsers use, and the pages of
 * ct(3) are made from ct.h. */
#ifndef PACKAGING_MANUAL_MANUAL_H
#define PACKAGING_MANUAL_MANUAL_H

#include <stdio.h>

/* Prints the text, and escapes characters that mdoc would interpret. */
void print_text(FILE *out, const char *text, size_t length);

/* Prints the list for a template's line "@NAME@".  Returns -1 if there is no such list. */
int print_list(FILE *out, const char *name);

/* Writes a page for each header, for each section of a header and for each function, to `folder`.
 * `examples` is the file with the functions' examples.  Prints the names of all files that were
 * written.  Returns -1 after an error, which is printed. */
int write_api_pages(char **headers, int count, const char *examples, const char *folder,
                    const char *version, const char *date);

#endif
