/* SPDX-License-Identifier: Apache-2.0 */
/* leaver.c - 60 receives, each by itself and then in a batch, from a rank that has destroyed the
 * group; says how long the slower of the two took.  ctrun --nproc-per-node=2 e2e_leaver */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ct.h>

enum { RECEIVES = 60 };

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", ct_rank(NULL), what, ct_last_error());
    exit(3);
}

static int says_why(ct_status status)
{
    return status == CT_ERR_PEER && strstr(ct_last_error(), "has destroyed the group");
}

static double receive_all(ct_group *group)
{
    ct_p2p ops[RECEIVES];
    int words[RECEIVES];
    double start = now_s(), each;

    for (int i = 0; i < RECEIVES; i++)
        must(says_why(ct_recv(group, &words[i], 1, CT_I32, 1, i, NULL)), "recv");
    each = now_s() - start;
    for (int i = 0; i < RECEIVES; i++)
        ops[i] = (ct_p2p){ CT_P2P_RECV, &words[i], 1, CT_I32, 1, i };
    start = now_s();
    must(says_why(ct_batch_isend_irecv(group, ops, RECEIVES, NULL)), "batch");
    return now_s() - start > each ? now_s() - start : each;
}

int main(void)
{
    const int both[] = { 0, 1 };
    ct_group *group;
    int word = 0;

    must(ct_init_process_group(NULL) == CT_OK, "init");
    must(ct_new_group(both, 2, &group) == CT_OK, "new_group");
    must(ct_barrier(group, NULL) == CT_OK, "barrier");
    if (ct_rank(NULL) == 1) {
        must(ct_destroy_process_group(group) == CT_OK, "destroy");
        must(ct_send(NULL, &word, 1, CT_I32, 0, 0) == CT_OK, "send");
    } else {
        must(ct_recv(NULL, &word, 1, CT_I32, 1, 0, NULL) == CT_OK, "recv");
        printf("%.0f ms\n", receive_all(group) * 1000);
    }
    must(ct_barrier(NULL, NULL) == CT_OK, "barrier");
    return ct_destroy_process_group(NULL) == CT_OK ? 0 : 1;
}
