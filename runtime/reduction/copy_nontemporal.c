/* SPDX-License-Identifier: Apache-2.0 */
/* copy_nontemporal.c - copies memory with non-temporal stores, which bypass the caches.
 *
 * An ordinary store fetches the cache line that it overwrites, and evicts another line from the
 * cache.  A non-temporal store does neither, provided that the whole line is written.  So memcpy()
 * copies the bytes before the first whole line and after the last whole line.  Non-temporal stores
 * may become visible after later ordinary stores.  So the copy ends with a fence, and a flag that
 * is set after the copy becomes visible after the data. */
#include <stdint.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/reduction/combine_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64 };

static void lines_sse2(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
}

__attribute__((target("avx"))) static void lines_avx(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(from + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(from + i + 32));

        _mm256_stream_si256((__m256i *)(to + i), a);
        _mm256_stream_si256((__m256i *)(to + i + 32), b);
    }
}

void copy_streaming_part(void *dst, const void *src, size_t bytes)
{
    char *const to = dst;
    const char *const from = src;
    const size_t head = -(uintptr_t)to % LINE;
    const size_t lines = bytes > head ? (bytes - head) / LINE * LINE : 0;

    if (lines == 0) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    if (__builtin_cpu_supports("avx"))
        lines_avx(to + head, from + head, lines);
    else
        lines_sse2(to + head, from + head, lines);
    memcpy(to + head + lines, from + head + lines, bytes - head - lines);
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
    if (bytes == 0) /* then dst and src may be NULL */
        return;
    copy_streaming_part(dst, src, bytes);
    copy_streaming_end();
}
