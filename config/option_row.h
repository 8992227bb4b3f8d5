/* SPDX-License-Identifier: Apache-2.0 */
/* option_row.h - a row of a table of options, and the tables of one program. */
#ifndef CONFIG_OPTION_ROW_H
#define CONFIG_OPTION_ROW_H

#include <stddef.h>

#include "config/values/parse_number.h"

struct option_row {
    const char *name;  /* the dashed spelling, without "--"; underscores work too */
    const char *alias; /* another name, or NULL */
    char letter;       /* -m, or 0 */
    const char *value; /* word for the value in --help; NULL: the option is a switch */
    const char *bare;  /* value if none is given, so a given value must follow a "="; or NULL */
    const char *fallback;
    const char *variables[2]; /* environment variables; the first overrides the second */
    int command_line_only;    /* not allowed in job.ini */
    value_parser *parse;      /* NULL: the option acts at once (--help) */
    size_t field;             /* offset in struct options */
    const char *help;
    const char *heading;    /* heading of the group that begins with this row; NULL: no new group */
    int any_in_environment; /* like torchrun, check its choices on the command line only */
};

struct command_row {
    const char *name;  /* "trace merge" */
    const char *words; /* the words that follow the name, as --help prints them */
    /* Names of the options that the command takes, each between blanks.  Every command takes --help
     * and the like. */
    const char *options;
    const char *help;
};

/* The options and commands of one program. */
struct program_words {
    const char *name;
    const struct option_row *(*option)(int i); /* NULL: i is past the last row */
    /* Gives the commands, one of which follows the options.  NULL: any program with its arguments
     * follows. */
    const struct command_row *(*command)(int i);
};

#endif
