/* SPDX-License-Identifier: Apache-2.0 */
/* command_table.c - has a table row for each command and each option of ctctl. */
#include "launcher/ctctl/command_table.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/suggest.h"

static const struct option_row rows[CTCTL_OPTIONS] = {
    [CTCTL_JSON] = { .name = "json", .help = "print JSON for programs (docs/events.md)" },
    [CTCTL_VERBOSE] = { .name = "verbose",
                        .letter = 'v',
                        .help = "status: also print where each rank is; doctor: what is ok, too" },
    [CTCTL_AFTER] = { .name = "after",
                      .value = "SECONDS",
                      .help = "status, ps, top: leave out waits that are shorter (1)" },
    [CTCTL_OUTPUT] = { .name = "output",
                       .letter = 'o',
                       .value = "FILE",
                       .help = "trace merge: the file to write, instead of standard output" },
    [CTCTL_HOSTS] = { .name = "hosts", .value = "HOST,...", .help = "doctor: as ctrun has it" },
    [CTCTL_HOSTFILE] = { .name = "hostfile", .value = "FILE", .help = "doctor: as ctrun has it" },
    [CTCTL_SSH] = { .name = "ssh", .value = "COMMAND", .help = "doctor: as ctrun has it" },
    [CTCTL_IFACE] = { .name = "iface", .value = "NAME", .help = "doctor: as ctrun has it" },
    [CTCTL_PRINT_COMPLETION] = { .name = "print-completion",
                                 .value = "bash|zsh|fish",
                                 .help = "print a script by which the shell completes all this" },
    [CTCTL_HELP] = { .name = "help",
                     .letter = 'h',
                     .help = "print this help; after a command, the help of that command" },
    [CTCTL_VERSION] = { .name = "version", .letter = 'V', .help = "print the version" },
};

static int command_help(struct ctctl_options *options, char **words, int count);

/* A command's table row, and its function, which is called with the words after the command's name.
 */
struct ctctl_command {
    struct command_row row;
    int least, most; /* fewest and most words after the command's name */
    int (*run)(struct ctctl_options *options, char **words, int count);
};

