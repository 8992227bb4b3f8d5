/* SPDX-License-Identifier: Apache-2.0 */
/* test_forks.c - what a child of fork() has of a rank: nothing, and it can do the rank no harm.
 *
 * Worlds of two over TCP where rank 0 serves the store, so that there is one of everything: a
 * store's listener and its clients, the ranks' listeners and connections. */
#include "tests/marks.h"
#include "tests/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/forks.h"

#define NO_LIMIT_MS 8000 /* of what must end for another reason */

/* All of the world has talked over all it has. */
static void joins(void)
{
    int32_t sum = 1;

    setenv("CT_TIMEOUT_MS", "20000", 1);
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        rank_leaves();
    EXPECT_OK(ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == ct_size(CT_WORLD));
}

/* As of multiprocessing: it is there until its parent or a peer of that has no more need of it.
 * closes == 0: as if it had not run a step yet, and closed nothing. */
static pid_t sleeping_child(int closes)
{
    const pid_t child =
        closes ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (child == 0) {
        alarm(DEADLINE_MS / 1000);
        for (;;)
            pause();
    }
    return child;
}

/* The exit code of body() in a child. */
static void in_a_child(void (*body)(void))
{
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
        body();
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- Descriptors ------------------------------------------------------------- */

static int before;
static _Atomic int is_over;

/* All descriptors but the epoll and pipes that libevent's loop has for itself, in a rank that
 * serves the store: those keep nothing open. */
static int descriptors_to_something(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        char path[32], target[64] = "";

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        count += readlink(path, target, sizeof target - 1) > 0 && !strstr(target, "[eventpoll]")
                 && strncmp(target, "pipe:", 5) != 0;
    }
    return count;
}

static void has_none(void)
{
    EXPECT(descriptors_to_something() == before);
}

static void forks(ct_group *unused, void *arg)
{
    ct_store *file, *client;
    char path[200];

    (void)unused;
    (void)arg;
    before = descriptors_to_something();
    joins();
    snprintf(path, sizeof path, "%s/store", scratch());
    EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &file));
    EXPECT_OK(ct_store_tcp("127.0.0.1", atoi(getenv("MASTER_PORT")), 0, GROUP_TIMEOUT_MS, &client));
    EXPECT_OK(ct_barrier(CT_WORLD, NULL)); /* no connection is just being accepted */
    in_a_child(has_none);
    EXPECT_OK(ct_barrier(CT_WORLD, NULL));
    EXPECT_OK(ct_store_close(client));
    EXPECT_OK(ct_store_close(file));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_child_has_none_of_its_parents_descriptors(void **state)
{
    (void)state;
    run_programs(2, forks, NULL);
    use_link("tcp");
    run_programs(2, forks, NULL);
    use_link(NULL);
}

/* Rank 0 serves the store at one port, and again when a child of it lives. */
static void inits_again(ct_group *unused, void *arg)
{
    pid_t child = 0;

    (void)unused;
    joins();
    if (program_rank() == 0)
        child = sleeping_child(*(const int *)arg);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    joins();
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    if (child) {
        kill(child, SIGKILL);
        EXPECT(waitpid(child, NULL, 0) == child);
    }
}

static void a_childs_life_keeps_no_port_in_use(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++)
        run_programs(2, inits_again, &closes);
}

/* Rank 1, on another host, ends; a child of it lives on. */
static void ends_with_a_child(ct_group *unused, void *arg)
{
    const double begun = now_ms();
    int32_t never = 0;

    (void)unused;
    (void)arg;
    joins();
    if (program_rank() == 1) {
        mark_number("child", 1, sleeping_child(1));
        rank_leaves();
    }
    EXPECT_OK(ct_set_timeout(CT_WORLD, NO_LIMIT_MS));
    await("child", 1);
    EXPECT_ERROR(ct_recv(CT_WORLD, &never, 1, CT_I32, 1, 0, NULL), CT_ERR_PEER, "rank 1");
    EXPECT(now_ms() - begun < NO_LIMIT_MS);
    EXPECT(kill((pid_t)number_of_mark("child", 1), SIGKILL) == 0);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void the_end_of_a_rank_is_seen_though_a_child_of_it_lives(void **state)
{
    (void)state;
    setenv("CT_FAULT", "hosts:0.1", 1);
    run_programs(2, ends_with_a_child, NULL);
    unsetenv("CT_FAULT");
}

/* ---- Calls ------------------------------------------------------------------- */

static ct_group *half;
static ct_work *work;
static ct_store *store;
static int32_t *lasting;

#define REFUSED(call) EXPECT_ERROR(call, CT_ERR_INVALID, words)

static void touches_all(void)
{
    char words[64];
    void *value = NULL;
    int32_t x = 1, done = 0;
    size_t bytes;
    ct_group *made = NULL;
    ct_store *prefixed = NULL;

    snprintf(words, sizeof words, "made by process %d before fork()|a child of fork()",
             (int)getppid());
    REFUSED(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL));
    REFUSED(ct_barrier(half, NULL));
    REFUSED(ct_send(CT_WORLD, &x, 1, CT_I32, 1, 0));
    REFUSED(ct_recv(half, &x, 1, CT_I32, CT_ANY_SOURCE, 0, NULL));
    REFUSED(ct_set_timeout(CT_WORLD, 1000));
    REFUSED(ct_abort(CT_WORLD));
    REFUSED(ct_new_group(&x, 1, &made));
    REFUSED(ct_shrink_group(CT_WORLD, 1000, &made));
    REFUSED(ct_coalesce_begin(half));
    REFUSED((ct_status)ct_should_stop(CT_WORLD));
    REFUSED(ct_test(work, &done));
    REFUSED(ct_wait_for(work, 1));
    REFUSED(ct_wait(work));
    REFUSED(ct_store_set(ct_store_default(), "key", "1", 1));
    REFUSED(ct_store_get(store, "key", 1000, &value, &bytes));
    REFUSED(ct_store_wait(store, (const char *const[]){ "key" }, 1, 1000));
    REFUSED(ct_store_prefix(store, "a", &prefixed));
    REFUSED(ct_create_group(store, 0, 1, NULL, &made));
    REFUSED(ct_store_close(store));
    REFUSED(ct_init_process_group(NULL));
    REFUSED(ct_destroy_process_group(half));
    REFUSED(ct_destroy_process_group(CT_WORLD));
    EXPECT(ct_rank(CT_WORLD) == program_rank() && ct_size(half) == 2);
    EXPECT(*lasting == 41 + program_rank()); /* the program's memory is */
}

