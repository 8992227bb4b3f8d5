/* SPDX-License-Identifier: Apache-2.0 */
/* stream SECONDS - messages of 1,000 bytes from rank 0 to rank 1 for so long; says when one fails.
 */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 1000 }; /* on one connection, where all bytes of it go one way */

static long seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

int main(int argc, char **argv)
{
    static unsigned char data[BYTES];
    ct_status status = ct_init_process_group(NULL);
    const long begun = seconds(), end = begun + (argc > 1 ? atol(argv[1]) : 1);
    int sent = 0;

    if (status != CT_OK || ct_set_timeout(NULL, 60000) != CT_OK)
        return printf("init: %s\n", ct_last_error()), 2;
    while (status == CT_OK && data[0] == 0) {
        data[0] = ct_rank(NULL) == 0 && seconds() >= end; /* the last one */
        status = ct_rank(NULL) == 0 ? ct_send(NULL, data, BYTES, CT_U8, 1, 0)
                                    : ct_recv(NULL, data, BYTES, CT_U8, 0, 0, NULL);
        if (sent++ == 0 && printf("they flow\n"))
            fflush(stdout);
    }
    if (status == CT_OK)
        return ct_destroy_process_group(CT_WORLD) != CT_OK;
    printf("after %ld s: %s\n", seconds() - begun, ct_last_error());
    fflush(stdout);
    _Exit(1);
}
