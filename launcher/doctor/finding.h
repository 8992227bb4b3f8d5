/* SPDX-License-Identifier: Apache-2.0 */
/* finding.h - what a check found out. */
#ifndef LAUNCHER_DOCTOR_FINDING_H
#define LAUNCHER_DOCTOR_FINDING_H

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL, LEVELS };

extern const char *const level_words[LEVELS];
enum level level_of_word(const char *word); /* of another word: LEVEL_OK */

struct finding {
    enum level level;
    const char *check;  /* its name: "nofile" */
    const char *text;   /* a sentence; of one that is ok the figure, or "" */
    const char *remedy; /* "": it is ok */
};

#endif
