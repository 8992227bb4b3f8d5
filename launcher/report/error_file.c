/* SPDX-License-Identifier: Apache-2.0 */
/* error_file.c - reads and writes error files.  Any program may have written the file, so ctrun
 * checks its size, shape and numbers before it uses them. */
#include "launcher/report/error_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/json_writer.h"

#define LARGEST (1 << 20)
#define RAW 2048 /* most bytes that are shown of a file that was not parsed */

/* ---- jansson ---------------------------------------------------------------- */

/* Pointers to functions of jansson 2, with the types that jansson declares.  ctrun does not use
 * jansson's macros, such as json_decref and json_is_string, since macros access the members of
 * jansson's structs. */
struct json;
struct json_trouble { /* has the layout of jansson's json_error_t */
    int line, column, position;
    char source[80], text[160];
};

struct jansson {
    struct json *(*loadb)(const char *bytes, size_t size, size_t flags, struct json_trouble *error);
    struct json *(*get)(const struct json *object, const char *key); /* NULL if missing */
    const char *(*string)(const struct json *string);                /* NULL for another type */
    double (*number)(const struct json *number);                     /* 0 for another type */
    struct json *(*integer)(long long value);
    int (*set)(struct json *object, const char *key, struct json *value);
    char *(*dumps)(const struct json *json, size_t flags);
    void (*free)(struct json *json); /* json_delete(), for a value without other references */
};

static int open_jansson(struct jansson *j)
{
    void *const library = dlopen("libjansson.so.4", RTLD_NOW | RTLD_LOCAL); /* stays loaded */
    const struct {
        void *to;
        const char *name;
    } wanted[] = {
        { &j->loadb, "json_loadb" },         { &j->get, "json_object_get" },
        { &j->string, "json_string_value" }, { &j->number, "json_number_value" },
        { &j->integer, "json_integer" },     { &j->set, "json_object_set_new" },
        { &j->dumps, "json_dumps" },         { &j->free, "json_delete" },
    };

    for (size_t i = 0; library && i < sizeof wanted / sizeof *wanted; i++)
        if (!(*(void **)wanted[i].to = dlsym(library, wanted[i].name)))
            return -1;
    return library ? 0 : -1;
}

/* ---- Reading ---------------------------------------------------------------- */

/* Reads the file at `path` if it is a regular file, since ctrun might have to wait for a FIFO or a
 * device.  Returns 0, or -1 if there is no such file or it is empty or can't be read. */
