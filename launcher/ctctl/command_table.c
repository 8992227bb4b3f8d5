/* SPDX-License-Identifier: Apache-2.0 */
/* command_table.c - has a table row for each command and each option of ctctl. */
#include "launcher/ctctl/command_table.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/suggest.h"

static const struct option_row rows[CTCTL_OPTIONS] = {
    [CTCTL_JSON] = { .name = "json", .help = "Print JSON for programs (docs/events.md)." },
    [CTCTL_VERBOSE] = { .name = "verbose",
                        .letter = 'v',
                        .help =
                            "Print more. status adds where each rank is, doctor what is right." },
    [CTCTL_AFTER] = { .name = "after",
                      .value = "SECONDS",
                      .help = "Leave out waits that are shorter than SECONDS. The default is 1." },
    [CTCTL_FOLLOW] = { .name = "follow",
                       .letter = 'f',
                       .help = "Print later output, too, until the job ends." },
    [CTCTL_LINES] = { .name = "lines",
                      .letter = 'n',
                      .value = "N",
                      .help = "Begin with the last N lines. attach begins with the last 20, logs "
                              "with the first line that is kept." },
    [CTCTL_OUTPUT] = { .name = "output",
                       .letter = 'o',
                       .value = "FILE",
                       .help = "Write the trace to FILE. The default is standard output." },
    [CTCTL_HOSTS] = { .name = "hosts",
                      .value = "HOST,...",
                      .help = "Check these hosts by ssh. The value is as for ctrun --hosts." },
    [CTCTL_HOSTFILE] = { .name = "hostfile",
                         .value = "FILE",
                         .help = "Read the hosts from FILE, as ctrun --hostfile does." },
    [CTCTL_SSH] = { .name = "ssh",
                    .value = "COMMAND",
                    .help = "The command that is used in place of ssh, as with ctrun --ssh." },
    [CTCTL_IFACE] = { .name = "iface",
                      .value = "NAME",
                      .help = "Check the connections at this network interface, as ctrun --iface "
                              "uses it." },
    [CTCTL_PRINT_COMPLETION] = { .name = "print-completion",
                                 .value = "bash|zsh|fish",
                                 .help = "Print a script by which the shell completes ctctl." },
    [CTCTL_HELP] = { .name = "help",
                     .letter = 'h',
                     .help = "Print this. After a command, print the help of that command." },
    [CTCTL_VERSION] = { .name = "version",
                        .letter = 'V',
                        .help = "Print the version and what is built in." },
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
    { { "ps", "", " json after ",
        "List jobs: the pid of ctrun, the ranks, and the state in one word." },
      0,
      0,
      command_ps },
    { { "status", "[JOB]", " json verbose after ",
        "Show which ranks wait, in which call, and for which ranks. status also prints the source "
        "line "
        "of each wait, how long it has lasted, and what the ranks do that the others wait for. It "
        "exits with 1 if a rank waits or is stopped." },
      0,
      1,
      command_status },
    { { "top", "[JOB]", " after ",
        "Show once a second what each rank does. top also shows the CPU time of a rank, its "
        "collectives per second, the share of time that it spends in calls, and its call. Problems "
        "come first, and ranks that do the same share a line. The key f gives each rank a line, "
        "and q quits." },
      0,
      1,
      command_top },
    { { "stack", "[JOB] RANK", " ",
        "Print the stack of a rank. stack uses eu-stack or gdb, and py-spy for Python." },
      1,
      2,
      command_stack },
    { { "attach", "[JOB]", " lines ",
        "Show the output of a job that ctrun --detach started. attach ends with the job, and its "
        "exit code is the job's. Ctrl-C ends attach and leaves the job running. attach never makes "
        "the job wait." },
      0,
      1,
      command_attach },
    { { "logs", "[JOB]", " follow lines ",
        "Print the output of a job that ctrun --detach started, also after its end. The output of "
        "the last 16 jobs that ended is kept." },
      0,
      1,
      command_logs },
    { { "wait", "[JOB]", " ",
        "Wait for the end of a job that ctrun --detach started. The exit code of wait is the "
        "job's." },
      0,
      1,
      command_wait },
    { { "kill", "JOB", " ", "Stop a job: end its ctrun by SIGTERM, and wait until it has ended." },
      1,
      1,
      command_kill },
    { { "trace merge", "FILE...", " output ",
        "Join the traces of several nodes. Each FILE is a run.node*.json of ctrun "
        "--trace=run.json. The result has one clock and is for ui.perfetto.dev. trace merge exits "
        "with 1 if it can't read or write a file, or if a FILE is not a trace." },
      1,
      INT_MAX,
      command_trace_merge },
    { { "new", "NAME", " ",
        "Create a folder NAME with a program that uses libct. The folder also has a "
        "CMakeLists.txt and a test. new exits with 1 if it can't write a file." },
      1,
      1,
      command_new },
    { { "doctor", "", " json verbose hosts hostfile ssh iface ",
        "Check whether a job can run here or on these hosts. doctor checks limits, shared memory, "
        "GPUs and versions, and between hosts names, connections, bandwidth and clocks. It prints "
        "a remedy for what is wrong (docs/doctor.md). In a job of Slurm, PBS, LSF or Grid Engine "
        "it checks the hosts of that job. It exits with 1 if a check failed." },
      0,
      0,
      command_doctor },
    { { "help", "[COMMAND]", " ", "Print this, or the help of COMMAND." },
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

static int takes(const struct command_row *command, const struct option_row *row)
{
    char name[64];

    snprintf(name, sizeof name, " %s ", row->name);
    return strstr(command->options, name) != NULL;
}

static void print_usage(FILE *out, const struct command_row *command, const char *before)
{
    const int indent = fprintf(out, "%s ctctl %s", before, command->name) + 1;
    char text[300] = "";
    size_t used = 0;

    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        const char *value = rows[i].value;

        if (takes(command, &rows[i]) && rows[i].letter)
            used += (size_t)snprintf(text + used, sizeof text - used, " [-%c%s%s]", rows[i].letter,
                                     value ? " " : "", value ? value : "");
        else if (takes(command, &rows[i]))
            used += (size_t)snprintf(text + used, sizeof text - used, " [--%s%s%s]", rows[i].name,
                                     value ? "=" : "", value ? value : "");
    }
    snprintf(text + used, sizeof text - used, "%s%s", *command->words ? " " : "", command->words);
    fputs(*text ? " " : "", out);
    print_wrapped(out, *text ? text + 1 : text, indent);
}

static const char job_words[] = "JOB is a run id (--rdzv-id) or the pid of a ctrun. Without JOB, "
                                "status shows all jobs, top and stack show the only one, and "
                                "attach, logs and wait the newest of ctrun --detach, first of "
                                "those that run. RANK is a rank of the job.";

/* Prints the options that the command accepts, or those that ctctl accepts without a command. */
static void print_options(FILE *out, const struct command_row *command)
{
    int printed = 0;

    for (int i = 0; i < CTCTL_OPTIONS; i++) {
        if (command ? !takes(command, &rows[i]) : i < CTCTL_PRINT_COMPLETION)
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
    fputc('\n', out);
    print_wrapped(out,
                  "ctctl shows the jobs that run on this host: yours, or all users' jobs for root. "
                  "It reads shared memory and /proc, so it works while ranks or ctrun hang.",
                  0);
    fputc('\n', out);
    for (int i = 0; (command = command_at(i)) != NULL; i++)
        fprintf(out, "  %-12s %.*s\n", command->name, first_sentence(command->help), command->help);
    fputc('\n', out);
    print_wrapped(out, job_words, 0);
    print_options(out, NULL);
    fputc('\n', out);
    print_wrapped(
        out,
        "Of a program that uses neither libct nor PyTorch, ctctl shows only the processes. If the "
        "ctrun wheel is installed in the job's Python, ctctl shows the calls of PyTorch's gloo and "
        "NCCL.",
        0);
    fputs("\nExit code 2: wrong usage, or the job or rank was not found.\n"
          "The options of a command: ctctl help COMMAND.  Manual: man ctctl.\n",
          out);
}

static void print_command_help(FILE *out, const struct command_row *command)
{
    print_usage(out, command, "usage:");
    fputc('\n', out);
    print_wrapped(out, command->help, 0);
    if (strstr(command->words, "JOB")) {
        fputc('\n', out);
        print_wrapped(out, job_words, 0);
    }
    print_options(out, command);
    fputs("\nAll commands: ctctl --help.\n", out);
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

static int command_take_lines(struct ctctl_options *options, const char *value)
{
    char *end;
    const long lines = strtol(value, &end, 10);

    if (end == value || *end || lines < 0 || lines > INT_MAX)
        return ctctl_wrong("--lines: it must be a number of lines, not ", value);
    options->lines = (int)lines;
    return 0;
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
    else if (option == CTCTL_FOLLOW)
        options->follow = 1;
    else if (option == CTCTL_LINES)
        return command_take_lines(options, value);
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
