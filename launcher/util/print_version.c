/* SPDX-License-Identifier: Apache-2.0 */
/* print_version.c - prints what a report of a fault needs: version, commit, compiler, features. */
#include "launcher/util/print_version.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "launcher/util/commit.h"
#include "include/ct.h"
#include "runtime/net/libssl.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#define LIBC "glibc ", gnu_get_libc_version()
#else
#define LIBC "musl, linked in", "" /* scripts/static */
#endif

#ifdef CT_WITH_CUDA
#define KERNELS "yes"
#else
#define KERNELS "no"
#endif

void print_version(const char *program)
{
    struct utsname machine;

    printf("%s %s\n", program, CT_VERSION);
    printf("commit:       %s\n", CT_COMMIT);
    printf("compiler:     %s\n", COMPILER);
    if (uname(&machine) == 0)
        printf("system:       %s %s, %s\n", machine.sysname, machine.release, machine.machine);
    printf("libraries:    %s%s, libevent %s\n", LIBC, event_get_version());
    printf("CUDA kernels: %s\n", KERNELS);
    printf("encryption:   %s\n",
           libssl_load() == CT_OK ? "yes" : "no, since libssl.so.3 was not found");
}
