/* SPDX-License-Identifier: Apache-2.0 */
/* one_map.c - threads that map the same memory get the same addresses.
 *
 * ThreadSanitizer knows memory by its address.  Ranks as threads each map what they share,
 * so that what one writes and another reads are two places to it, and no race is ever seen. The
 * linker leads mmap() and munmap() here (--wrap): the second map of the same bytes is the first one
 * again, and ends with its last user. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);

struct map {
    struct map *next;
    dev_t device;
    ino_t inode;
    off_t offset;
    size_t bytes;
    void *at;
    int users;
};

static struct map *maps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct map *find(const struct stat *file, off_t offset, size_t bytes)
{
    for (struct map *m = maps; m; m = m->next)
        if (m->device == file->st_dev && m->inode == file->st_ino && m->offset == offset
            && m->bytes == bytes)
            return m;
    return NULL;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    struct stat file;
    struct map *m;

    if (at || fd < 0 || !(flags & MAP_SHARED) || !(protection & PROT_WRITE) || fstat(fd, &file) < 0)
        return __real_mmap(at, bytes, protection, flags, fd, offset);
    pthread_mutex_lock(&lock);
    m = find(&file, offset, bytes);
    if (!m && (m = calloc(1, sizeof *m))) {
        *m = (struct map){ maps, file.st_dev, file.st_ino, offset, bytes, NULL, 0 };
        m->at = __real_mmap(at, bytes, protection, flags, fd, offset);
        maps = m;
    }
    if (m)
        m->users++;
    pthread_mutex_unlock(&lock);
    return m ? m->at : MAP_FAILED;
}

int __wrap_munmap(void *at, size_t bytes)
{
    struct map **link = &maps, *m;
    int status = 0;

    pthread_mutex_lock(&lock);
    while (*link && ((*link)->at != at || (*link)->bytes != bytes))
        link = &(*link)->next;
    m = *link;
    if (m && --m->users == 0) {
        *link = m->next;
        status = __real_munmap(at, bytes);
        free(m);
    }
    pthread_mutex_unlock(&lock);
    return m ? status : __real_munmap(at, bytes);
}
