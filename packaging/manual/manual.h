/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - the program that writes the manual's pages in mdoc(7) while the project is built:
 * lists of options and variables from the tables by which they are parsed, pages of ct(3) from
 * ct.h. */
#ifndef PACKAGING_MANUAL_MANUAL_H
#define PACKAGING_MANUAL_MANUAL_H

#include <stdio.h>

/* Text in which nothing is a request of mdoc. */
void print_text(FILE *out, const char *text, size_t length);

/* What stands for a line "@NAME@" of a template.  -1: there is no such list. */
int print_list(FILE *out, const char *name);

/* One page for each section of a header and one for the whole, in folder; a function's name is an
 * alias of its page.  The paths of all files that were made are printed.  -1: an error was printed.
 */
int write_api_pages(const char *header, const char *folder, const char *version, const char *date);

#endif
