/* SPDX-License-Identifier: Apache-2.0 */
/* parse_number.h - the grammars of option values.  A parser turns text into one field
 * of struct options, or writes into `why` what the text must be. */
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

/* For parsers: writes the sentence and returns -1. */
int value_wrong(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --nproc-per-node: a number, or a kind of device that the launcher counts on its host.  0: no
 * worker; options_meeting() says where that has a meaning. */
struct nproc {
    enum { NPROC_NUMBER, NPROC_AUTO, NPROC_CPU, NPROC_GPU } kind;
    int number; /* of NPROC_NUMBER */
};

/* --signals-to-handle.  `unknown` is the first name that is no signal ("": none): torchrun warns
 * and goes on, and so does ctrun. */
struct signals {
    sigset_t set;
    char unknown[32];
};

value_parser parse_switch;    /* int: 0 is off, any other integer on */
value_parser parse_text;      /* const char *: the text itself */
value_parser parse_file_name; /* const char *: not "" */
value_parser parse_seconds;   /* int >= 0 */
value_parser parse_node_rank;
value_parser parse_port; /* int, 0 to 65535; 0 is "any free one" */
value_parser parse_nproc;
value_parser parse_interval; /* double > 0 */
/* --mpi: whether ctrun is the process manager of the workers' MPI */
enum mpi_service { MPI_AUTO, MPI_PMI, MPI_NONE };

value_parser parse_start_method;
value_parser parse_event_handler; /* const char * */
value_parser parse_logs_specs;
value_parser parse_numa_binding;   /* enum numa_binding */
value_parser parse_shell;          /* const char * */
value_parser parse_failure_report; /* int: it is short */
value_parser parse_mpi;            /* enum mpi_service */
value_parser parse_signals;
value_parser parse_bytes;    /* size_t: 4G, 512M, 64k, or a number of bytes */
value_parser parse_count;    /* int >= 1 */
value_parser parse_networks; /* struct networks */

enum numa_binding { NUMA_NOT, NUMA_NODE, NUMA_SOCKET, NUMA_EXCLUSIVE, NUMA_CORE_COMPLEX };

/* The index of text among words (NULL-ended), as argparse's choices; -1: it is not among them. */
int value_choice(const char *text, const char *const *words, struct why *why);

/* Python's int(): spaces around, a sign, single underscores between digits. */
int value_int(const char *text, int *value);

/* "SIGTERM" and the like; 0 for anything else. */
int signal_number(const char *name);

#endif