static const struct ctctl_command commands[] = {
    { { "ps", "", " json after ", "each job, its ctrun, its ranks, and its state in one word" },
      0,
      0,
      command_ps },
    { { "status", "[JOB]", " json verbose after ",
        "each group in which ranks wait: in which call, at which source line, for how long, and "
        "what the ranks do that they wait for" },
      0,
      1,
      command_status },
    { { "top", "[JOB]", " after ",
        "once a second: what each rank does, its CPU time, its collectives a second, and for how "
        "much of the time it is in calls; a rank that is there for less than the others makes them "
        "wait" },
      0,
      1,
      command_top },
    { { "stack", "[JOB] RANK", " ",
        "the stack of a rank: by eu-stack or gdb, by py-spy for Python" },
      1,
      2,
      command_stack },
    { { "trace merge", "FILE...", " output ",
        "one trace of the files that the nodes of a job wrote (run.node*.json of ctrun "
        "--trace=run.json), on one clock, for ui.perfetto.dev" },
      1,
      INT_MAX,
      command_trace_merge },
    { { "new", "NAME", " ", "a folder NAME with a program of libct that builds and runs" },
      1,
      1,
      command_new },
    { { "doctor", "", " json verbose hosts hostfile ssh iface ",
        "can a job run here, or on these hosts: limits, shared memory, GPUs, versions, and between "
        "hosts names, connections, bandwidth, clocks; what is wrong, and the remedy. In a job of "
        "Slurm, PBS, LSF or Grid Engine it takes the job's hosts (docs/doctor.md)" },
      0,
      0,
      command_doctor },
    { { "help", "[COMMAND]", " ", "print what ctctl can do, or what COMMAND does" },
      0,
      INT_MAX,
      command_help },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct option_row *option_at(int i)
{
    return i < CTCTL_OPTIONS ? &rows[i] : NULL;
}

static const struct command_row *command_at(int i)
{
    return i < COMMANDS ? &commands[i].row : NULL;
}

const struct program_words ctctl_words = { "ctctl", option_at, command_at };

/* ---- --help ---------------------------------------------------------------- */

/* Prints the text in lines that are broken at spaces.  Each line starts after `indent` spaces and
 * ends before column 96. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
    int column = indent;

    for (const char *word = text; *word;) {
        const int length = (int)strcspn(word, " ");

        if (column > indent && column + 1 + length > 96) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", length, word);
        word += length + (word[length] == ' ');
    }
    fputc('\n', out);
}

static int takes(const struct command_row *command, const struct option_row *row)
{
    char name[64];

    snprintf(name, sizeof name, " %s ", row->name);
    return strstr(command->options, name) != NULL;
}

static void print_usage(FILE *out, const struct command_row *command, const char *before)
{
    fprintf(out, "%s ctctl %s", before, command->name);
    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        const char *value = rows[i].value;

        if (takes(command, &rows[i]) && rows[i].letter)
            fprintf(out, " [-%c%s%s]", rows[i].letter, value ? " " : "", value ? value : "");
        else if (takes(command, &rows[i]))
            fprintf(out, " [--%s%s%s]", rows[i].name, value ? "=" : "", value ? value : "");
    }
    fprintf(out, "%s%s\n", *command->words ? " " : "", command->words);
}

static const char job_words[] =
    "\nJOB is a run id (--rdzv-id) or the pid of a ctrun.  Without JOB, status shows all jobs,\n"
    "and top and stack show the only one.  RANK is a rank of the job.\n";

static void print_options(FILE *out, const struct command_row *command)
{
    int printed = 0;

    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        if (command && !takes(command, &rows[i]))
            continue;
        if (printed++ == 0)
            fputc('\n', out);
        option_help(out, &rows[i], 34);
    }
}

static void print_help(FILE *out)
{
    const struct command_row *command;

    for (int i = 0; (command = command_at(i)) != NULL; i++)
        print_usage(out, command, i ? "      " : "usage:");
    fputs("\nShows the jobs that run on this host: yours, or all users' jobs for root.  It reads "
          "shared\n"
          "memory and /proc, so it works while ranks or ctrun hang or are stopped.\n\n",
          out);
    for (int i = 0; (command = command_at(i)) != NULL; i++) {
        fprintf(out, "  %-12s ", command->name);
        print_wrapped(out, command->help, 15);
    }
    fputs(job_words, out);
    print_options(out, NULL);
    fputs(
        "\nIf a program does not use libct, as PyTorch's, it shows the processes: state, CPU time, "
        "and\n"
        "the Python line if py-spy is installed.  It finds ranks that another launcher started if\n"
        "they use libct.  For ranks of other hosts run ctctl there.\n\n"
        "Exit code of status: 0 if no rank waits, 1 if a rank waits or is stopped; of trace merge "
        "and new:\n"
        "1 if a file can't be read or written, or is no trace; of doctor: 1 if there is a FAIL; 2 "
        "for\n"
        "wrong usage or if there is no such job or rank.\n",
        out);
}

/* Prints the help of a command. */
static void print_command_help(FILE *out, const struct command_row *command)
{
    print_usage(out, command, "usage:");
    fputs("\n  ", out);
    print_wrapped(out, command->help, 2);
    if (strstr(command->words, "JOB"))
        fputs(job_words, out);
    print_options(out, command);
    fputs("\nAll commands and exit codes: ctctl --help\n", out);
}

/* ---- The command line --------------------------------------------------------- */

int ctctl_wrong(const char *what, const char *which)
{
    fprintf(stderr, "ctctl: %s%s (ctctl --help)\n", what, which);
    return WRONG_USAGE;
}

int ctctl_unknown(const char *what, const char *typed)
{
    const int is_option = *typed == '-';
    struct suggestion best = { NULL, 0 };
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    for (int i = 0; is_option && i < CTCTL_OPTIONS; i++)
        suggest(&best, name + strspn(name, "-"), rows[i].name);
    for (int i = 0; !is_option && command_at(i); i++)
        suggest(&best, name, command_at(i)->name);
    fprintf(stderr, "ctctl: %s%s%s%s%s%s (ctctl --help)\n", what, typed,
            best.word ? "; did you mean " : "", best.word && is_option ? "--" : "",
            best.word ? best.word : "", best.word ? "?" : "");
    return WRONG_USAGE;
}

/* Stores the value of an option.  Returns 0, or the exit code after it has printed an error
 * message. */
static int command_take(struct ctctl_options *options, int option, const char *value)
{
    char *end;

    if (option == CTCTL_JSON)
        options->json = 1;
    else if (option == CTCTL_VERBOSE)
        options->verbose = 1;
    else if (option == CTCTL_OUTPUT)
        options->output = value;
    else if (option == CTCTL_HOSTS)
        options->doctor.hosts = value;
    else if (option == CTCTL_HOSTFILE)
        options->doctor.hostfile = value;
    else if (option == CTCTL_SSH)
        options->doctor.ssh = value;
    else if (option == CTCTL_IFACE)
        options->doctor.iface = value;
    else if (option == CTCTL_PRINT_COMPLETION)
        options->shell = value;
    if (option != CTCTL_AFTER)
        return 0;
    options->after_s = strtod(value, &end);
    if (end == value || *end || !(options->after_s >= 0) || options->after_s > 1e9)
        return ctctl_wrong("--after: it must be a number of seconds, not ", value);
    return 0;
}

/* Prints why getopt_long() refused an option.  The global variable optopt is the option's letter or
 * 256 plus its index, or 0 if no option is called `word`. */
static void command_refuse(int letter, const char *word)
{
    char what[64];

    if (optopt >= 256)
        snprintf(what, sizeof what, "--%s %s", rows[optopt - 256].name,
                 letter == ':' ? "needs a value" : "takes no value");
    else if (letter == ':')
        snprintf(what, sizeof what, "-%c needs a value", optopt);
    else if (optopt)
        snprintf(what, sizeof what, "unknown option: -%c", optopt);
    else {
        ctctl_unknown("unknown option: ", word);
        return;
    }
    ctctl_wrong(what, "");
}

int ctctl_read_options(struct ctctl_options *options, unsigned *taken, int argc, char **argv)
{
    struct option known[CTCTL_OPTIONS + 1] = { 0 };
    /* the leading ':' makes getopt_long() return ':' if a value is missing */
    char letters[3 * CTCTL_OPTIONS + 2] = ":";
    int index, letter, at_once = CTCTL_OPTIONS;

    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        known[i] = (struct option){ rows[i].name, rows[i].value ? required_argument : no_argument,
                                    NULL, 256 + i };
        if (rows[i].letter)
            snprintf(letters + strlen(letters), 3, "%c%s", rows[i].letter,
                     rows[i].value ? ":" : "");
    }
    opterr = 0;
    while ((letter = getopt_long(argc, argv, letters, known, NULL)) != -1) {
        if (at_once != CTCTL_OPTIONS)
            continue;
        for (index = 0; index < CTCTL_OPTIONS; index++)
            if (letter == 256 + index || (rows[index].letter && letter == rows[index].letter))
                break;
        if (index == CTCTL_OPTIONS) {
            command_refuse(letter, argv[optind - 1]);
            return -1;
        }
        if (command_take(options, index, optarg) != 0)
            return -1;
        if (index == CTCTL_HELP || index == CTCTL_VERSION || index == CTCTL_PRINT_COMPLETION)
            at_once = index;
        *taken |= 1u << index;
    }
    return at_once;
}

