/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - chooses the value of each option among its sources.
 *
 * The command line is read first (command_line.c), since it may name the job file or ask for help.
 * Then the environment, the job file and the scheduler's variables (surroundings.c) set the options
 * that the command line did not set.  The parser in the option's row parses each value.  At the
 * end, combinations of options are checked. */
#include "config/options.h"

#include "config/surroundings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum outcome wrong(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum outcome wrong(char *error, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return OPTIONS_WRONG;
}

static const char *options_environment(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;

    return text && *text ? text : NULL;
}

/* Sets the option from its environment variables, unless the command line set it. */
static void take_environment(struct options *options, enum option option)
{
    struct setting *setting = &options->settings[option];

    for (int i = 0; i < 2 && setting->from < FROM_ENVIRONMENT; i++) {
        const char *variable = option_row(option)->variables[i],
                   *text = options_environment(variable);

        if (text)
            *setting = (struct setting){ FROM_ENVIRONMENT, text, variable, 0, NULL };
    }
}

/* Reads the job file that the user named, or else job.ini if the current folder contains that
 * file. */
static enum outcome find_file(struct options *options, char *error, size_t size)
{
    const char *path;

    take_environment(options, OPTION_JOB);
    path = options->settings[OPTION_JOB].text;
    if (!path && access("job.ini", F_OK) == 0)
        path = "job.ini";
    return path && jobfile_read(&options->file, path, error, size) < 0 ? OPTIONS_WRONG
                                                                       : OPTIONS_RUN;
}

static enum outcome unknown_key(const struct jobfile *file, const struct jobfile_entry *entry,
                                char *error, size_t size)
{
    const enum option meant = option_meant(entry->key);

    if (meant != OPTIONS && !option_row(meant)->command_line_only)
        return wrong(error, size, "%s:%d: unknown key '%s' in [ctrun]; did you mean %s?",
                     file->path, entry->line, entry->key, option_row(meant)->name);
    return wrong(error, size,
                 "%s:%d: unknown key '%s' in [ctrun]; its keys are the options, without --",
                 file->path, entry->line, entry->key);
}

/* Sets options from section [ctrun] of the job file.  Checks only the names of the other
 * sections. */
static enum outcome take_file(struct options *options, char *error, size_t size)
{
    const struct jobfile *file = &options->file;

    for (int i = 0; i < file->count; i++) {
        const struct jobfile_entry *entry = &file->entries[i];
        enum option option;

        if (!strcmp(entry->section, "env") || !strcmp(entry->section, "collectives"))
            continue;
        if (!*entry->section)
            return wrong(error, size,
                         "%s:%d: '%s' is outside any section; options belong under [ctrun]",
                         file->path, entry->line, entry->key);
        if (strcmp(entry->section, "ctrun") != 0)
            return wrong(error, size,
                         "%s:%d: unknown section [%s]; there are [ctrun], [env], [collectives]",
                         file->path, entry->line, entry->section);
        option = option_named(entry->key);
        if (option == OPTIONS || option_row(option)->command_line_only)
            return unknown_key(file, entry, error, size);
        if (options->settings[option].from <= FROM_FILE)
            options->settings[option] =
                (struct setting){ FROM_FILE, entry->value, NULL, entry->line, NULL };
    }
    return OPTIONS_RUN;
}

/* Returns OPTIONS_WRONG if options contradict each other, else OPTIONS_RUN.  Sets the number of
 * nodes to 1 for --standalone. */
static enum outcome check_together(struct options *options, char *error, size_t size)
{
    if (options->module && options->no_python)
        return wrong(error, size,
                     "-m runs a Python module, so it can't be combined with --no-python");
    if (options->use_env && !options->legacy_launch)
        return wrong(error, size,
                     "--use-env works only with --legacy-launch; workers always find LOCAL_RANK in "
                     "the environment");
    if (options->legacy_launch && options->no_python && !options->use_env)
        return wrong(error, size,
                     "--legacy-launch passes --local-rank=N to the program; with --no-python, add "
                     "--use-env");
    if (options->numa_binding != NUMA_NOT && options->bind && strcmp(options->bind, "none") != 0)
        return wrong(error, size,
                     "--numa-binding and --bind=%s both choose the CPUs; give only one of them",
                     options->bind);
    if (options->log_dir && !strcmp(options->log_dir, "/dev/null")
        && (options->duplicate_stdout_filters || options->duplicate_stderr_filters))
        return wrong(error, size,
                     "--log-dir: /dev/null can't hold filtered_stdout.log or filtered_stderr.log; "
                     "name a folder");
    if (options->standalone)
        options->nnodes = (struct nodes_range){ 1, 1 };
    return OPTIONS_RUN;
}

static enum outcome parse_settings(struct options *options, char *error, size_t size)
{
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);
        const struct setting *setting = &options->settings[i];
        struct why why;
        char source[300];

        if (!row->parse || !setting->text
            || row->parse(setting->text, (char *)options + row->field, &why) == 0
            || (row->any_in_environment && setting->from == FROM_ENVIRONMENT))
            continue;
        setting_source(options, i, source, sizeof source);
        return wrong(error, size, "%s: %s%s%s", source, setting->from == FROM_FILE ? row->name : "",
                     setting->from == FROM_FILE ? ": " : "", why.text);
    }
    return check_together(options, error, size);
}

enum outcome options_read(struct options *options, char **argv, char *error, size_t size)
{
    enum outcome outcome;

    *options = (struct options){ 0 };
    for (enum option i = 0; i < OPTIONS; i++)
        options->settings[i].text = option_row(i)->fallback;
    outcome = cmdline_read(options, argv, error, size);
    if (outcome != OPTIONS_RUN)
        return outcome;
    outcome = find_file(options, error, size);
    if (outcome == OPTIONS_RUN)
        outcome = take_file(options, error, size);
    if (outcome != OPTIONS_RUN)
        return outcome;
    for (enum option i = 0; i < OPTIONS; i++)
        take_environment(options, i);
    if (surroundings_apply(options, error, size) != OPTIONS_RUN)
        return OPTIONS_WRONG;
    return parse_settings(options, error, size);
}

void options_free(struct options *options)
{
    jobfile_free(&options->file);
}

void setting_source(const struct options *options, enum option option, char *text, size_t size)
{
    const struct setting *setting = &options->settings[option];

    if (setting->from == FROM_COMMAND_LINE)
        snprintf(text, size, "--%s", option_row(option)->name);
    else if (setting->from == FROM_ENVIRONMENT)
        snprintf(text, size, "%s", setting->variable);
    else if (setting->from == FROM_FILE)
        snprintf(text, size, "%s:%d", options->file.path, setting->line);
    else
        snprintf(text, size, "default");
}

void setting_words(const struct options *options, enum option option, char *text, size_t size)
{
    const struct setting *setting = &options->settings[option];
    const struct option_row *row = option_row(option);
    char source[300];

    setting_source(options, option, source, sizeof source);
    if (setting->from == FROM_FILE)
        snprintf(text, size, "%s: %s = %s", source, row->name, setting->text);
    else if (setting->from == FROM_COMMAND_LINE && !row->value)
        snprintf(text, size, "%s", source);
    else
        snprintf(text, size, "%s=%s", source, setting->text);
}
