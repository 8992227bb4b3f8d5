/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - the option table as completion scripts of bash and zsh.
 *
 * Names come from the rows, values from the rows' text for --help: the lower-case words of
 * "gpu|numa|core|none|LIST" are offered, FILE and DIR complete as paths, other values do not
 * complete.  A command and its arguments follow the options. */
#include "config/help.h"

#include <string.h>

#include "config/options.h"

typedef void name_printer(FILE *out, const struct option_row *row, const char *name);

/* Each name that is written with "--". */
static void each_name(FILE *out, name_printer *print)
{
    for (int i = 0; i < OPTIONS; i++) {
        print(out, option_row(i), option_row(i)->name);
        if (option_row(i)->alias)
            print(out, option_row(i), option_row(i)->alias);
    }
}

/* Writes the words that the user can choose from; returns how many.  out NULL: only counts. */
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

/* The options whose value is the next word. */
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
        fprintf(out, "    --%s) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n", name);
    else if (is_path(row, "DIR"))
        fprintf(out, "    --%s) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n", name);
    else if (choices(NULL, row)) {
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", name);
        choices(out, row);
        fprintf(out, "' -- \"$cur\")) ;;\n");
    }
}

/* bash splits --name=value into three words. */
static void print_bash(FILE *out)
{
    fputs("_ctrun() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} option= word i\n"
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
          out);
    each_name(out, bash_taker);
    fputs(") option=$word ;;\n"
          "            -*) ;;\n"
          "            *)\n"
          "                if declare -F _command_offset >/dev/null; then\n"
          "                    _command_offset \"$i\"\n"
          "                else\n"
          "                    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "                fi\n"
          "                return\n"
          "                ;;\n"
          "            esac\n"
          "        fi\n"
          "    done\n"
          "    if [[ $cur == = ]]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD - 1]//_/-} cur=\n"
          "    fi\n"
          "    case $option in\n"
          "    '') ;;\n",
          out);
    each_name(out, bash_values);
    fputs("    esac\n"
          "    if [[ $option ]]; then\n"
          "        return\n"
          "    elif [[ $cur == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    each_name(out, bash_name);
    fputs("' -- \"$cur\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _ctrun ctrun\n",
          out);
}

/* ---- zsh ------------------------------------------------------------------- */

static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

static void zsh_name(FILE *out, const struct option_row *row, const char *name)
{
    fprintf(out, " \\\n        '--%s%s[", name, !row->value ? "" : row->bare ? "=-" : "=");
    zsh_text(out, row->help);
    fputc(']', out);
    if (row->value) {
        fputs(row->bare ? "::" : ":", out);
        zsh_text(out, row->value);
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
        zsh_text(out, row->help);
        fputs(row->value ? "]:value:'" : "]'", out);
    }
}

static void print_zsh(FILE *out)
{
    fputs("#compdef ctrun\n"
          "_ctrun() {\n"
          "    _arguments -s",
          out);
    each_name(out, zsh_name);
    fputs(" \\\n        '(-):program:_command_names -e' \\\n"
          "        '*::arguments:_normal'\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _ctrun ]; then\n"
          "    _ctrun \"$@\"\n"
          "else\n"
          "    compdef _ctrun ctrun\n"
          "fi\n",
          out);
}

void completion_print(FILE *out, const char *shell)
{
    if (!strcmp(shell, "bash"))
        print_bash(out);
    else
        print_zsh(out);
}
