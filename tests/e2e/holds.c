/* SPDX-License-Identifier: Apache-2.0 */
/* holds.c - a debugger that does nothing: holds PID SECONDS stops the process for so long, says
 * "held" when it has, and lets it go.  Exit code 77: the kernel does not let us. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const pid_t pid = argc == 3 ? (pid_t)atoi(argv[1]) : 0;

    if (pid <= 0 || ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0
        || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 || waitpid(pid, NULL, 0) != pid)
        return 77;
    puts("held");
    fflush(stdout);
    sleep((unsigned)atoi(argv[2]));
    return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0;
}
