/* SPDX-License-Identifier: Apache-2.0 */
/* speaks.c - sends words that can be searched for on the wire: "word-of-the-group" by a broadcast
 * from each rank in turn, "word-of-the-store" as a value. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(char *text, size_t size, const char *word)
{
    memset(text, 0, size);
    for (size_t at = 0; at + strlen(word) < size; at += strlen(word))
        strcpy(text + at, word);
}

static ct_status speak(void)
{
    static char said[100000], heard[sizeof said];
    const char *generation = getenv("CT_GENERATION");
    void *value = NULL;
    size_t bytes = 0;
    ct_status status = ct_init_process_group(NULL);

    fill(said, sizeof said, "word-of-the-group ");
    for (int root = 0; root < ct_size(NULL) && status == CT_OK; root++) {
        memcpy(heard, said, root == ct_rank(NULL) ? sizeof said : 0);
        status = ct_broadcast(NULL, heard, sizeof heard, CT_U8, root, NULL);
        if (status == CT_OK && memcmp(heard, said, sizeof said) != 0) {
            fprintf(stderr, "other words were heard\n");
            exit(3);
        }
        memset(heard, 0, sizeof heard);
    }
    if (status == CT_OK && ct_rank(NULL) == ct_size(NULL) - 1)
        status = ct_store_set(ct_store_default(), "key", "word-of-the-store", 17);
    if (status == CT_OK)
        status = ct_store_get(ct_store_default(), "key", 10000, &value, &bytes);
    free(value);
    if (status == CT_OK)
        status = ct_barrier(NULL, NULL);
    if (status == CT_OK && ct_rank(NULL) == 0 && generation)
        printf("%s\n", generation);
    return status == CT_OK ? ct_destroy_process_group(NULL) : status;
}

int main(void)
{
    if (speak() == CT_OK)
        return 0;
    fprintf(stderr, "%s\n", ct_last_error());
    return 1;
}