/* Checks that each option that the user gave belongs to the command.  Returns 0, or the exit code
 * after it has printed an error message. */
static int command_check_options(const struct command_row *command, unsigned taken)
{
    char what[64], which[128] = "";

    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        if (!(taken & 1u << i) || takes(command, &rows[i]))
            continue;
        for (int other = 0; command_at(other); other++)
            if (takes(command_at(other), &rows[i]))
                snprintf(which + strlen(which), sizeof which - strlen(which), "%s%s",
                         *which ? ", " : "", command_at(other)->name);
        snprintf(what, sizeof what, "--%s is for ", rows[i].name);
        return ctctl_wrong(what, which);
    }
    return 0;
}

/* Returns the number of words in `name` if the user's words begin with them, and otherwise 0. */
static int begins_with(char **words, int count, const char *name)
{
    int used = 0;

    for (; *name; name += strcspn(name, " "), name += *name == ' ', used++)
        if (used == count || strlen(words[used]) != strcspn(name, " ")
            || strncmp(words[used], name, strlen(words[used])) != 0)
            return 0;
    return used;
}

/* Prints what is wrong with the words, such as "stack: a word is missing: ctctl stack [JOB] RANK".
 * Returns the exit code. */
static int lacks(const char *typed, const char *what, const struct command_row *command)
{
    char text[200];

    snprintf(text, sizeof text, "%s: %s: ctctl %s %s", typed, what, command->name, command->words);
    return ctctl_wrong(text, "");
}

