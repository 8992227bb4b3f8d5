/* SPDX-License-Identifier: Apache-2.0 */
/* closes.c - closes all descriptors that it does not know, as daemons do, and leaves the group.
 * With an argument it does so while a message is under way. */
#include <ct.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int value = 1, got = 0;
    ct_work *work;

    (void)argv;
    if (ct_init_process_group(NULL) != CT_OK || ct_barrier(CT_WORLD, NULL) != CT_OK)
        return 1;
    if (argc > 1)
        ct_irecv(CT_WORLD, &got, 1, CT_I32, 1 - ct_rank(CT_WORLD), 0, &work);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    ct_set_timeout(CT_WORLD, 1000);
    ct_all_reduce(CT_WORLD, &value, &value, 1, CT_I32, CT_SUM, NULL); /* fails, or not */
    ct_destroy_process_group(CT_WORLD);
    puts("left");
    return 0;
}
