/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_file.c - a file store whose file others lock or remove at the wrong moment.
 *
 * flock() of the library is the one here, so that the file can go exactly when its lock is
 * granted, and a lock can fail. */
#include "tests/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 5000, SHORT_MS = 1200 };

static const char *goes_when_locked; /* NULL: no file does */
static int refusals;                 /* so many of the next locks fail */

int flock(int fd, int operation)
{
    if (refusals > 0) {
        refusals--;
        errno = ENOLCK;
        return -1;
    }
    if (goes_when_locked && operation & LOCK_EX)
        unlink(goes_when_locked);
    return (int)syscall(SYS_flock, fd, operation);
}

static void says(const char *words)
{
    if (!strstr(ct_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, ct_last_error());
}

/* ---- Removed --------------------------------------------------------------------- */

struct opener {
    const char *path;
    ct_store *store;
};

static void *opens(void *arg)
{
    struct opener *opener = arg;

    ct_store_file(opener->path, LONG_MS, &opener->store);
    return NULL;
}

/* How many descriptors of this process are that file. */
static int times_open(const struct stat *file)
{
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat info;
    int count = 0;

    assert_non_null(all);
    while ((entry = readdir(all)))
        count += fstatat(dirfd(all), entry->d_name, &info, 0) == 0 && info.st_ino == file->st_ino
                 && info.st_dev == file->st_dev;
    closedir(all);
    return count;
}

/* The last of the others leaves while we have the file open and wait for its lock. */
static void who_opened_a_file_that_is_removed_meets_those_who_come_later(void **state)
{
    char path[] = "/tmp/ct-store-XXXXXX";
    const int held = mkstemp(path);
    struct opener opener = { .path = path };
    struct stat file;
    ct_store *other;
    pthread_t thread;
    void *value;
    size_t size;

    (void)state;
    assert_true(held >= 0);
    assert_int_equal(fstat(held, &file), 0);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(pthread_create(&thread, NULL, opens, &opener), 0);
    while (times_open(&file) < 2)
        nap(1);
    assert_int_equal(unlink(path), 0);
    close(held);
    pthread_join(thread, NULL);
    assert_non_null(opener.store);
    assert_int_equal(ct_store_set(opener.store, "here", "1", 1), CT_OK);
    assert_int_equal(ct_store_file(path, LONG_MS, &other), CT_OK);
    assert_int_equal(ct_store_get(other, "here", LONG_MS, &value, &size), CT_OK);
    free(value);
    ct_store_close(other);
    ct_store_close(opener.store);
    unlink(path);
}

static void a_file_that_is_removed_each_time_is_given_up(void **state)
{
    const int before = open_descriptors();
    ct_store *store = NULL;
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "/tmp/ct-store-that-never-stays-%d", (int)getpid());
    goes_when_locked = path;
    assert_int_equal(ct_store_file(path, LONG_MS, &store), CT_ERR_SYSTEM);
    goes_when_locked = NULL;
    assert_null(store);
    says(path);
    says("was removed each of the 100 times");
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- Locked ---------------------------------------------------------------------- */

/* A process that does this, and then nothing any more. */
static pid_t idler(int (*deed)(const char *path), const char *path, int *done)
{
    int ready[2];
    char word = 0;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test is ended from outside */
        word = (char)deed(path);
        if (write(ready[1], &word, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    *done = word;
    return pid;
}

static int locks(const char *path)
{
    const int fd = open(path, O_RDWR);

    return fd >= 0 && flock(fd, LOCK_EX) == 0;
}

static pid_t locker(const char *path)
{
    int locked;
    const pid_t pid = idler(locks, path, &locked);

    assert_true(locked);
    return pid;
}

static void ends(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* There the kernel's list of locks has the device that stat() says; on btrfs it has not. */
#define ON_TMPFS "/dev/shm/ct-store-XXXXXX"

/* The error names the holder, as the kernel knows it. */
static void says_who_has_the_lock(const char *path, pid_t pid, const char *limit)
{
    char who[32];

    snprintf(who, sizeof who, "process %d holds the lock", (int)pid);
    says(path);
    says(who);
    says(limit);
}

static void who_waits_for_a_lock_gives_up_at_the_stores_timeout(void **state)
{
    char path[] = ON_TMPFS;
    const int fd = mkstemp(path), before = open_descriptors();
    ct_store *store, *other = NULL;
    void *value;
    size_t size;
    pid_t pid;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ct_store_file(path, SHORT_MS, &store), CT_OK);
    pid = locker(path);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_ERR_TIMEOUT);
    says_who_has_the_lock(path, pid, "(limit 1200 ms)");
    assert_int_equal(ct_store_get(store, "a", LONG_MS, &value, &size), CT_ERR_TIMEOUT);
    says_who_has_the_lock(path, pid, "(limit 1200 ms)");
    assert_int_equal(ct_store_file(path, SHORT_MS, &other), CT_ERR_TIMEOUT);
    says_who_has_the_lock(path, pid, "(limit 1200 ms)");
    assert_null(other);
    ends(pid);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_OK); /* it still works */
    pid = locker(path);
    assert_int_equal(ct_store_close(store), CT_OK);
    assert_int_equal(open_descriptors(), before);
    ends(pid);
    close(fd);
    unlink(path);
}

/* A timeout of keys that is that short means: don't wait.  A lock is free again at once. */
static void a_lock_is_waited_for_by_who_waits_for_no_key(void **state)
{
    char path[] = ON_TMPFS;
    const int fd = mkstemp(path);
    ct_store *store;
    pid_t pid;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(ct_store_file(path, 0, &store), CT_OK);
    pid = locker(path);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_ERR_TIMEOUT);
    says_who_has_the_lock(path, pid, "(limit 1000 ms)");
    ends(pid);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_OK);
    assert_int_equal(ct_store_close(store), CT_OK);
    unlink(path);
}

