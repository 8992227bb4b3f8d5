/* SPDX-License-Identifier: Apache-2.0 */
/* late - rank 1 never comes to the second barrier; the others give up, and say why.  It lives until
 * they have, however long that takes. */
#include <ct.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int64_t who_gave_up(int one_more)
{
    int64_t sum = 0;

    return ct_store_add(ct_store_default(), "gave-up", one_more, &sum) == CT_OK ? sum : 2;
}

int main(void)
{
    ct_status status;

    if (ct_init_process_group(NULL) != CT_OK || ct_barrier(NULL, NULL) != CT_OK)
        return 1;
    if (ct_rank(NULL) == 1) {
        while (who_gave_up(0) < 2 && ct_set_timeout(NULL, 100) == CT_OK)
            usleep(1000);
    } else {
        ct_set_next_timeout(NULL, 1000);
        status = ct_barrier(NULL, NULL);
        printf("rank %d: %s: %s\n", ct_rank(NULL), ct_strerror(status), ct_last_error());
        for (int64_t done = who_gave_up(1); done < 2; done = who_gave_up(0))
            usleep(1000);
    }
    ct_destroy_process_group(CT_WORLD);
    return 0;
}
