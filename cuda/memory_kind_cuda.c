/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kind_cuda.c - the row of CUDA in the table of the kinds of memory
 * (runtime/device/memory_kind.h). */
#include "cuda/cuda.h"

extern const struct space space_cuda;

const struct space space_cuda = { .name = "cuda",
                                  .is_there = cuda_is_there,
                                  .device_of = cuda_gpu_of,
                                  .enter = cuda_enter,
                                  .leave = cuda_leave,
                                  .current = cuda_gpu_current,
                                  .id = cuda_gpu_id,
                                  .capture_of = cuda_capture_of,
                                  .mark = cuda_mark,
                                  .wait_for = cuda_wait_for,
                                  .forget = cuda_forget,
                                  .flag_ops = cuda_flag_ops,
                                  .try_flag = cuda_try_flag,
                                  .spoil = cuda_spoil,
                                  .close_gate = cuda_close_gate,
                                  .open_gate = cuda_open_gate,
                                  .begin_limit = cuda_begin_limit,
                                  .set_limit = cuda_set_limit,
                                  .fail_late = cuda_fail_late,
                                  .end_limit = cuda_end_limit,
                                  .call_enters_stream = cuda_call_enters_stream,
                                  .call_leaves_stream = cuda_call_leaves_stream,
                                  .to_host = cuda_to_host,
                                  .from_host = cuda_from_host,
                                  .begin_copy = cuda_begin_copy,
                                  .mark_copies = cuda_mark_copies,
                                  .end_copies = cuda_end_copies,
                                  .register_host = cuda_register_host,
                                  .unregister_host = cuda_unregister_host,
                                  .alloc = cuda_alloc,
                                  .alloc_now = cuda_alloc_now,
                                  .release = cuda_release,
                                  .test_pattern = cuda_test_pattern,
                                  .can_give = cuda_is_exportable,
                                  .give = cuda_export,
                                  .take = cuda_import,
                                  .put = cuda_put,
                                  .fold = cuda_fold,
#ifdef CT_WITH_NCCL
                                  .comm_library = &comm_library_nccl,
#endif
                                  .finish = cuda_finish };
