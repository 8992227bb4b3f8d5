/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c - prints the lists in the manual from the tables of options, commands and variables. */
#include <string.h>

#include "config/help.h"
#include "config/option_table.h"
#include "launcher/ctctl/command_table.h"
#include "packaging/manual/manual.h"
#include "runtime/bootstrap/variables.h"

static void print_sentence(FILE *out, const char *text)
{
    print_text(out, text, strlen(text));
    fputc('\n', out);
}

static void print_name(FILE *out, const struct option_row *row, const char *name)
{
    fprintf(out, "Fl \\-%s", name);
    if (row->value && row->bare)
        fprintf(out, " Ns Oo Ns = Ns Ar %s Oc", row->value);
    else if (row->value)
        fprintf(out, " Ns = Ns Ar %s", row->value);
}

static void print_option(FILE *out, const struct option_row *row)
{
    const int has_default = row->value && row->fallback && *row->fallback;

    fputs(".It ", out);
    if (row->letter)
        fprintf(out, "Fl %c%s%s , ", row->letter, row->value ? " Ar " : "",
                row->value ? row->value : "");
    print_name(out, row, row->name);
    if (row->alias) {
        fputs(" , ", out);
        print_name(out, row, row->alias);
    }
    fputc('\n', out);
    print_sentence(out, row->help);
    if (has_default || row->variables[0])
        fputs(".Pp\n", out);
    for (int i = 0; i < 2 && row->variables[i]; i++) {
        const int is_last = i == 1 || !row->variables[i + 1];

        fprintf(out, "%s.Ev %s%s\n", i ? "or\n" : "Variable:\n", row->variables[i],
                is_last && has_default ? " ;" : "");
    }
    if (has_default) {
        fputs(row->variables[0] ? "default:\n" : "Default:\n", out);
        fputs(".Ql ", out);
        print_sentence(out, row->fallback);
    }
}

static void print_options(FILE *out, const struct program_words *program)
{
    const struct option_row *row;
    int is_open = 0;

    for (int i = 0; (row = program->option(i)) != NULL; i++) {
        if (row->heading || !is_open) {
            if (is_open)
                fputs(".El\n", out);
            if (row->heading)
                fprintf(out, ".Ss %s\n", row->heading);
            fputs(".Bl -tag -width Ds\n", out);
            is_open = 1;
        }
        print_option(out, row);
    }
    fputs(".El\n", out);
}

static void ctrun_options(FILE *out)
{
    print_options(out, &ctrun_words);
}

static void ctctl_options(FILE *out)
{
    print_options(out, &ctctl_words);
}

static void ctctl_commands(FILE *out)
{
    const struct command_row *command;

    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; (command = ctctl_words.command(i)) != NULL; i++) {
        fprintf(out, ".It Cm %s%s%s\n", command->name, *command->words ? " Ar " : "",
                command->words);
        print_sentence(out, command->help);
    }
    fputs(".El\n", out);
}

static void ini_keys(FILE *out)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        if (row->command_line_only)
            continue;
        fprintf(out, ".It Ic %s No = Ar %s\n", row->name, row->value ? row->value : "0|1");
        print_sentence(out, row->help);
    }
    fputs(".El\n", out);
}

static void option_variables(FILE *out)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        for (int v = 0; v < 2 && row->variables[v]; v++) {
            fprintf(out, ".It Ev %s\nas\n.Fl \\-%s", row->variables[v], row->name);
            if (row->value)
                fprintf(out, " Ns = Ns Ar %s\n", row->value);
            else
                fputs(": 1 or 0\n", out);
        }
    }
    fputs(".El\n", out);
}

static void library_variables(FILE *out)
{
    const struct variable_row *row;

    fputs(".Bl -tag -width Ds\n", out);
    for (int i = 0; (row = variable_row(i)) != NULL; i++)
        if (row->help) {
            fprintf(out, ".It Ev %s\n", row->name);
            print_sentence(out, row->help);
        }
    fputs(".El\n", out);
}

int print_list(FILE *out, const char *name)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } lists[] = {
        { "CTRUN_OPTIONS", ctrun_options },       { "CTCTL_OPTIONS", ctctl_options },
        { "CTCTL_COMMANDS", ctctl_commands },     { "INI_KEYS", ini_keys },
        { "OPTION_VARIABLES", option_variables }, { "LIBRARY_VARIABLES", library_variables },
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(name, lists[i].name)) {
            lists[i].print(out);
            return 0;
        }
    return -1;
}
