/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_hostile.c - what a real driver may do, and this one does only where a setting says so:
 * keep its lock while it waits for the device, and do late what may come in any order. */
#include "tests/fake/libcuda.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int fake_setting_is(const char *name, const char *value)
{
    const char *is = getenv(name);

    return is && !strcmp(is, value);
}

/* ---- The driver's lock ------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int is_kept;
static pthread_t keeper;

/* The lock is held. */
static void wait_until_free(void)
{
    while (is_kept && !pthread_equal(keeper, pthread_self()))
        pthread_cond_wait(&released, &lock);
}

void fake_wait_for_driver(void)
{
    pthread_mutex_lock(&lock);
    wait_until_free();
    pthread_mutex_unlock(&lock);
}

/* To a test, by a file. */
static void say_that_it_waits(void)
{
    const char *const path = getenv("FAKE_CUDA_LOCK_SAYS");
    const int file = path ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;

    if (file >= 0)
        close(file);
}

int fake_keep_driver(void)
{
    int keeps = fake_setting_is("FAKE_CUDA_LOCK", "kept");

    if (!keeps)
        return 0;
    pthread_mutex_lock(&lock);
    wait_until_free();
    keeps = !is_kept; /* else a call within the one that keeps it */
    is_kept = 1;
    keeper = pthread_self();
    if (keeps && fake_waits_for_words() > 0)
        say_that_it_waits();
    pthread_mutex_unlock(&lock);
    return keeps;
}

void fake_release_driver(int keeps)
{
    if (!keeps)
        return;
    pthread_mutex_lock(&lock);
    is_kept = 0;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

void fake_wait_for_words(void)
{
    const struct timespec nap = { 0, 100000 };

    while (fake_waits_for_words() > 0)
        nanosleep(&nap, NULL);
}

/* ---- Any order --------------------------------------------------------------- */

static _Atomic uint32_t random_state; /* 0: nothing is drawn */

void fake_seed(uint32_t seed)
{
    atomic_store(&random_state, seed ? seed * 2654435761u | 1u : 0);
}

unsigned fake_draw(unsigned below)
{
    uint32_t x = atomic_load(&random_state);

    if (x == 0)
        return 0;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    atomic_store(&random_state, x);
    return x % below;
}
