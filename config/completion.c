/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - prints a program's tables as completion scripts for bash, zsh and fish.
 *
 * The rows contain the names of options.  The word for the value in a row determines how values
 * complete: the scripts offer the lower-case words of "gpu|numa|core|none|LIST", complete FILE and
 * DIR as paths, and do not complete other values.  After the options, ctctl's script completes a
 * command and its files.  ctrun's script completes the program that ctrun starts, and completes the
 * program's arguments in the same way as without ctrun. */
#include "config/help.h"

#include <string.h>

#include "config/options.h"

typedef void name_printer(FILE *out, const struct option_row *row, const char *name);

/* Calls print() for the name and the alias of each option. */
static void each_name(FILE *out, const struct program_words *program, name_printer *print)
{
    const struct option_row *row;

    for (int i = 0; (row = program->option(i)) != NULL; i++) {
        print(out, row, row->name);
        if (row->alias)
            print(out, row, row->alias);
    }
}

/* Calls print() once for each first word of the commands, with the word's length.  Rows with the
 * same first word are adjacent. */
static void each_command(FILE *out, const struct program_words *program,
                         void (*print)(FILE *out, const struct command_row *command, int length))
{
    const struct command_row *command, *before = NULL;

    for (int i = 0; program->command && (command = program->command(i)) != NULL; i++) {
        const int length = (int)strcspn(command->name, " ");

        if (!before || strncmp(before->name, command->name, (size_t)length + 1) != 0)
            print(out, command, length);
        before = command;
    }
}

/* Writes the words that the user can choose from, unless `out` is NULL.  Returns the number of
 * these words. */
static int choices(FILE *out, const struct option_row *row)
{
    int count = 0;

    for (const char *at = row->value ? row->value : ""; *at; at += *at == '|') {
        const size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const size_t all = strcspn(at, "|");

        if (word > 0 && (word == all || at[word] == '[')) {
            if (out)
                fprintf(out, "%s%.*s", count ? " " : "", (int)word, at);
            count++;
        }
        at += all;
    }
    return count;
}

static int is_path(const struct option_row *row, const char *what)
{
    return row->value && !strcmp(row->value, what);
}

/* ---- bash ------------------------------------------------------------------ */

static void bash_name(FILE *out, const struct option_row *row, const char *name)
{
    fprintf(out, " --%s", name);
    if (row->letter && name == row->name)
        fprintf(out, " -%c", row->letter);
}

/* Writes the name if the option takes the next word as its value. */
static void bash_taker(FILE *out, const struct option_row *row, const char *name)
{
    if (!row->value || row->bare)
        return;
    fprintf(out, "|--%s", name);
    if (row->letter && name == row->name)
        fprintf(out, "|-%c", row->letter);
}

static void bash_values(FILE *out, const struct option_row *row, const char *name)
{
    if (is_path(row, "FILE"))
        fprintf(out, "    --%s) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n", name);
    else if (is_path(row, "DIR"))
        fprintf(out, "    --%s) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n", name);
    else if (choices(NULL, row)) {
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", name);
        choices(out, row);
        fprintf(out, "' -- \"$cur\")) ;;\n");
    }
}

static void print_command(FILE *out, const struct command_row *command, int length)
{
    fprintf(out, " %.*s", length, command->name);
}

/* Prints the script for bash.  The script must handle the three words into which bash splits
 * --name=value. */