static int error_slurp(struct error_json *error, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat file;
    ssize_t got = 0;

    if (fd < 0 || fstat(fd, &file) < 0 || file.st_size == 0 || !S_ISREG(file.st_mode)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    error->written = (double)file.st_mtim.tv_sec + (double)file.st_mtim.tv_nsec / 1e9;
    error->bytes = calloc(1, LARGEST + 2); /* a 0 follows the bytes */
    while (error->bytes && error->size <= LARGEST
           && (got = read(fd, error->bytes + error->size, LARGEST + 1 - error->size)) > 0)
        error->size += (size_t)got;
    close(fd);
    return error->bytes && got >= 0 ? 0 : -1;
}

static void cannot_read(struct error_json *error, int state, const char *why)
{
    const size_t size = error->size < RAW ? error->size : RAW;

    error->state = state;
    snprintf(error->why, sizeof error->why, "%s", why);
    if (state == ERROR_RAW)
        error->text = strndup(error->bytes, size);
}

static double seconds(const struct jansson *j, const struct json *value)
{
    const char *text = j->string(value);
    const double number = text ? strtod(text, NULL) : j->number(value);

    return isfinite(number) && number > 0 ? number : 0;
}

static void error_take(struct error_json *error, const struct jansson *j, const struct json *top)
{
    const struct json *const message = j->get(top, "message"), *extra;
    const char *text = j->string(message);

    if (!message) {
        cannot_read(error, ERROR_BROKEN, "it has no \"message\"");
        return;
    }
    error->state = ERROR_READ;
    error->timestamp = seconds(j, j->get(top, "timestamp"));
    if (!text) {
        extra = j->get(message, "extraInfo");
        error->structured = 1;
        error->timestamp = seconds(j, j->get(extra, "timestamp"));
        text = j->string(j->get(extra, "py_callstack"));
        if (!text || !*text)
            text = j->string(j->get(message, "message"));
    }
    if (text && *text)
        error->text = strdup(text);
}

void error_json_read(struct error_json *error, const char *path)
{
    struct json_trouble trouble = { 0 };
    struct jansson jansson;
    struct json *top;

    *error = (struct error_json){ .state = ERROR_ABSENT };
    if (!*path || error_slurp(error, path) < 0)
        return;
    if (error->size > LARGEST) {
        error->size = LARGEST;
        cannot_read(error, ERROR_BROKEN, "it is larger than 1 MiB");
    } else if (open_jansson(&jansson) < 0) {
        cannot_read(error, ERROR_RAW,
                    "libjansson.so.4 is missing (Debian: libjansson4), so this is the file itself");
    } else if (!(top = jansson.loadb(error->bytes, error->size, 0, &trouble))) {
        cannot_read(error, ERROR_BROKEN, trouble.text);
    } else {
        error_take(error, &jansson, top);
        jansson.free(top);
    }
}

void error_json_free(struct error_json *error)
{
    free(error->text);
    free(error->bytes);
    *error = (struct error_json){ .state = ERROR_ABSENT };
}

/* ---- Writing ---------------------------------------------------------------- */

/* Writes the data to a temporary file and renames that file to `to`, so that no reader sees half a
 * file.  Returns 0, or -1 with errno set. */
static int replace(const char *to, const char *data, size_t size)
{
    char path[PATH_MAX];
    int fd, saved;

    if ((size_t)snprintf(path, sizeof path, "%s.%d", to, (int)getpid()) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -1;
    while (size > 0) {
        const ssize_t wrote = write(fd, data, size);

        if (wrote < 0 && errno != EINTR)
            break;
        data += wrote > 0 ? wrote : 0;
        size -= wrote > 0 ? (size_t)wrote : 0;
    }
    saved = errno;
    if (close(fd) == 0 && size == 0 && rename(path, to) == 0)
        return 0;
    saved = size > 0 ? saved : errno;
    unlink(path);
    errno = saved;
    return -1;
}

/* Returns the JSON text of the error with the exit code added, which the caller frees.  Returns
 * NULL if the file must be copied unchanged. */
static char *with_exit_code(const struct error_json *error, int exit_code)
{
    struct jansson jansson;
    struct json *top;
    char *text = NULL;

    if (!error->structured || open_jansson(&jansson) < 0
        || !(top = jansson.loadb(error->bytes, error->size, 0, NULL)))
        return NULL;
    if (jansson.set(jansson.get(top, "message"), "errorCode", jansson.integer(exit_code)) == 0)
        text = jansson.dumps(top, 0);
    jansson.free(top);
    return text;
}

int error_json_copy(const struct error_json *error, const char *to, int exit_code)
{
    char *const text = with_exit_code(error, exit_code);
    const int status =
        text ? replace(to, text, strlen(text)) : replace(to, error->bytes, error->size);

    free(text);
    return status;
}

int error_json_write(const char *to, const char *message)
{
    struct text text = { 0 };
    struct json_text json = { .to = &text, .gap = " " };
    char now[32];
    int status;

    snprintf(now, sizeof now, "%lld", (long long)time(NULL));
    json_open(&json, NULL, '{');
    json_open(&json, "message", '{');
    json_string(&json, "message", message);
    json_open(&json, "extraInfo", '{');
    json_string(&json, "py_callstack", message);
    json_string(&json, "timestamp", now);
    json_close(&json, '}');
    json_close(&json, '}');
    json_close(&json, '}');
    status = text.used ? replace(to, text.data, text.used) : -1;
    free(text.data);
    return status;
}
