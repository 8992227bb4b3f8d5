/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_memory.c - whose a pointer is, before and after there is a driver.
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

/* The driver comes after the group: a buffer is looked at when a call is made. */
static void device_memory_is_known_as_soon_as_there_is_a_driver(void **state)
{
    void *memory;
    int x = 3, y = 0;

    (void)state;
    assert_int_equal(ct_init_process_group(NULL), CT_OK);
    assert_int_equal(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_true(device_open(0));
    memory = device_alloc(sizeof x, 1);
    assert_non_null(memory);
    assert_int_equal(ct_all_reduce(CT_WORLD, memory, memory, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(ct_all_reduce(CT_WORLD, memory, &x, 1, CT_I32, CT_SUM, NULL), CT_ERR_INVALID);
    assert_non_null(strstr(ct_last_error(), "device memory"));
    assert_int_equal(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(device.cuMemcpyDtoH(&y, (CUdeviceptr)(uintptr_t)memory, sizeof y),
                     CUDA_SUCCESS);
    assert_true(x == 3 && y == 0x01010101);
    assert_int_equal(ct_destroy_process_group(CT_WORLD), CT_OK);
    device_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_is_nobodys_before_a_driver_is_loaded),
        cmocka_unit_test(device_memory_is_known_as_soon_as_there_is_a_driver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
