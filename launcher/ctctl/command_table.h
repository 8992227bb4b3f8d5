/* SPDX-License-Identifier: Apache-2.0 */
/* command_table.h - the commands and options of ctctl, one row for each.  Parsing, --help,
 * completion and the manual are made from the rows. */
#ifndef LAUNCHER_CTCTL_COMMAND_TABLE_H
#define LAUNCHER_CTCTL_COMMAND_TABLE_H

#include "config/help.h"
#include "launcher/ctctl/ctctl.h"

enum ctctl_option {
    CTCTL_JSON,
    CTCTL_VERBOSE,
    CTCTL_AFTER,
    CTCTL_OUTPUT,
    CTCTL_HOSTS,
    CTCTL_HOSTFILE,
    CTCTL_SSH,
    CTCTL_IFACE,
    CTCTL_PRINT_COMPLETION,
    CTCTL_HELP,
    CTCTL_VERSION,
    CTCTL_OPTIONS
};

extern const struct program_words ctctl_words;

/* Prints the help of the command with which the words begin; without words, of all commands.
 * Returns the exit code. */
int ctctl_help(FILE *out, char **words, int count);

/* Reads the options of argv and moves the other words to its end, from optind on.  taken: a bit for
 * each option that was given.  CTCTL_OPTIONS: all are right; CTCTL_HELP and the like: to be carried
 * out at once, so no option after it was read; -1: wrong, after a message. */
int ctctl_read_options(struct ctctl_options *options, unsigned *taken, int argc, char **argv);

/* Runs the command that the words begin with; returns ctctl's exit code. */
int ctctl_run(struct ctctl_options *options, unsigned taken, char **words, int count);

/* Says that a word is wrong; returns the exit code. */
int ctctl_wrong(const char *what, const char *which);
/* Says that a command or option is unknown, and which one the user may have meant; returns the exit
 * code. */
int ctctl_unknown(const char *what, const char *typed);

#endif
