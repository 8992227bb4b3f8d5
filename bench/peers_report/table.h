/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the results in Markdown and in JSON. */
#ifndef PEERS_REPORT_TABLE_H
#define PEERS_REPORT_TABLE_H

#include "bench/peers_report/results.h"

void table_print(const struct results *results, const char *machine);
void json_print(const struct results *results, const char *machine, FILE *file);

#endif
