/* SPDX-License-Identifier: Apache-2.0 */
/* option_row.h - a row of a table of options, and the tables of one program. */
#ifndef CONFIG_OPTION_ROW_H
#define CONFIG_OPTION_ROW_H

#include <stddef.h>

#include "config/values/parse_number.h"

struct option_row {
    /* the dashed spelling, without "--"; the user may write underscores instead */
    const char *name;
    const char *alias; /* another name, or NULL */
    char letter;       /* letter of the short option, as 'm' for -m; or 0 */
    const char *value; /* word for the value in --help; NULL if the option is a switch */
    /* The value if the user writes none; then a written value must follow a "=".  NULL if a value
     * is required. */
    const char *bare;
    const char *fallback;
    const char *variables[2]; /* environment variables; the first overrides the second */
    int command_line_only;    /* 1 if not allowed in job.ini */
    value_parser *parse;      /* NULL if the option acts at once (--help) */
    size_t field;             /* offset in struct options */
    /* Sentences for --help.  The first one is short: -h, --explain and the shells' completions
     * print it alone. */
    const char *help;
    int is_common; /* 1 if -h prints the option */
    /* heading of the group that starts with this row; NULL if none starts here */
    const char *heading;
    int any_in_environment; /* 1 to check the choices only on the command line, as torchrun does */
};

struct command_row {
    const char *name;  /* for example "trace merge" */
    const char *words; /* the words that follow the name, as --help prints them */
    /* Names of the options that the command accepts, each between blanks.  Every command also
     * accepts --help and similar options. */
    const char *options;
    const char *help; /* sentences; the list of all commands has only the first one */
};

/* The options and commands of one program. */
struct program_words {
    const char *name;
    const struct option_row *(*option)(int i); /* returns row i; NULL if i is past the last row */
    /* Returns row i of the commands, or NULL if i is past the last row.  One command follows the
     * options.  The pointer is NULL if any program with its arguments follows the options. */
    const struct command_row *(*command)(int i);
};

#endif
