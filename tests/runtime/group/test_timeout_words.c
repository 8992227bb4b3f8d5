/* SPDX-License-Identifier: Apache-2.0 */
/* test_timeout_words.c - which ranks are reported as missing, by the control pages of three
 * ranks. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/monitor/flight_recorder.h"
#include "runtime/transport/mesh.h"

#define RANKS 3

struct scene {
    struct control_head *head;
    struct record records[RANKS];
    struct peer peers[RANKS];
    struct mesh mesh;
    int members[RANKS];
    ct_group group; /* as rank 0 sees it */
};

/* All three have begun call 1 of group 77. */
static struct scene *stage(void)
{
    static const struct signature first = { .seq = 1, .operation = OPERATION_BARRIER };
    struct scene *scene = calloc(1, sizeof *scene);
    void *memory = NULL;

    assert_non_null(scene);
    assert_int_equal(posix_memalign(&memory, CACHE_PAIR, control_bytes(RANKS, RANKS)), 0);
    scene->head = memset(memory, 0, control_bytes(RANKS, RANKS));
    scene->mesh = (struct mesh){ .size = RANKS, .peers = scene->peers };
    scene->mesh.control = (struct control){ .head = scene->head, .local = RANKS };
    for (int i = 0; i < RANKS; i++) {
        struct control control = { .own = control_rank_at(scene->head, i) };

        control.own->pid = 100 + i;
        scene->peers[i].worker = scene->members[i] = i;
        record_open(&scene->records[i], &control, 77, "world", i, RANKS);
        record_begin(&scene->records[i], &first, 0, NULL, clock_coarse_ns());
        record_end(&scene->records[i], 1, CONTROL_IDLE);
    }
    scene->group = (ct_group){ .mesh = &scene->mesh, .size = RANKS, .ranks = scene->members };
    scene->group.record = scene->records[0];
    return scene;
}

static void clear(struct scene *scene)
{
    free(scene->head);
    free(scene);
}

static void begins(struct scene *scene, int rank, uint64_t seq)
{
    const struct signature call = { .seq = seq, .operation = OPERATION_BARRIER };

    record_begin(&scene->records[rank], &call, 0, NULL, clock_coarse_ns());
}

static void who_has_not_begun_the_call_is_missing(void **state)
{
    struct scene *scene = stage();
    char text[400];

    (void)state;
    begins(scene, 0, 2);
    begins(scene, 2, 2);
    where_are_missing(&scene->group, 2, text, sizeof text);
    assert_non_null(strstr(text, "; rank 1 has called nothing on the group after barrier #1"));
    assert_null(strstr(text, "rank 2"));
    clear(scene);
}

/* Two have the same deadline, and the first is out of the program before the second looks. */
static void who_came_and_gave_up_and_left_is_not_missing(void **state)
{
    struct scene *scene = stage();
    char text[400];

    (void)state;
    begins(scene, 0, 2);
    begins(scene, 2, 2);
    record_close(&scene->records[2]);
    where_are_missing(&scene->group, 2, text, sizeof text);
    assert_non_null(strstr(text, "; rank 1 has called nothing on the group"));
    assert_null(strstr(text, "rank 2"));
    clear(scene);
}

static void who_left_before_the_call_is_missing(void **state)
{
    struct scene *scene = stage();
    char text[400];

    (void)state;
    begins(scene, 0, 2);
    begins(scene, 1, 2);
    record_close(&scene->records[2]);
    where_are_missing(&scene->group, 2, text, sizeof text);
    assert_string_equal(text, "; rank 2 has left the group or never created it");
    clear(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_not_begun_the_call_is_missing),
        cmocka_unit_test(who_came_and_gave_up_and_left_is_not_missing),
        cmocka_unit_test(who_left_before_the_call_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
