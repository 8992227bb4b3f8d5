/* SPDX-License-Identifier: Apache-2.0 */
/* copy_streaming.c - a copy that leaves the caches as they are.
 *
 * An ordinary store fetches the line it will overwrite, and throws another one
 * out of the cache; a non-temporal one does neither, but only while whole lines
 * are written.  So the head up to the first line's start and the tail behind the
 * last whole line go by memcpy.  Such stores may become visible after later
 * ordinary ones: a fence ends the copy, so that a flag raised next is true. */
#include <stdint.h>
#include <string.h>

#include "runtime/combine.h"
#include "runtime/copy_streaming.h"

#if defined(__x86_64__)
#include <emmintrin.h>

enum { LINE = 64 };

void copy_streaming_part(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    const size_t head = -(uintptr_t)to % LINE;

    if (bytes < head + LINE) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE) {
        const __m128i *const in = (const __m128i *)from;
        __m128i *const out = (__m128i *)to;
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);

        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    memcpy(to, from, bytes);
}

void copy_streaming_end(void)
{
    _mm_sfence();
}

#else

void copy_streaming_part(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void copy_streaming_end(void)
{
}

#endif

void copy_streaming(void *dst, const void *src, size_t bytes)
{
    if (bytes == 0) /* nothing may come with NULL */
        return;
    copy_streaming_part(dst, src, bytes);
    copy_streaming_end();
}
