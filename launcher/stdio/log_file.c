/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.c - see log_file.h.  The file is opened with O_APPEND.  If another process empties the
 * file (logrotate's copytruncate), ctrun continues at the file's new start. */
#include "launcher/stdio/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/log.h"

int log_file_open(struct log_file *file, const char *path)
{
    *file = (struct log_file){ .fd = -1, .path = strdup(path) };
    if (file->path)
        file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (file->fd >= 0)
        return 0;
    log_line(LOG_ERROR, "cannot write to %s: %s", path, strerror(errno));
    return -1;
}

void log_file_write(struct log_file *file, const char *data, size_t size)
{
    while (size > 0 && file->fd >= 0) {
        const ssize_t wrote = write(file->fd, data, size);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            if (!file->complained)
                log_line(LOG_ERROR,
                         "cannot write to %s: %s; the workers continue, and the file lacks what "
                         "could not be written",
                         file->path, strerror(errno));
            file->complained = 1;
            return;
        }
        data += wrote;
        size -= (size_t)wrote;
    }
}

size_t log_file_tail(const struct log_file *file, char *data, size_t size)
{
    const int fd = file->path ? open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    ssize_t got = 0;

    if (fd < 0)
        return 0;
    if (lseek(fd, -(off_t)size, SEEK_END) < 0) /* the file is shorter than `size` */
        lseek(fd, 0, SEEK_SET);
    got = read(fd, data, size);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

void log_file_close(struct log_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

void log_file_free(struct log_file *file)
{
    if (file->path)
        log_file_close(file);
    free(file->path);
    *file = (struct log_file){ .fd = -1 };
}
