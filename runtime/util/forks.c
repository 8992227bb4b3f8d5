/* SPDX-License-Identifier: Apache-2.0 */
/* forks.c - keeps a bit for each descriptor of a group or store.  A handler that runs in the child
 * of fork() closes these descriptors.
 *
 * fork() waits for threads between forks_hold() and forks_release(), and these wait for fork().
 * Both wait for at most TURNS naps.  A lock could block for ever: the program's own handlers of
 * fork() may wait for such a thread, a signal handler may call fork() in that thread, and a close
 * may take long. */
#include "runtime/util/forks.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The usual fs.nr_open of a kernel.  Every descriptor is below this number. */
#define MOST_DESCRIPTORS (1 << 20)

#define NUMBER_OF_CLOSE_RANGE 436 /* the same on all architectures */
#define AT_EXEC 4                 /* CLOSE_RANGE_CLOEXEC */

enum { TURNS = 2000, NAP_NS = 50000 }; /* about 200 ms */

pid_t this_process;

static struct {
    pthread_once_t once;
    _Atomic int opening; /* threads between forks_hold() and forks_release() */
    _Atomic int forking; /* threads in fork() */
    _Atomic int end;     /* one more than the index of the highest word that had a bit set */
    _Atomic uint64_t owned[MOST_DESCRIPTORS / 64];
} forks = { .once = PTHREAD_ONCE_INIT };

static void forks_nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

void forks_hold(void)
{
    atomic_fetch_add(&forks.opening, 1);
    for (int turn = 0; atomic_load(&forks.forking) && turn < TURNS; turn++) {
        atomic_fetch_sub(&forks.opening, 1);
        forks_nap();
        atomic_fetch_add(&forks.opening, 1);
    }
}

void forks_release(void)
{
    atomic_fetch_sub(&forks.opening, 1);
}

static void begin_fork(void)
{
    atomic_fetch_add(&forks.forking, 1);
    for (int turn = 0; atomic_load(&forks.opening) && turn < TURNS; turn++)
        forks_nap();
}

static void end_fork(void)
{
    atomic_fetch_sub(&forks.forking, 1);
}

/* Runs in the child of fork().  Calls only async-signal-safe functions. */
static void begin_child(void)
{
    const int end = atomic_load(&forks.end);

    this_process = getpid();
    for (int i = 0; i < end; i++)
        for (uint64_t left = atomic_exchange(&forks.owned[i], 0); left; left &= left - 1)
            close(i * 64 + __builtin_ctzll(left));
    atomic_store(&forks.end, 0);
    atomic_store(&forks.opening, 0);
    atomic_store(&forks.forking, 0);
}

static void forks_begin(void)
{
    this_process = getpid();
    pthread_atfork(begin_fork, end_fork, begin_child);
}

pid_t forks_maker(void)
{
    pthread_once(&forks.once, forks_begin);
    return this_process;
}

ct_status forks_refuse(const char *what, pid_t maker)
{
    return ct_fail(CT_ERR_INVALID,
                   "%s was made by process %d before fork(); a child of fork() (process %d) can't "
                   "use it",
                   what, (int)maker, (int)getpid());
}

void descriptor_own(int fd)
{
    const int word = fd / 64;
    int end = atomic_load(&forks.end);

    if (fd < 0 || fd >= MOST_DESCRIPTORS)
        return;
    pthread_once(&forks.once, forks_begin);
    while (end <= word && !atomic_compare_exchange_weak(&forks.end, &end, word + 1))
        ;
    atomic_fetch_or(&forks.owned[word], (uint64_t)1 << fd % 64);
}

int descriptor_accept(int listener)
{
    int fd;

    forks_hold();
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    descriptor_own(fd);
    forks_release();
    return fd;
}

/* Clears the bit first, because another thread may get the same number as soon as the descriptor is
 * closed.  A child of a fork() between the two steps would keep the descriptor. */
void descriptor_close(int fd)
{
    forks_hold();
    if (fd >= 0 && fd < MOST_DESCRIPTORS)
        atomic_fetch_and(&forks.owned[fd / 64], ~((uint64_t)1 << fd % 64));
    close(fd);
    forks_release();
}

/* close_range() is of Linux 5.9, and AT_EXEC of 5.11. */
void descriptors_end(int first, int at_exec)
{
    _Alignas(struct dirent) char entries[1024];
    long got;
    int folder;

    if (syscall(NUMBER_OF_CLOSE_RANGE, first, ~0U, at_exec ? AT_EXEC : 0) == 0)
        return;
    folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (const char *at = entries; at < entries + got;) {
            const struct dirent *entry = (const void *)at;
            const int fd = atoi(entry->d_name); /* 0 for "." and ".." */

            if (fd >= first && fd != folder && at_exec)
                fcntl(fd, F_SETFD, FD_CLOEXEC);
            else if (fd >= first && fd != folder)
                close(fd);
            at += entry->d_reclen;
        }
    close(folder);
}
