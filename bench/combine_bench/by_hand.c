/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand.c - loops in AVX-512 or AVX2 intrinsics; plain ones elsewhere. */
#include <stdint.h>
#include <string.h>

#include "bench/combine_bench/by_hand.h"

/* Where the sum of what was read goes, lest the compiler leave the reading out. */
volatile uint64_t by_hand_sum;

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static void add_avx512(float *c, const float *a, const float *b,
                                                          size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        for (size_t j = i; j < i + 64; j += 16)
            _mm512_storeu_ps(c + j, _mm512_add_ps(_mm512_loadu_ps(a + j), _mm512_loadu_ps(b + j)));
}

__attribute__((target("avx2"))) static void add_avx2(float *c, const float *a, const float *b,
                                                     size_t n)
{
    for (size_t i = 0; i < n; i += 32)
        for (size_t j = i; j < i + 32; j += 8)
            _mm256_storeu_ps(c + j, _mm256_add_ps(_mm256_loadu_ps(a + j), _mm256_loadu_ps(b + j)));
}

__attribute__((target("avx2"))) static void read_avx2(const char *from, size_t bytes)
{
    __m256i sum[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                       _mm256_setzero_si256() };

    for (size_t i = 0; i < bytes; i += sizeof sum)
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm256_add_epi64(sum[j], _mm256_loadu_si256((const __m256i *)(from + i) + j));
    sum[0] = _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]), _mm256_add_epi64(sum[2], sum[3]));
    by_hand_sum += (uint64_t)_mm256_extract_epi64(sum[0], 0);
}
#endif

void by_hand_add(void *to, const void *left, const void *right, size_t bytes)
{
    float *const c = to;
    const float *const a = left, *const b = right;
    const size_t n = bytes / sizeof *c;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        add_avx512(c, a, b, n);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(c, a, b, n);
        return;
    }
#endif
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

void by_hand_read(const void *from, size_t bytes)
{
    const uint64_t *const words = from;
    uint64_t sum = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        read_avx2(from, bytes);
        return;
    }
#endif
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        sum += words[i];
    by_hand_sum += sum;
}
