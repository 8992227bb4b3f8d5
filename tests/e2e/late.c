/* SPDX-License-Identifier: Apache-2.0 */
/* late - rank 1 never comes to the second barrier; the others give up, and say why. */
#include <ct.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    ct_status status;

    if (ct_init_process_group(NULL) != CT_OK || ct_barrier(NULL, NULL) != CT_OK)
        return 1;
    if (ct_rank(NULL) == 1) {
        for (int i = 0; i < 500 && ct_set_timeout(NULL, 100) == CT_OK; i++)
            usleep(1000);
    } else {
        ct_set_next_timeout(NULL, 100);
        status = ct_barrier(NULL, NULL);
        printf("rank %d: %s: %s\n", ct_rank(NULL), ct_strerror(status), ct_last_error());
    }
    ct_destroy_process_group(CT_WORLD);
    return 0;
}
