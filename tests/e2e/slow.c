/* SPDX-License-Identifier: Apache-2.0 */
/* slow.c - all-reduces for so many seconds, before each of which a rank sleeps: rank 1 for argv[2]
 * ms, the others for argv[3] ms.  Before each 40th call, rank 1 sleeps for argv[4] ms. */
#include <ct.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
    const char *const away_ms = argc > 4 ? argv[4] : "0";
    int goes_on = 1;

    if (argc < 4 || ct_init_process_group(NULL) != CT_OK)
        return 1;
    for (int call = 1; goes_on; call++) {
        usleep(1000u * (unsigned)atoi(argv[ct_rank(CT_WORLD) == 1 ? 2 : 3]));
        if (call % 40 == 0 && ct_rank(CT_WORLD) == 1)
            usleep(1000u * (unsigned)atoi(away_ms));
        goes_on = time(NULL) < end;
        if (ct_all_reduce(CT_WORLD, &goes_on, &goes_on, 1, CT_I32, CT_MIN, NULL) != CT_OK)
            return 1;
    }
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
