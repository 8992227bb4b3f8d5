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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 5000, SHORT_MS = 1200 };

static const char *goes_when_locked; /* NULL: no file does */
static int refusals;                 /* so many of the next locks are not to be had at all */

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
    assert_int_equal(ct_store_get(other, "here", 1000, &value, &size), CT_OK);
    free(value);
    ct_store_close(other);
    ct_store_close(opener.store);
    unlink(path);
}

static void a_file_that_is_removed_each_time_is_given_up(void **state)
{
    const char *path = "/tmp/ct-store-that-never-stays";
    const int before = open_descriptors();
    ct_store *store = NULL;

    (void)state;
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

/* A process that has locked the file, and does nothing any more. */
static pid_t locker(const char *path)
{
    int ready[2];
    char word = 0;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const int fd = open(path, O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test is ended from outside */
        if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], &word, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    return pid;
}

static void unlocks(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Whoever holds it is named, as the kernel knows it. */
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
    char path[] = "/tmp/ct-store-XXXXXX";
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
    unlocks(pid);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_OK); /* it still works */
    pid = locker(path);
    assert_int_equal(ct_store_close(store), CT_OK);
    assert_int_equal(open_descriptors(), before);
    unlocks(pid);
    close(fd);
    unlink(path);
}

/* A timeout of keys that is that short means: don't wait.  A lock is free again at once. */
static void a_lock_is_waited_for_by_who_waits_for_no_key(void **state)
{
    char path[] = "/tmp/ct-store-XXXXXX";
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
    unlocks(pid);
    assert_int_equal(ct_store_set(store, "a", "1", 1), CT_OK);
    assert_int_equal(ct_store_close(store), CT_OK);
    unlink(path);
}

/* Who could not come in has not been counted, and counts nobody out. */
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
        cmocka_unit_test(who_did_not_come_in_takes_nobody_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
