/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_HELLO_H
#define RUNTIME_HELLO_H

#include <stdint.h>

/* The first bytes on a connection between peers, from the one that opened it. */
#define HELLO_MAGIC 0x31746863u /* "cht1" */

struct hello {
    uint32_t magic;
    int32_t from, to; /* ranks in the mesh */
    unsigned char token[16];
};

#endif
