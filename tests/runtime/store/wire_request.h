/* SPDX-License-Identifier: Apache-2.0 */
/* wire_request.h - requests of PyTorch's store protocol, put together byte by byte.  The including
 * test defines WIRE_BYTES. */
#ifndef TESTS_RUNTIME_STORE_WIRE_REQUEST_H
#define TESTS_RUNTIME_STORE_WIRE_REQUEST_H

#include <stdint.h>
#include <string.h>

struct store_wire {
    unsigned char bytes[WIRE_BYTES];
    size_t size;
};

static void u8(struct store_wire *w, uint8_t value)
{
    w->bytes[w->size++] = value;
}

static void u64(struct store_wire *w, uint64_t value)
{
    memcpy(w->bytes + w->size, &value, sizeof value);
    w->size += sizeof value;
}

static void blob(struct store_wire *w, const char *text)
{
    u64(w, strlen(text));
    memcpy(w->bytes + w->size, text, strlen(text));
    w->size += strlen(text);
}

#endif