/* What it does to what was made before it. */
static void the_parent_goes_on(ct_group *unused, void *arg)
{
    const int ranks[] = { 1, 0 };
    int32_t got = 0, sum = 1, given = 7;

    (void)unused;
    (void)arg;
    joins();
    EXPECT_OK(ct_new_group(ranks, 2, &half));
    EXPECT_OK(ct_store_hash(&store));
    EXPECT_OK(ct_irecv(CT_WORLD, &got, 1, CT_I32, 1 - program_rank(), 3, &work));
    EXPECT_OK(ct_mem_alloc(CT_WORLD, 100, (void **)&lasting));
    *lasting = 41 + program_rank();
    in_a_child(touches_all);
    EXPECT_OK(ct_barrier(CT_WORLD, NULL));
    EXPECT_OK(ct_send(CT_WORLD, &given, 1, CT_I32, 1 - program_rank(), 3));
    EXPECT_OK(ct_wait(work));
    EXPECT(got == 7);
    EXPECT_OK(ct_all_reduce(half, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == 2);
    EXPECT_OK(ct_store_set(store, "key", "1", 1));
    EXPECT_OK(ct_store_close(store));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_childs_calls_are_refused_and_change_nothing_for_its_parent(void **state)
{
    (void)state;
    run_programs(2, the_parent_goes_on, NULL);
    use_link("tcp");
    run_programs(2, the_parent_goes_on, NULL);
    use_link(NULL);
}

/* ---- Worlds of a child's own --------------------------------------------------- */

/* Made before the fork there was nothing: parent and child are ranks alike. */
static void both_join(ct_group *unused, void *arg)
{
    const pid_t child = fork();
    int status = 0;

    (void)unused;
    (void)arg;
    setenv("WORLD_SIZE", "2", 1);
    setenv("RANK", child ? "0" : "1", 1);
    joins();
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    if (child == 0)
        _exit(0);
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void a_process_and_its_child_may_both_init_after_the_fork(void **state)
{
    (void)state;
    run_programs(1, both_join, NULL);
}

static int spawned(int rank, int size, void *arg)
{
    int32_t sum = 1;

    (void)rank;
    (void)arg;
    return ct_init_process_group(NULL) == CT_OK
                   && ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL) == CT_OK
                   && sum == size && ct_destroy_process_group(CT_WORLD) == CT_OK
               ? 0
               : 9;
}

static void spawns(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    joins();
    EXPECT(ct_spawn(3, spawned, NULL) == 0);
    EXPECT_OK(ct_barrier(CT_WORLD, NULL));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_rank_may_spawn_a_world_beside_its_own(void **state)
{
    (void)state;
    run_programs(2, spawns, NULL);
}

/* Connects to the listener again and again, as a client of a store or another rank does. */
static void *connects(void *arg)
{
    const struct sockaddr_un *address = arg;

    while (!atomic_load(&is_over)) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        connect(fd, (const struct sockaddr *)address, sizeof *address); /* fails at the end */
        close(fd);
    }
    return NULL;
}

static void *accepts(void *listener)
{
    while (!atomic_load(&is_over))
        descriptor_close(descriptor_accept(*(const int *)listener));
    return NULL;
}

static void a_child_has_no_connection_that_a_thread_is_accepting(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    pthread_t client, server;
    socklen_t size;

    (void)state;
    forks_maker(); /* as a group or store does when it is made */
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "ct-forks-%d", (int)getpid());
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 100), 0);
    assert_int_equal(pthread_create(&client, NULL, connects, &address), 0);
    assert_int_equal(pthread_create(&server, NULL, accepts, &listener), 0);
    for (int i = 0, status; i < 1000; i++) {
        const pid_t child = fork();

        for (int fd = 0; child == 0 && fd < 64; fd++) {
            struct sockaddr_un own = { .sun_family = AF_UNSPEC };

            size = sizeof own;
            if (fd != listener && getsockname(fd, (struct sockaddr *)&own, &size) == 0
                && size == sizeof own && memcmp(&own, &address, sizeof own) == 0)
                _exit(1); /* an accepted connection has the listener's name */
        }
        if (child == 0)
            _exit(0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&is_over, 1);
    pthread_join(server, NULL);
    close(listener); /* wakes the client */
    pthread_join(client, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_none_of_its_parents_descriptors),
        cmocka_unit_test(a_childs_life_keeps_no_port_in_use),
        cmocka_unit_test(the_end_of_a_rank_is_seen_though_a_child_of_it_lives),
        cmocka_unit_test(a_childs_calls_are_refused_and_change_nothing_for_its_parent),
        cmocka_unit_test(a_process_and_its_child_may_both_init_after_the_fork),
        cmocka_unit_test(a_rank_may_spawn_a_world_beside_its_own),
        cmocka_unit_test(a_child_has_no_connection_that_a_thread_is_accepting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
