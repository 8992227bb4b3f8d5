/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - the word that a misspelt one was meant to be. */
#ifndef CONFIG_VALUES_SUGGEST_H
#define CONFIG_VALUES_SUGGEST_H

struct suggestion {
    const char *word; /* the nearest so far; NULL: none is near enough */
    int distance;
};

/* Offers one word of those that exist; 1 if it is the nearest so far.  Capitals are small letters
 * here, and '_' is '-'. */
int suggest(struct suggestion *best, const char *typed, const char *word);

#endif
