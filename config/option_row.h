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
    const char *value; /* its value in --help; NULL: a switch */
    const char *bare;  /* its meaning without a value, which must then follow a "="; or NULL */
    const char *fallback;
    const char *variables[2]; /* of the environment, the stronger first; NULL: none */
    int command_line_only;    /* no key of job.ini */
    value_parser *parse;      /* NULL: acts at once (--help) */
    size_t field;             /* offset in struct options */
    const char *help;
    const char *heading;    /* of the group that begins here; NULL: no new group */
    int any_in_environment; /* torchrun checks its choices on the command line only */
};

struct command_row {
    const char *name;    /* "trace merge" */
    const char *words;   /* those that follow it, as --help prints them */
    const char *options; /* that it takes: the names, each between blanks; --help and the like go
                            with all */
    const char *help;
};

/* The words of one program. */
struct program_words {
    const char *name;
    const struct option_row *(*option)(int i); /* NULL behind the last */
    /* The word behind the options.  NULL: any program, with arguments of its own. */
    const struct command_row *(*command)(int i);
};

#endif
