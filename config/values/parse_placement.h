/* SPDX-License-Identifier: Apache-2.0 */
/* parse_placement.h - parses the options that say on which CPUs and GPUs workers run. */
#ifndef CONFIG_VALUES_PARSE_PLACEMENT_H
#define CONFIG_VALUES_PARSE_PLACEMENT_H

#include "config/values/parse_number.h"

enum report_form { REPORT_NOT, REPORT_TEXT, REPORT_JSON };

value_parser parse_bind;   /* writes a const char *: gpu, numa, core, none, or lists of CPUs */
value_parser parse_gpus;   /* writes a const char *, items with commas between them */
value_parser parse_report; /* writes an enum report_form */

/* Reads one list of CPUs ("0-3,8"), which ends at ';' or '\0', and sets bit n % 8 of set[n / 8] for
 * each CPU n.  Returns the end of the list, or NULL if the text is not a list of CPUs or a CPU has
 * no bit in set[0..bytes). */
const char *cpu_list(const char *text, unsigned char *set, size_t bytes);

#endif
