/* SPDX-License-Identifier: Apache-2.0 */
/* command_table.h - has a table row for each command and each option of ctctl.  Parsing, --help,
 * completion and the manual use these rows. */
#ifndef LAUNCHER_CTCTL_COMMAND_TABLE_H
#define LAUNCHER_CTCTL_COMMAND_TABLE_H

#include "config/help.h"
#include "launcher/ctctl/ctctl.h"

enum ctctl_option {
    CTCTL_JSON,
    CTCTL_VERBOSE,
    CTCTL_AFTER,
    CTCTL_FOLLOW,
    CTCTL_LINES,
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

/* Prints the help for the command in words[0], or for all commands if there are no
 * words.  Returns the exit code. */
int ctctl_help(FILE *out, char **words, int count);

/* Reads the options of argv, and moves the other words to the end of argv, from optind on.  Sets a
 * bit of *taken for each option that was given.  Returns CTCTL_OPTIONS if all options are right, or
 * -1 after it has printed an error message.  Returns CTCTL_HELP, CTCTL_VERSION or
 * CTCTL_PRINT_COMPLETION if that option must be carried out at once, and then it has ignored all
 * later options. */
int ctctl_read_options(struct ctctl_options *options, unsigned *taken, int argc, char **argv);

/* Runs the command that the words begin with.  `taken` has a bit for each option that was given.
 * Returns ctctl's exit code. */
int ctctl_run(struct ctctl_options *options, unsigned taken, char **words, int count);

/* Prints the error message `what` `which`.  Returns the exit code. */
int ctctl_wrong(const char *what, const char *which);
/* Prints that a command or option is unknown, and which command or option the user may have meant.
 * Returns the exit code. */
int ctctl_unknown(const char *what, const char *typed);

#endif
