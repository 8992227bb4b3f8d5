/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the line begins with a carriage return and is erased with blanks.  By that ctrun
 * knows a worker's progress bar, and shows it in the last line of its own terminal. */
#include "bench/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/util/progress_line.h"

#define AGAIN_S 0.2 /* not more often */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ctrun's variable is about its pipe: standard error may be a file by now. */
static int find_room(void)
{
    const char *by_ctrun = getenv("CT_PROGRESS_ROOM");
    struct stat to;

    if (by_ctrun && fstat(STDERR_FILENO, &to) == 0 && S_ISFIFO(to.st_mode))
        return atoi(by_ctrun);
    return progress_room(STDERR_FILENO);
}

void progress_begin(struct progress *progress, const char *program, int of)
{
    const double now = now_s();

    *progress = (struct progress){
        .program = program, .room = find_room(), .of = of, .began = now, .shown = now
    };
}

static void show(struct progress *progress, const char *text)
{
    char line[400];
    const int most = progress->room < 200 ? progress->room : 200;
    const int length = (int)strnlen(text, (size_t)most);
    const int blanks = progress->stands > length ? progress->stands - length : 0;

    fflush(stdout); /* or older lines would come later, and over it */
    snprintf(line, sizeof line, "\r%.*s%*s%s", length, text, blanks, "", length ? "" : "\r");
    fputs(line, stderr);
    fflush(stderr);
    progress->stands = length;
}

void progress_case(struct progress *progress, const char *format, ...)
{
    const double now = now_s(), spent = now - progress->began;
    char what[200], text[400], to_go[40] = "";
    const int done = progress->done++;
    va_list args;

    if (progress->room <= 0 || spent < 1 || now - progress->shown < AGAIN_S)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (done > 0)
        snprintf(to_go, sizeof to_go, ", about %.0f s to go", spent / done * (progress->of - done));
    snprintf(text, sizeof text, "%s: %d of %d, %.0f s%s: %s", progress->program, done + 1,
             progress->of, spent, to_go, what);
    progress->shown = now;
    show(progress, text);
}

void progress_wipe(struct progress *progress)
{
    if (progress->stands > 0)
        show(progress, "");
}
