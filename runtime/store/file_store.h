/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_STORE_FILE_STORE_H
#define RUNTIME_STORE_FILE_STORE_H

#include "runtime/util/error.h"

/* num_workers > 0: the file is removed when so many have closed it and nobody has it open. */
ct_status store_file_open(const char *path, int num_workers, int timeout_ms, ct_store **store);

#endif
