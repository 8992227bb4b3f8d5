/* SPDX-License-Identifier: Apache-2.0 */
/* crew.c - see crew.h. */
#include "bench/ct_bench/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/ct_bench/measure.h"

#define LONGEST_WAIT_US 30e6 /* then a member is taken for dead */
#define LONGEST_S 300        /* of a measurement: who spins for a dead member's flag ends too */

int crew_meet(const struct member *m)
{
    const uint32_t round = atomic_load(&m->place->round);
    const double began = now_us();

    if (atomic_fetch_add(&m->place->arrived, 1) + 1 == (uint32_t)m->count) {
        atomic_store(&m->place->arrived, 0);
        atomic_store(&m->place->round, round + 1);
    }
    while (atomic_load(&m->place->round) == round) {
        if (now_us() - began > LONGEST_WAIT_US)
            return -1;
        sched_yield();
    }
    return 0;
}

int crew_longest(const struct member *m, double us, double *longest)
{
    m->place->us[m->index] = us;
    if (crew_meet(m) != 0)
        return -1;
    *longest = 0;
    for (int i = 0; i < m->count; i++)
        if (m->place->us[i] > *longest)
            *longest = m->place->us[i];
    return crew_meet(m); /* or somebody's next time is read */
}

static int nth_cpu(const cpu_set_t *cpus, int n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, cpus) && n-- == 0)
            return cpu;
    return -1;
}

/* Does not return into the rank's program, whose connections and buffers it shares. */
static _Noreturn void run_member(const struct member *member, pid_t parent, int cpu,
                                 int (*body)(const struct member *))
{
    cpu_set_t own;

    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    signal(SIGALRM, SIG_DFL);
    alarm(LONGEST_S);
    if (sched_setaffinity(0, sizeof own, &own) < 0)
        _exit(2);
    _exit(body(member) != 0 ? 1 : 0);
}

static void say(char why[200], int code)
{
    if (code == 0)
        return;
    if (code == 2)
        snprintf(why, 200, "--limits: a process may not run on a CPU that a rank may run on");
    else
        snprintf(why, 200,
                 "--limits: a process that measures failed, or hung; is there enough memory?");
}

int crew_run(int count, const cpu_set_t *cpus, int on_one, int (*body)(const struct member *),
             void *arg, double result[CREW_RESULTS], char why[200])
{
    struct meeting_place *place =
        mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t parent = getpid();
    pid_t pids[MOST_CREW];
    int started = 0, worst = 0;

    if (place == MAP_FAILED) {
        snprintf(why, 200, "--limits: shared memory: %s", strerror(errno));
        return -1;
    }
    for (; started < count; started++) {
        const struct member member = { started, count, place, arg };

        pids[started] = fork();
        if (pids[started] == 0)
            run_member(&member, parent, nth_cpu(cpus, on_one ? 0 : started), body);
        if (pids[started] < 0) {
            snprintf(why, 200, "--limits: fork: %s", strerror(errno));
            worst = -1;
            for (int i = 0; i < started; i++)
                kill(pids[i], SIGKILL);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        int status = 0, code;

        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (worst == 0)
            say(why, worst = code);
    }
    memcpy(result, place->result, sizeof place->result);
    munmap(place, sizeof *place);
    return worst == 0 ? 0 : -1;
}
