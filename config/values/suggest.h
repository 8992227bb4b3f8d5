/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - the existing word that is nearest to a misspelt one. */
#ifndef CONFIG_VALUES_SUGGEST_H
#define CONFIG_VALUES_SUGGEST_H

struct suggestion {
    const char *word; /* the nearest so far; NULL: none is near enough */
    int distance;
};

/* Compares with one existing word; 1 if it is the nearest so far.  Case does not matter, nor do '_'
 * and '-'. */
int suggest(struct suggestion *best, const char *typed, const char *word);

#endif
