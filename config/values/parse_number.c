/* SPDX-License-Identifier: Apache-2.0 */
/* parse_number.c - parses the values of options.
 *
 * The grammars are torchrun's, including Python's int().  The error messages of torchrun that users
 * search for in logs are kept. */
#include "config/values/parse_number.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int value_wrong(struct why *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return -1;
}

int value_int(const char *text, int *value)
{
    long long sum = 0;
    int negative;

    while (isspace((unsigned char)*text))
        text++;
    negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!isdigit((unsigned char)*text))
        return -1;
    while (isdigit((unsigned char)*text)) {
        sum = sum * 10 + (*text++ - '0');
        if (sum > INT_MAX)
            return -1;
        if (*text == '_' && isdigit((unsigned char)text[1]))
            text++;
    }
    while (isspace((unsigned char)*text))
        text++;
    if (*text)
        return -1;
    *value = (int)(negative ? -sum : sum);
    return 0;
}

static int parse_int(const char *text, int *value, struct why *why)
{
    return value_int(text, value) < 0 ? value_wrong(why, "invalid int value: '%s'", text) : 0;
}

int parse_switch(const char *text, void *field, struct why *why)
{
    int value;

    if (value_int(text, &value) < 0)
        return value_wrong(why, "invalid literal '%s' for a switch: 1 is on, 0 is off", text);
    *(int *)field = value != 0;
    return 0;
}

int parse_text(const char *text, void *field, struct why *why)
{
    (void)why;
    *(const char **)field = text;
    return 0;
}

int parse_file_name(const char *text, void *field, struct why *why)
{
    return *text ? parse_text(text, field, why) : value_wrong(why, "give the name of a file");
}

int parse_seconds(const char *text, void *field, struct why *why)
{
    int value;

    if (parse_int(text, &value, why) < 0)
        return -1;
    if (value < 0)
        return value_wrong(why, "%d must be non-negative: it is a number of seconds", value);
    *(int *)field = value;
    return 0;
}

int parse_node_rank(const char *text, void *field, struct why *why)
{
    int value;

    if (parse_int(text, &value, why) < 0)
        return -1;
    if (value < 0)
        return value_wrong(why, "there is no node %d: the first is node 0", value);
    *(int *)field = value;
    return 0;
}

int parse_port(const char *text, void *field, struct why *why)
{
    int value;

    if (parse_int(text, &value, why) < 0)
        return -1;
    if (value < 0 || value > 65535)
        return value_wrong(why, "the port %d is not between 0 and 65535", value);
    *(int *)field = value;
    return 0;
}

int parse_interval(const char *text, void *field, struct why *why)
{
    char *end;
    const double value = strtod(text, &end);

    if (end == text || *end)
        return value_wrong(why, "invalid float value: '%s'", text);
    if (!(value > 0))
        return value_wrong(why,
                           "%s: it must be > 0 seconds (and has no effect: ends are noticed at "
                           "once)",
                           text);
    *(double *)field = value;
    return 0;
}

int value_choice(const char *text, const char *const *words, struct why *why)
{
    char all[160] = "";
    size_t used = 0;

    for (int i = 0; words[i]; i++) {
        if (!strcmp(text, words[i]))
            return i;
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s'%s'", i ? ", " : "", words[i]);
    }
    return value_wrong(why, "invalid choice: '%s' (choose from %s)", text, all);
}

int parse_start_method(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "spawn", "fork", "forkserver", NULL };

    return value_choice(text, words, why) < 0 ? -1 : parse_text(text, field, why);
}

int parse_mpi(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "auto", "pmi", "none", NULL };
    const int choice = value_choice(text, words, why);

    *(enum mpi_service *)field = choice < 0 ? MPI_AUTO : MPI_AUTO + choice;
    return choice < 0 ? -1 : 0;
}

int parse_failure_report(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "full", "short", NULL };
    const int choice = value_choice(text, words, why);

    *(int *)field = choice == 1;
    return choice < 0 ? -1 : 0;
}

int parse_shell(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "bash", "zsh", "fish", NULL };

    return value_choice(text, words, why) < 0 ? -1 : parse_text(text, field, why);
}

int parse_numa_binding(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "node", "socket", "exclusive", "core-complex", NULL };
    const int choice = value_choice(text, words, why);

    *(enum numa_binding *)field = choice < 0 ? NUMA_NOT : NUMA_NODE + choice;
    return choice < 0 ? -1 : 0;
}

