/* SPDX-License-Identifier: Apache-2.0 */
/* parse_number.h - parsers of option values.  A parser turns text into one field of struct options,
 * or writes into `why` what the text must be. */
#ifndef CONFIG_VALUES_PARSE_NUMBER_H
#define CONFIG_VALUES_PARSE_NUMBER_H

#include <signal.h>
#include <stddef.h>

#include "config/values/subnet.h"

struct why {
    char text[256];
};

/* Returns 0 and writes *field, or -1 and writes *why. */
typedef int value_parser(const char *text, void *field, struct why *why);

/* Writes the sentence into *why.  Returns -1, which the parser returns, too. */
int value_wrong(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The value of --nproc-per-node, which is a number or a kind of device that the launcher counts on
 * its host.  The number 0 means no worker; options_meeting() checks whether 0 is allowed. */
struct nproc {
    enum { NPROC_NUMBER, NPROC_AUTO, NPROC_CPU, NPROC_GPU } kind;
    int number; /* the number of workers, for NPROC_NUMBER */
};

/* The value of --signals-to-handle.  `unknown` is the first name that is not a signal, or "".
 * ctrun warns about this name and continues, as torchrun does. */
struct signals {
    sigset_t set;
    char unknown[32];
};

value_parser parse_switch;    /* writes an int: 0 is off, any other integer on */
value_parser parse_text;      /* writes a const char *, the text itself */
value_parser parse_file_name; /* writes a const char *, which may not be "" */
value_parser parse_seconds;   /* writes an int >= 0 */
value_parser parse_node_rank;
value_parser parse_port; /* writes an int, 0 to 65535; 0 means any free port */
value_parser parse_nproc;
value_parser parse_interval; /* writes a double > 0 */
/* The value of --mpi, which says whether ctrun is the process manager of the workers' MPI. */
enum mpi_service { MPI_AUTO, MPI_PMI, MPI_NONE };

value_parser parse_start_method;
value_parser parse_event_handler; /* writes a const char * */
value_parser parse_logs_specs;
value_parser parse_numa_binding;   /* writes an enum numa_binding */
value_parser parse_shell;          /* writes a const char * */
value_parser parse_failure_report; /* writes an int, true for the short report */
value_parser parse_mpi;            /* writes an enum mpi_service */
value_parser parse_signals;
value_parser parse_bytes;    /* writes a size_t: 4G, 512M, 64k, or a number of bytes */
value_parser parse_count;    /* writes an int >= 1 */
value_parser parse_networks; /* writes a struct networks */

enum numa_binding { NUMA_NOT, NUMA_NODE, NUMA_SOCKET, NUMA_EXCLUSIVE, NUMA_CORE_COMPLEX };

/* Returns the index of text in words, which ends with NULL.  Returns -1 if text is not in words,
 * with an error like that of argparse's choices. */
int value_choice(const char *text, const char *const *words, struct why *why);

/* Parses an integer as Python's int() does, with spaces around it, a sign, and single underscores
 * between digits.  Returns 0, or -1 if the text is not an int. */
int value_int(const char *text, int *value);

/* Returns the name of a signal without "SIG", such as "TERM"; NULL for a number without a name.
 * glibc has sigabbrev_np() since 2.32. */
const char *signal_abbreviation(int number);
/* Returns the number of a signal by its name, such as "SIGTERM", or 0 for any other text. */
int signal_number(const char *name);

#endif
