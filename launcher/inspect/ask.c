/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - increments the page's number of questions, and wakes the observers that sleep on it.
 *
 * The number is written with pwrite(), and the kernel alone looks at the mapping.  So a process
 * that truncates the file can't kill the reader. */
#include "launcher/inspect/ask.h"

#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "runtime/util/clock.h"

int ask_is_possible(const struct job_snapshot *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].observer != OBSERVER_NONE)
            return 1;
    return 0;
}

void ask_observers(int fd)
{
    const off_t at = (off_t)offsetof(struct control_head, asked);
    const uint64_t now_ns = clock_coarse_ns();
    uint32_t asked;
    char *head;

    if (pread(fd, &asked, sizeof asked, at) != sizeof asked)
        return;
    if (++asked == CONTROL_LAST_ANSWER)
        asked = 1;
    head = mmap(NULL, CONTROL_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED)
        return;
    if (pwrite(fd, &now_ns, sizeof now_ns, (off_t)offsetof(struct control_head, asked_ns))
            == sizeof now_ns
        && pwrite(fd, &asked, sizeof asked, at) == sizeof asked)
        syscall(SYS_futex, head + at, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    munmap(head, CONTROL_HEAD_BYTES);
}

int ask_is_open(const struct job_snapshot *job)
{
    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];
        char state;

        if (rank->observer != OBSERVER_SILENT && rank->observer != OBSERVER_ASKED)
            continue;
        state = process_read(rank->observer_pid).state;
        if (!state) /* the pid may be of another pid namespace */
            state = process_read(rank->worker).state;
        if (state && !strchr("TtZXx", state))
            return 1;
    }
    return 0;
}

int ask_and_read(int fd, int64_t deadline, struct job_snapshot *job)
{
    ask_observers(fd);
    for (;;) {
        if (page_read(fd, job) < 0)
            return -1;
        if (!ask_is_open(job) || time_left_ms(deadline, 1) == 0)
            return 0;
        snapshot_free(job);
        poll(NULL, 0, 2);
    }
}
