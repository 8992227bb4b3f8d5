/* SPDX-License-Identifier: Apache-2.0 */
/* differs exits|again|late - the last rank's call differs from the others'.  Each prints what its
 * call said, and ends at once; or first makes a barrier, which must say the same.  late: rank 0
 * begins its call when the others know, and each rank ends with code 1. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    float in[8] = { 0 }, out[64];
    ct_status status, then;

    if (argc != 2 || ct_init_process_group(NULL) != CT_OK || ct_barrier(NULL, NULL) != CT_OK)
        return 2;
    if (!strcmp(argv[1], "late") && ct_rank(NULL) == 0)
        usleep(300000);
    if (ct_rank(NULL) < ct_size(NULL) - 1)
        status = ct_all_reduce(NULL, in, out, 5, CT_F32, CT_SUM, NULL);
    else
        status = ct_all_gather(NULL, in, out, 4, CT_F32, NULL);
    printf("rank %d: %s: %s\n", ct_rank(NULL), ct_strerror(status), ct_last_error());
    fflush(stdout);
    if (!strcmp(argv[1], "exits"))
        _exit(0);
    if (!strcmp(argv[1], "late"))
        _exit(1);
    then = ct_barrier(NULL, NULL);
    if (then != status)
        printf("rank %d then: %s: %s\n", ct_rank(NULL), ct_strerror(then), ct_last_error());
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
