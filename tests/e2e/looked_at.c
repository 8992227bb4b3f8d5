/* SPDX-License-Identifier: Apache-2.0 */
/* looked_at.c - 7 all-reduces of 1000 f32 and a line; then rank argv[1] (-1: none) stays away from
 * the next one until the file argv[2] is there (argv[2]1 after a restart), and the others wait for
 * it.  In the first start rank argv[3] exits with 3 when the file is there. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static float data[1000];
    char file[1000];
    int rank;

    if (argc < 4 || ct_init_process_group(NULL) != CT_OK)
        return 1;
    rank = ct_rank(CT_WORLD);
    snprintf(file, sizeof file, "%s%s", argv[2], ct_restart_count() > 0 ? "1" : "");
    for (int i = 0; i < 7; i++)
        if (ct_all_reduce(CT_WORLD, data, data, 1000, CT_F32, CT_SUM, NULL) != CT_OK)
            return 1;
    printf("\033[1mrank %d\033[0m\thas <b>begun</b> & \xff waits\n", rank);
    fflush(stdout);
    fprintf(stderr, "to stderr\n");
    while ((atoi(argv[1]) < 0 || rank == atoi(argv[1])) && access(file, F_OK) != 0)
        usleep(10000);
    if (rank == atoi(argv[3]) && ct_restart_count() == 0)
        return 3;
    if (ct_barrier(CT_WORLD, NULL) != CT_OK)
        return 1;
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
