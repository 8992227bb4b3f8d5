/* SPDX-License-Identifier: Apache-2.0 */
/* command_line.c - reads argv as Python's argparse reads it for torchrun.
 *
 * Users rely on the rules of argparse.  A prefix of an option's name is accepted if only one option
 * has a name with this prefix. argparse counts the two spellings of one option as two options, but
 * ctrun counts them as one.  If an option is given several times, the last one is used.  A value
 * may look like a negative number.  Short options can be combined in one word.  All words after the
 * program belong to the program, except for one "--" before or after the program.  Unknown options
 * are reported at the end, since a later --help still works. */
#include "config/options.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state of the parse. */
struct cmdline {
    struct options *options;
    char **at; /* the next argument to read */
    /* `word` is the last option as the user spelled it.  `taken` is the argument that this option
     * took as its value, or NULL. */
    const char *word, *taken;
    int taker; /* row of the option that took `taken` as its value */
    char unknown[256];
    /* the option most similar to the first unknown one; OPTIONS if none is similar */
    enum option meant;
    char *error;
    size_t size;
};

/* Returns 1 if the text looks like a negative number.  As in argparse, "-1" and "-.5" are then
 * values, since ctrun has no option that looks like a number. */
static int negative_number(const char *text)
{
    int digits = 0;

    if (*text++ != '-')
        return 0;
    for (; isdigit((unsigned char)*text); text++)
        digits = 1;
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++)
            digits = 1;
    return digits && !*text;
}

/* Returns 1 if the text is a value or the program, and 0 if it is an option. */
static int plain(const char *text)
{
    return text[0] != '-' || !text[1] || negative_number(text)
           || (strchr(text, ' ') && !strchr(text, '='));
}

/* Compares name[0..length) with an option's spelling in which `between` replaces each dash.
 * Returns 2 if name is the whole spelling, 1 if it is a prefix of the spelling, else 0. */
static int cmdline_begins(const char *name, size_t length, const char *dashed, char between)
{
    for (size_t i = 0; i < length; i++)
        if (!dashed[i] || name[i] != (dashed[i] == '-' ? between : dashed[i]))
            return 0;
    return dashed[length] ? 1 : 2;
}

/* Compares `name` with both spellings of the row's names.  Returns 2 if `name` is a whole spelling,
 * 1 if `name` is a prefix of a spelling, else 0.  If it is a prefix, adds the option to the list of
 * candidates in line->error. */
static int cmdline_matches(struct cmdline *line, const struct option_row *row, const char *name,
                           size_t length)
{
    const char *names[] = { row->name, row->alias };
    const size_t used = strlen(line->error);
    int found = 0;

    for (int n = 0; n < 2 && names[n]; n++)
        for (int under = 0; under < 2; under++) {
            const int match = cmdline_begins(name, length, names[n], under ? '_' : '-');

            if (match == 2)
                return 2;
            if (match == 1 && !found)
                snprintf(line->error + used, line->size - used, " --%s", names[n]);
            found |= match;
        }
    return found;
}

/* Returns the row with the name `name`, or with a name that starts with `name`.  Returns OPTIONS if
 * no row matches.  Returns -1 if several rows match; line->error then lists them. */
static int cmdline_find(struct cmdline *line, const char *name, size_t length)
{
    int found = OPTIONS, count = 0;

    snprintf(line->error, line->size, "ambiguous option: --%.*s could match", (int)length, name);
    for (int i = 0; i < OPTIONS; i++) {
        const int match = cmdline_matches(line, option_row(i), name, length);

        if (match == 2)
            return i;
        if (match == 1)
            found = i;
        count += match;
    }
    return count > 1 ? -1 : found;
}

static void cmdline_set(struct cmdline *line, int option, const char *text)
{
    line->options->settings[option] = (struct setting){ FROM_COMMAND_LINE, text, NULL, 0, NULL };
}

/* Sets the option to the text after "=" if there is one, else to the row's `bare` value or the next
 * argument.  Returns 0, or -1 with an error message in line->error. */
static int cmdline_take_value(struct cmdline *line, int option, const char *attached)
{
    if (!attached && option_row(option)->bare) {
        cmdline_set(line, option, option_row(option)->bare);
        return 0;
    }
    if (!attached && (!*line->at || !strcmp(*line->at, "--") || !plain(*line->at))) {
        snprintf(line->error, line->size, "--%s: expected one argument: %s",
                 option_row(option)->name, option_row(option)->value);
        return -1;
    }
    if (!attached) {
        line->taken = *line->at++;
        line->taker = option;
    }
    cmdline_set(line, option, attached ? attached : line->taken);
    return 0;
}

/* Checks the shell's name.  The option acts at once, like --help, so ctrun needs no program and
 * reads no job.ini. */
static enum outcome show_completion(struct cmdline *line)
{
    const struct option_row *row = option_row(OPTION_PRINT_COMPLETION);
    struct why why;

    if (row->parse(line->options->settings[OPTION_PRINT_COMPLETION].text,
                   (char *)line->options + row->field, &why)
        == 0)
        return OPTIONS_SHOW_COMPLETION;
    snprintf(line->error, line->size, "--%s: %s", row->name, why.text);
    return OPTIONS_WRONG;
}

static enum outcome cmdline_take(struct cmdline *line, int option, const char *attached)
{
    const struct option_row *row = option_row(option);