static int name_a_command(void)
{
    char names[200] = "";

    for (int i = 0; i < COMMANDS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 i == 0              ? ""
                 : i == COMMANDS - 1 ? " or "
                                     : ", ",
                 commands[i].row.name);
    return ctctl_wrong("name a command: ", names);
}

/* Finds the command with which the words begin, and sets *used to the number of words in its name.
 * Returns NULL if no command matches. */
static const struct ctctl_command *find_command(char **words, int count, int *used)
{
    for (int i = 0; i < COMMANDS; i++)
        if ((*used = begins_with(words, count, commands[i].row.name)) > 0)
            return &commands[i];
    return NULL;
}

/* Finds the first command with a name of several words that begins with `word`: "trace" finds
 * "trace merge".  Returns NULL if there is no such command. */
static const struct command_row *find_by_first_word(const char *word)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strncmp(commands[i].row.name, word, strlen(word))
            && commands[i].row.name[strlen(word)] == ' ')
            return &commands[i].row;
    return NULL;
}

int ctctl_help(FILE *out, char **words, int count)
{
    int used;
    const struct ctctl_command *command = find_command(words, count, &used);
    const struct command_row *row = command     ? &command->row
                                    : count > 0 ? find_by_first_word(words[0])
                                                : NULL;

    if (row)
        print_command_help(out, row);
    else if (count == 0)
        print_help(out);
    else
        return ctctl_unknown("unknown command: ", words[0]);
    return 0;
}

static int command_help(struct ctctl_options *options, char **words, int count)
{
    (void)options;
    return ctctl_help(stdout, words, count);
}

int ctctl_run(struct ctctl_options *options, unsigned taken, char **words, int count)
{
    int used;
    const struct ctctl_command *command = find_command(words, count, &used);
    const struct command_row *row;

    if (count == 0)
        return name_a_command();
    if (command) {
        if (command_check_options(&command->row, taken) != 0)
            return WRONG_USAGE;
        if (count - used > command->most)
            return ctctl_wrong("too many arguments: ", words[used + command->most]);
        if (count - used < command->least)
            return lacks(command->row.name, "a word is missing", &command->row);
        return command->run(options, words + used, count - used);
    }
    if ((row = find_by_first_word(words[0])) != NULL)
        return lacks(words[0], "name what to do", row);
    return ctctl_unknown("unknown command: ", words[0]);
}
