/* SPDX-License-Identifier: Apache-2.0 */
/* stream_hold.c - a stream that stands still until the host lets it go.
 *
 * The stream waits for a word in host memory that the GPU sees (stream_flag.c), and behind that
 * writes to it that it has passed.  So letting go is one store, by any thread, whatever the
 * driver is busy with; and the word is known to be free again.
 *
 * What makes the driver wait for all that runs would wait for such a stream, too, and for one that
 * waits for other ranks.  So it is only done while none does, of any GPU of this process:
 * gpu_may_wait().
 *
 * Words lie in a page for each GPU, kept as long as the process. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/error.h"

/* Waits of one GPU's streams at one time.  A stream takes some 1,000 things; who enqueues one more
 * waits within the driver, and as long as it does so nobody of the process may be able to launch
 * anything: the very call that the stream stands still for neither.  So they must all fit, and what
 * the program enqueues between them. */
enum { WORDS = 128 };

/* A stream goes on when its word is GO or more: the comparison is that of whole numbers. */
enum { FREE, HELD, GO, PASSED };

struct hold_words {
    _Atomic uint32_t word[WORDS];
    unsigned next; /* where to look first */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all GPUs' words, and of this: */
static int calls_in_streams;                             /* cuda_call_enters_stream() */

/* The lock is held.  To get such memory may mean to wait for all that runs. */
static ct_status make_words(struct device *gpu)
{
    struct hold_words *words = NULL;
    const CUresult result = gpu->driver->cuMemAllocHost((void **)&words, sizeof *words);

    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "getting memory that the GPU and the host see");
    for (int i = 0; i < WORDS; i++)
        atomic_init(&words->word[i], FREE);
    words->next = 0;
    gpu->hold_words = words;
    return CT_OK;
}

/* The lock is held.  NULL: all are in use. */
static _Atomic uint32_t *take_word(struct hold_words *words)
{
    for (int looks = 0; looks < WORDS; looks++) {
        _Atomic uint32_t *word = &words->word[words->next++ % WORDS];
        const uint32_t is = atomic_load_explicit(word, memory_order_acquire);

        if (is != FREE && is != PASSED)
            continue;
        atomic_store_explicit(word, HELD, memory_order_relaxed);
        return word;
    }
    return NULL;
}

/* The lock is held.  Streams that stand still. */
static int holds(void)
{
    int held = 0;

    for (const struct device *gpu = gpu_first(); gpu; gpu = gpu->next)
        for (int i = 0; i < WORDS && gpu->hold_words; i++)
            held += atomic_load(&gpu->hold_words->word[i]) == HELD;
    return held;
}

void gpu_prepare_holds(struct device *gpu)
{
    pthread_mutex_lock(&lock);
    make_words(gpu);
    pthread_mutex_unlock(&lock);
}

int gpu_may_wait(void)
{
    pthread_mutex_lock(&lock);
    if (calls_in_streams == 0 && !holds())
        return 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

void gpu_has_waited(void)
{
    pthread_mutex_unlock(&lock);
}

static void count_calls(int more)
{
    pthread_mutex_lock(&lock);
    calls_in_streams += more;
    pthread_mutex_unlock(&lock);
}

void cuda_call_enters_stream(void)
{
    count_calls(1);
}

void cuda_call_leaves_stream(void)
{
    count_calls(-1);
}

ct_status gpu_refuse_to_wait(void)
{
    return ct_fail(CT_ERR_UNSUPPORTED, "a stream waits for the host or for other ranks, and the "
                                       "driver might wait for it");
}

static ct_status get_word(struct device *gpu, _Atomic uint32_t **word)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    if (!gpu->hold_words)
        status = calls_in_streams > 0 || holds() ? gpu_refuse_to_wait() : make_words(gpu);
    *word = status == CT_OK ? take_word(gpu->hold_words) : NULL;
    pthread_mutex_unlock(&lock);
    if (status == CT_OK && !*word)
        status =
            ct_fail(CT_ERR_UNSUPPORTED, "%d waits of streams are under way on this GPU", WORDS);
    return status;
}

ct_status cuda_hold(struct device *gpu, void *stream, void **hold)
{
    ct_status status = cuda_gpu_use(gpu); /* NULL is the default stream of the current context */
    _Atomic uint32_t *word;

    if (status == CT_OK)
        status = gpu_refuse_capture(gpu, stream);
    if (status == CT_OK) {
        gpu_close_unused(gpu);
        status = get_word(gpu, &word);
    }
    if (status != CT_OK)
        return status;
    *hold = (void *)word;
    status = cuda_words(gpu, stream,
                        (const struct word_op[]){ { word, GO, 1 }, { word, PASSED, 0 } }, 2);
    if (status != CT_OK)
        atomic_store(word, FREE);
    return status;
}

/* What the call has done is there before the stream goes on. */
void cuda_let_go(void *hold)
{
    atomic_store_explicit((_Atomic uint32_t *)hold, GO, memory_order_release);
}