    if (row->value) {
        if (cmdline_take_value(line, option, attached) < 0)
            return OPTIONS_WRONG;
        return option == OPTION_PRINT_COMPLETION ? show_completion(line) : OPTIONS_RUN;
    }
    if (attached) {
        snprintf(line->error, line->size, "--%s: ignored explicit argument '%s': it is a switch",
                 row->name, attached);
        return OPTIONS_WRONG;
    }
    if (option == OPTION_HELP)
        return OPTIONS_SHOW_HELP;
    if (option == OPTION_VERSION)
        return OPTIONS_SHOW_VERSION;
    cmdline_set(line, option, "1");
    return OPTIONS_RUN;
}

/* Records an unknown option, and looks for a similar option.  The name that it compares is without
 * dashes and value: "nprocs" for "--nprocs=4", "n" for "-n4". */
static void cmdline_note_unknown(struct cmdline *line, const char *word)
{
    const size_t used = strlen(line->unknown);
    const char *start = word + strspn(word, "-");
    char name[64];

    snprintf(line->unknown + used, sizeof line->unknown - used, " %s", word);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "=0123456789"), start);
    if (line->meant == OPTIONS)
        line->meant = option_meant(name);
}

static enum outcome take_long(struct cmdline *line, const char *word)
{
    const char *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    const int option = cmdline_find(line, word + 2, length);

    if (option < 0)
        return OPTIONS_WRONG;
    if (option == OPTIONS) {
        cmdline_note_unknown(line, word);
        return OPTIONS_RUN;
    }
    return cmdline_take(line, option, equals ? equals + 1 : NULL);
}

/* Reads a word of short options, such as "-m" or "-mh".  The rest of the word after an option that
 * needs a value is that value. */
static enum outcome take_short(struct cmdline *line, const char *word)
{
    enum outcome outcome = OPTIONS_RUN;

    for (const char *letter = word + 1; *letter && outcome == OPTIONS_RUN; letter++) {
        int option = 0;

        while (option < OPTIONS && option_row(option)->letter != *letter)
            option++;
        if (option == OPTIONS) {
            if (letter == word + 1)
                cmdline_note_unknown(line, word);
            else
                outcome =
                    cmdline_take(line, OPTION_MODULE, letter); /* fails: a switch has no value */
            break;
        }
        if (option_row(option)->value) {
            const char *rest = letter[1] == '=' ? letter + 2 : letter + 1;

            return cmdline_take(line, option, letter[1] ? rest : NULL);
        }
        outcome =
            option == OPTION_HELP ? OPTIONS_SHOW_BRIEF_HELP : cmdline_take(line, option, NULL);
    }
    return outcome;
}

/* Returns 1 if ctrun could run this file, else 0. */
static int may_be_program(const char *word)
{
    const size_t length = strlen(word);
    struct stat about;

    return stat(word, &about) == 0 && S_ISREG(about.st_mode)
           && (access(word, X_OK) == 0 || (length > 3 && !strcmp(word + length - 3, ".py")));
}

/* Sets the error message for a command line in which no word follows the last option.  The word
 * that this option took as its value may be the program. */
static enum outcome refuse_without_program(struct cmdline *line)
{
    const char *value = line->taken ? option_row(line->taker)->value : "";
    const int length = (int)strcspn(value, "|");

    if (!line->taken)
        snprintf(line->error, line->size,
                 "no program to run is given: ctrun [options] program [arguments]");
    else if (may_be_program(line->taken))
        snprintf(line->error, line->size,
                 "%s took '%s' as its %.*s, so no program is left; write %s=%.*s %s", line->word,
                 line->taken, length, value, line->word, length, value, line->taken);
    else
        snprintf(line->error, line->size,
                 "%s took '%s' as its %.*s, so no program is left: ctrun [options] program "
                 "[arguments]",
                 line->word, line->taken, length, value);
    return OPTIONS_WRONG;
}

enum outcome cmdline_read(struct options *options, char **argv, char *error, size_t size)
{
    struct cmdline line = { .options = options,
                            .at = argv + (argv[0] != NULL),
                            .meant = OPTIONS,
                            .error = error,
                            .size = size };
    int dashes = 0;

    while (*line.at && !plain(*line.at) && !dashes) {
        const char *word = *line.at++;
        enum outcome outcome = OPTIONS_RUN;

        line.word = word;
        line.taken = NULL;
        if (!strcmp(word, "--"))
            dashes = 1;
        else
            outcome = word[1] == '-' ? take_long(&line, word) : take_short(&line, word);
        if (outcome != OPTIONS_RUN)
            return outcome;
    }
    if (!*line.at)
        return refuse_without_program(&line);
    if (*line.unknown) {
        snprintf(error, size, "unrecognized arguments:%s%s%s%s", line.unknown,
                 line.meant != OPTIONS ? "; did you mean --" : "",
                 line.meant != OPTIONS ? option_row(line.meant)->name : "",
                 line.meant != OPTIONS ? "?" : "");
        return OPTIONS_WRONG;
    }
    options->program = line.at;
    /* Drops one "--" right after the program, as argparse does, by moving up the words after it. */
    if (!dashes && line.at[1] && !strcmp(line.at[1], "--"))
        for (char **to = line.at + 1; (to[0] = to[1]) != NULL; to++)
            continue;
    return OPTIONS_RUN;
}
