/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_memory.c - a device buffer without a GPU backend is a sentence, not a crash.
 *
 * Runs against tests/fake/: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <string.h>

#include "tests/cuda/device.h"

static void host_memory_is_nobodys_before_a_driver_is_loaded(void **state)
{
    int x = 3;

    (void)state;
    assert_int_equal(ct_init_process_group(NULL), CT_OK);
    assert_int_equal(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(x, 3);
    assert_int_equal(ct_destroy_process_group(CT_WORLD), CT_OK);
}

static void a_device_buffer_is_refused_with_a_sentence(void **state)
{
    void *memory;
    int x = 3;

    (void)state;
    assert_true(device_open(0));
    memory = device_alloc(64, 0);
    assert_non_null(memory);
    assert_int_equal(ct_init_process_group(NULL), CT_OK);
    assert_int_equal(ct_all_reduce(CT_WORLD, memory, &x, 1, CT_I32, CT_SUM, NULL),
                     CT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ct_last_error(), "device memory"));
    assert_int_equal(ct_broadcast(CT_WORLD, memory, 1, CT_I32, 0, NULL), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(ct_destroy_process_group(CT_WORLD), CT_OK);
    device_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_is_nobodys_before_a_driver_is_loaded),
        cmocka_unit_test(a_device_buffer_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
