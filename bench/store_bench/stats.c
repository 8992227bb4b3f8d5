/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - see stats.h. */
#include "bench/store_bench/servers.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

_Noreturn void die(const char *what)
{
    fprintf(stderr, "store_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

void *get_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (!memory)
        die("memory");
    return memory;
}

void *get_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        die("shared memory");
    return memory;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, ascending);
    return n ? values[(size_t)(q * (double)(n - 1) + 0.5)] : 0;
}

void figure(const struct server *server, const char *unit, const char *value, const char *format,
            ...)
{
    va_list args;

    printf("case=");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" unit=%s server=%s value=%s\n", unit, server->name, value);
    fflush(stdout);
}

const char *number(double value)
{
    static char text[4][32];
    static int at;

    at = (at + 1) % 4;
    snprintf(text[at], sizeof text[at], "%.*f", value < 100 ? 2 : value < 1000 ? 1 : 0, value);
    return text[at];
}

const char *verdict(int error, double value)
{
    static char over[32];

    snprintf(over, sizeof over, ">%d", LIMIT_SECONDS * 1000);
    return !error ? number(value) : error == ETIMEDOUT ? over : "refused";
}
