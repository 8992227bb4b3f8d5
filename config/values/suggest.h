/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - finds the existing word that is nearest to a misspelt word. */
#ifndef CONFIG_VALUES_SUGGEST_H
#define CONFIG_VALUES_SUGGEST_H

struct suggestion {
    const char *word; /* the nearest word so far; NULL if no word is near enough */
    int distance;
};

/* Compares the typed text with one existing word.  If the word is the nearest so far, stores it in
 * *best and returns 1, and otherwise returns 0.  Upper and lower case are equal, and so are '_' and
 * '-'. */
int suggest(struct suggestion *best, const char *typed, const char *word);

#endif
