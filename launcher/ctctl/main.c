/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - has main() of ctctl, which shows the jobs of this host, merges traces, and examines
 * hosts before a job.
 *
 * ctctl and ctrun are separate programs, since ctrun would mistake a command's name for the user's
 * program.  ctctl reads the control pages and /proc, and needs no answer from a process.  So ctctl
 * works while ranks and ctrun hang, are stopped, or are dead. */
#include <stdio.h>
#include <unistd.h>

#include "launcher/ctctl/command_table.h"
#include "launcher/util/print_version.h"
#include "launcher/util/standard_output.h"

/* Prints a shell script for --print-completion.  Returns the exit code. */
static int print_completion(const char *shell)
{
    const char *parsed;
    struct why why;

    if (parse_shell(shell, &parsed, &why) < 0)
        return ctctl_wrong("--print-completion: ", why.text);
    completion_print(stdout, shell, &ctctl_words);
    return 0;
}

int main(int argc, char **argv)
{
    struct ctctl_options options = { .after_s = 1, .lines = -1 };
    unsigned taken = 0;
    int code = doctor_on_host(argv), option;

    if (code >= 0)
        return code;
    option = ctctl_read_options(&options, &taken, argc, argv);
    if (option < 0)
        return WRONG_USAGE;
    code = 0;
    if (option == CTCTL_HELP)
        code = ctctl_help(stdout, argv + optind, argc - optind);
    else if (option == CTCTL_VERSION)
        print_version("ctctl");
    else if (option == CTCTL_PRINT_COMPLETION)
        code = print_completion(options.shell);
    else
        code = ctctl_run(&options, taken, argv + optind, argc - optind);
    return standard_output_close("ctctl", code);
}
