/* SPDX-License-Identifier: Apache-2.0 */
/* parse_placement.h - where workers run: CPUs and GPUs. */
#ifndef CONFIG_VALUES_PARSE_PLACEMENT_H
#define CONFIG_VALUES_PARSE_PLACEMENT_H

#include "config/values/parse_number.h"

enum report_form { REPORT_NOT, REPORT_TEXT, REPORT_JSON };

value_parser parse_bind;   /* const char *: gpu, numa, core, none, or lists of CPUs */
value_parser parse_gpus;   /* const char *: items with commas between, none empty */
value_parser parse_report; /* enum report_form */

/* Reads one list of CPUs ("0-3,8"), which ends at ';' or '\0', into the bits of
 * set[0..bytes).  Returns its end; NULL: it is no list of CPUs. */
const char *cpu_list(const char *text, unsigned char *set, size_t bytes);

#endif