static int has_two_disks(const char *folder)
{
    char disk[32];
    int done = unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
               && mount("", folder, "tmpfs", 0, NULL) == 0;

    for (int i = 0; i < 2 && done; i++) {
        snprintf(disk, sizeof disk, "%s/%d", folder, i);
        done = mkdir(disk, 0700) == 0 && mount("", disk, "tmpfs", 0, NULL) == 0;
    }
    return done;
}

/* Each file system numbers its files for itself, so that there are several of one number: each
 * of two such files has another process's lock. */
static void a_lock_of_the_same_number_on_another_disk_is_not_mistaken(void **state)
{
    char paths[2][64], who[32];
    struct stat files[2];
    pid_t lockers[2];
    int mounted;
    const pid_t host = idler(has_two_disks, "/tmp", &mounted);

    (void)state;
    for (int i = 0; i < 2 && mounted; i++) {
        int fd;

        snprintf(paths[i], sizeof paths[i], "/proc/%d/root/tmp/%d/store", (int)host, i);
        fd = open(paths[i], O_RDWR | O_CREAT, 0600);
        assert_int_equal(fstat(fd, &files[i]), 0);
        close(fd);
    }
    if (!mounted || files[0].st_ino != files[1].st_ino) { /* not root, or Linux before 5.9 */
        ends(host);
        skip();
    }
    assert_int_not_equal(files[0].st_dev, files[1].st_dev);
    for (int i = 0; i < 2; i++)
        lockers[i] = locker(paths[i]);
    for (int i = 0; i < 2; i++) {
        ct_store *store;

        assert_int_equal(ct_store_file(paths[i], 0, &store), CT_ERR_TIMEOUT);
        snprintf(who, sizeof who, "process %d holds the lock", (int)lockers[i]);
        says(who);
    }
    for (int i = 0; i < 2; i++)
        ends(lockers[i]);
    ends(host);
}

/* A process that could not open it was not counted, and must not count down. */
static void who_did_not_come_in_takes_nobody_with_it(void **state)
{
    char path[] = "/tmp/ct-store-XXXXXX";
    const int fd = mkstemp(path);
    struct stat before, after;
    ct_store *store, *other = NULL;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ct_store_file(path, LONG_MS, &store), CT_OK);
    assert_int_equal(fstat(fd, &before), 0);
    refusals = 1;
    assert_int_equal(ct_store_file(path, LONG_MS, &other), CT_ERR_SYSTEM);
    assert_int_equal(refusals, 0);
    says("flock");
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(ct_store_close(store), CT_OK);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_opened_a_file_that_is_removed_meets_those_who_come_later),
        cmocka_unit_test(a_file_that_is_removed_each_time_is_given_up),
        cmocka_unit_test(who_waits_for_a_lock_gives_up_at_the_stores_timeout),
        cmocka_unit_test(a_lock_is_waited_for_by_who_waits_for_no_key),
        cmocka_unit_test(a_lock_of_the_same_number_on_another_disk_is_not_mistaken),
        cmocka_unit_test(who_did_not_come_in_takes_nobody_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