static void print_bash(FILE *out, const struct program_words *program)
{
    const char *name = program->name;

    fprintf(out,
            "_%s() {\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} option= command= word i\n"
            "    COMPREPLY=()\n"
            "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
            "        word=${COMP_WORDS[i]//_/-}\n"
            "        if [[ $word == = ]]; then\n"
            "            option=${COMP_WORDS[i - 1]//_/-}\n"
            "        elif [[ $option ]]; then\n"
            "            option=\n"
            "        else\n"
            "            case $word in\n"
            "            ''",
            name);
    each_name(out, program, bash_taker);
    fputs(") option=$word ;;\n"
          "            -*) ;;\n"
          "            *)\n",
          out);
    fputs(program->command
              ? "                command=$word\n"
              : "                if declare -F _command_offset >/dev/null; then\n"
                "                    _command_offset \"$i\"\n"
                "                else\n"
                "                    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                "                fi\n"
                "                return\n",
          out);
    fputs("                ;;\n"
          "            esac\n"
          "        fi\n"
          "    done\n"
          "    if [[ $cur == = ]]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD - 1]//_/-} cur=\n"
          "    fi\n"
          "    case $option in\n"
          "    '') ;;\n",
          out);
    each_name(out, program, bash_values);
    fputs("    esac\n"
          "    if [[ $option ]]; then\n"
          "        return\n"
          "    elif [[ $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    each_name(out, program, bash_name);
    fputs("' -- \"$cur\"))\n", out);
    if (program->command) {
        fputs("    elif [[ ! $command ]]; then\n"
              "        COMPREPLY=($(compgen -W '",
              out);
        each_command(out, program, print_command);
        fputs("' -- \"$cur\"))\n", out);
    }
    fprintf(out,
            "    else\n"
            "        mapfile -t COMPREPLY < <(compgen %s-f -- \"$cur\")\n"
            "    fi\n"
            "}\n"
            "complete -o filenames -F _%s %s\n",
            program->command ? "" : "-c ", name, name);
}

/* ---- zsh ------------------------------------------------------------------- */

/* Prints the first `length` characters of the text, quoted for zsh. */
static void zsh_text(FILE *out, const char *text, int length)
{
    for (; length > 0; text++, length--)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

static void zsh_name(FILE *out, const struct option_row *row, const char *name)
{
    fprintf(out, " \\\n        '--%s%s[", name, !row->value ? "" : row->bare ? "=-" : "=");
    zsh_text(out, row->help, first_sentence(row->help));
    fputc(']', out);
    if (row->value) {
        fputs(row->bare ? "::" : ":", out);
        zsh_text(out, row->value, (int)strlen(row->value));
        fputc(':', out);
        if (is_path(row, "FILE") || is_path(row, "DIR"))
            fputs(is_path(row, "DIR") ? "_files -/" : "_files", out);
        else if (choices(NULL, row)) {
            fputc('(', out);
            choices(out, row);
            fputc(')', out);
        }
    }
    fputc('\'', out);
    if (row->letter && name == row->name) {
        fprintf(out, " \\\n        '-%c%s[", row->letter, row->value ? "+" : "");
        zsh_text(out, row->help, first_sentence(row->help));
        fputs(row->value ? "]:value:'" : "]'", out);
    }
}

static void print_zsh(FILE *out, const struct program_words *program)
{
    const char *name = program->name;

    fprintf(out,
            "#compdef %s\n"
            "_%s() {\n"
            "    _arguments -s",
            name, name);
    each_name(out, program, zsh_name);
    if (program->command) {
        fputs(" \\\n        '1:command:(", out);
        each_command(out, program, print_command);
        fputs(")' \\\n        '*::arguments:_files'\n", out);
    } else {
        fputs(" \\\n        '(-):program:_command_names -e' \\\n"
              "        '*::arguments:_normal'\n",
              out);
    }
    fprintf(out,
            "}\n"
            "if [ \"$funcstack[1]\" = _%s ]; then\n"
            "    _%s \"$@\"\n"
            "else\n"
            "    compdef _%s %s\n"
            "fi\n",
            name, name, name, name);
}

/* ---- fish ------------------------------------------------------------------ */

/* Prints the first `length` characters of the text, quoted for fish. */
static void fish_text(FILE *out, const char *text, int length)
{
    fputc('\'', out);
    for (; length > 0; text++, length--)
        fprintf(out, strchr("'\\", *text) ? "\\%c" : "%c", *text);
    fputc('\'', out);
}

static void fish_taker(FILE *out, const struct option_row *row, const char *name)
{
    if (!row->value || row->bare)
        return;
    fprintf(out, " --%s", name);
    if (row->letter && name == row->name)
        fprintf(out, " -%c", row->letter);
}

/* Writes fish's line for the option.  In fish, -r means that a value follows, -f that the value is
 * not a file, and -F that the value is a file. */
static void fish_name(FILE *out, const struct option_row *row, const char *name)
{
    fprintf(out, "__ct_option -l %s", name);
    if (row->letter && name == row->name)
        fprintf(out, " -s %c", row->letter);
    if (row->value)
        fputs(row->bare                                     ? " -f"
              : is_path(row, "FILE") || is_path(row, "DIR") ? " -r -F"
                                                            : " -r -f",
              out);
    if (is_path(row, "DIR"))
        fputs(" -a '(__fish_complete_directories)'", out);
    else if (choices(NULL, row)) {
        fputs(" -a '", out);
        choices(out, row);
        fputc('\'', out);
    }
    fputs(" -d ", out);
    fish_text(out, row->help, first_sentence(row->help));
    fputc('\n', out);
}

static void fish_command(FILE *out, const struct command_row *command, int length)
{
    fprintf(out, "complete -c ctctl -n __fish_use_subcommand -f -a %.*s -d ", length,
            command->name);
    fish_text(out, command->help, first_sentence(command->help));
    fputc('\n', out);
}

/* Prints the script for fish.  ctrun's script offers options only before the program. */
static void print_fish(FILE *out, const struct program_words *program)
{
    const char *name = program->name;

    if (!program->command) {
        fprintf(out,
                "function __%s_options\n"
                "    set -l is_value 0\n"
                "    for word in (commandline -opc)[2..-1]\n"
                "        if test $is_value = 1\n"
                "            set is_value 0\n"
                "        else if contains -- (string replace -a _ - -- $word)",
                name);
        each_name(out, program, fish_taker);
        fputs("\n"
              "            set is_value 1\n"
              "        else if not string match -q -- '-*' $word\n"
              "            return 1\n"
              "        end\n"
              "    end\n"
              "end\n",
              out);
    }
    fprintf(out, "function __ct_option\n    complete -c %s%s $argv\nend\n", name,
            program->command ? "" : " -n __ctrun_options");
    each_name(out, program, fish_name);
    fputs("functions -e __ct_option\n", out);
    each_command(out, program, fish_command);
    if (!program->command) {
        fprintf(out, "complete -c %s -x -a '(__fish_complete_subcommand --", name);
        each_name(out, program, fish_taker);
        fputs(")' -d Program\n", out);
    }
}

void completion_print(FILE *out, const char *shell, const struct program_words *program)
{
    if (!strcmp(shell, "bash"))
        print_bash(out, program);
    else if (!strcmp(shell, "zsh"))
        print_zsh(out, program);
    else
        print_fish(out, program);
}