int parse_event_handler(const char *text, void *field, struct why *why)
{
    static const char *const words[] = { "null", "console", "dynamic_rendezvous", NULL };
    struct why unused;

    if (value_choice(text, words, &unused) < 0)
        return value_wrong(why,
                           "KeyError: '%s': the handlers are null and console; --events=FILE "
                           "writes what happens as JSON lines",
                           text);
    return parse_text(text, field, why);
}

/* Accepts only "default".  Other values name torchrun plugins, which are written in Python and
 * can't be loaded by ctrun. */
int parse_logs_specs(const char *text, void *field, struct why *why)
{
    if (strcmp(text, "default") != 0)
        return value_wrong(why,
                           "Could not find entrypoint %s: plugins in Python can't be loaded; "
                           "--log-dir, --redirects and --tee say where output goes",
                           text);
    return parse_text(text, field, why);
}

int parse_count(const char *text, void *field, struct why *why)
{
    int value;

    if (parse_int(text, &value, why) < 0)
        return -1;
    if (value < 1)
        return value_wrong(why, "it must be at least 1, not %d", value);
    *(int *)field = value;
    return 0;
}

int parse_bytes(const char *text, void *field, struct why *why)
{
    static const char units[] = "kMGT";
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;

    if (!isdigit((unsigned char)*text) || (*end && (!unit || end[1])) || value == 0
        || value > SIZE_MAX >> shift)
        return value_wrong(why, "'%s' is not a size; write 4G, 512M, 64k or a number of bytes",
                           text);
    *(size_t *)field = (size_t)value << shift;
    return 0;
}

int parse_networks(const char *text, void *field, struct why *why)
{
    struct networks *networks = field;
    char word[64];

    networks->count = 0;
    while (*text) {
        const size_t length = strcspn(text, ",");

        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (networks->count == NETWORKS)
            return value_wrong(why, "more than %d networks", NETWORKS);
        if (length >= sizeof word || network_parse(word, &networks->list[networks->count]) < 0)
            return value_wrong(why, "'%s' is not a network; write 10.1.0.0/16, fd00::/8 or any",
                               word);
        networks->count++;
        text += length + (text[length] == ',');
    }
    return 0;
}

int parse_nproc(const char *text, void *field, struct why *why)
{
    static const char *const words[] = {
        [NPROC_AUTO] = "auto", [NPROC_CPU] = "cpu", [NPROC_GPU] = "gpu"
    };
    struct nproc value = { NPROC_NUMBER, 0 };

    for (int kind = NPROC_AUTO; kind <= NPROC_GPU; kind++)
        if (!strcmp(text, words[kind])) {
            value.kind = kind;
            *(struct nproc *)field = value;
            return 0;
        }
    if (value_int(text, &value.number) < 0)
        return value_wrong(
            why, "Unsupported nproc_per_node value: %s (a number from 1, or auto, cpu, gpu)", text);
    if (value.number < 0)
        return value_wrong(
            why, "%d workers are too few for a job; give a number from 1, or auto, cpu, gpu",
            value.number);
    *(struct nproc *)field = value;
    return 0;
}

const char *signal_abbreviation(int number)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
        [SIGPOLL] = "POLL", [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
    };

    return number > 0 && number < (int)(sizeof names / sizeof *names) ? names[number] : NULL;
}

int signal_number(const char *name)
{
    if (strncmp(name, "SIG", 3) != 0)
        return 0;
    for (int number = 1; number < NSIG; number++) {
        const char *known = signal_abbreviation(number);

        if (known && !strcmp(known, name + 3))
            return number;
    }
    return 0;
}

int parse_signals(const char *text, void *field, struct why *why)
{
    struct signals value = { .unknown = "" };

    sigemptyset(&value.set);
    while (*text) {
        char name[sizeof value.unknown];
        size_t length = strcspn(text, ","), start = 0, end = length;
        int number;

        while (start < end && isspace((unsigned char)text[start]))
            start++;
        while (end > start && isspace((unsigned char)text[end - 1]))
            end--;
        snprintf(name, sizeof name, "%.*s", (int)(end - start), text + start);
        number = signal_number(name);
        if (number == SIGKILL || number == SIGSTOP)
            return value_wrong(why, "Invalid argument: %s cannot be handled by any program", name);
        if (number)
            sigaddset(&value.set, number);
        else if (!*value.unknown)
            memcpy(value.unknown, name, sizeof name);
        text += length + (text[length] == ',');
    }
    *(struct signals *)field = value;
    return 0;
}
