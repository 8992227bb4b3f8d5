/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_HELLO_H
#define RUNTIME_HELLO_H

#include <stdint.h>

/* The first bytes on a connection between peers, from the one that opened it. */
#define HELLO_MAGIC 0x32746863u /* "cht2" */

struct hello {
    uint32_t magic;
    int32_t from, to; /* ranks in the mesh */
    int32_t second;   /* 1: beside another one, for what is large (second_link.c) */
    unsigned char token[16];
};

#endif
