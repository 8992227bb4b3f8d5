/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_library.c - the names in a program's DT_NEEDED.  Only the program's own: the libraries that
 * its libraries need would have to be looked for as the dynamic linker does it, and the compilers'
 * wrappers (mpicc) name MPI in each program.  A file may hold anything, so little of it is read. */
#include "launcher/pmi/mpi_library.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define HEADERS 64   /* program headers that are looked at */
#define ENTRIES 1024 /* of the dynamic section */

struct image {
    int fd;
    Elf64_Phdr parts[HEADERS];
    int count;
};

/* An address in memory -> the offset in the file; -1: it is not in the file. */
static off_t offset_of(const struct image *image, uint64_t address)
{
    for (int i = 0; i < image->count; i++) {
        const Elf64_Phdr *part = &image->parts[i];

        if (part->p_type == PT_LOAD && address >= part->p_vaddr
            && address - part->p_vaddr < part->p_filesz)
            return (off_t)(address - part->p_vaddr + part->p_offset);
    }
    return -1;
}

static enum mpi_library library_named(const char *name)
{
    static const struct {
        const char *prefix;
        enum mpi_library library;
    } known[] = {
        { "libmpi.so.12", MPI_LIBRARY_MPICH },       { "libmpich.so.12", MPI_LIBRARY_MPICH },
        { "libmpi_abi.so.", MPI_LIBRARY_MPICH },     { "libmpicxx.so.12", MPI_LIBRARY_MPICH },
        { "libmpifort.so.12", MPI_LIBRARY_MPICH },   { "libmpichcxx.so.12", MPI_LIBRARY_MPICH },
        { "libmpichfort.so.12", MPI_LIBRARY_MPICH }, { "libmpi_ilp64.so.4", MPI_LIBRARY_MPICH },
        { "libmpi.so.20", MPI_LIBRARY_OPEN },        { "libmpi.so.40", MPI_LIBRARY_OPEN },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].prefix, strlen(known[i].prefix)))
            return known[i].library;
    return MPI_LIBRARY_NONE;
}

/* Its name is at that address. */
static enum mpi_library library_at(const struct image *image, uint64_t address)
{
    const off_t at = offset_of(image, address);
    char name[64] = "";

    if (at < 0 || pread(image->fd, name, sizeof name - 1, at) <= 0)
        return MPI_LIBRARY_NONE;
    return library_named(name);
}

static enum mpi_library library_in(const struct image *image, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn entries[ENTRIES];
    const ssize_t got = pread(image->fd, entries, sizeof entries, (off_t)dynamic->p_offset);
    const size_t count = got > 0 ? (size_t)got / sizeof *entries : 0;
    enum mpi_library found = MPI_LIBRARY_NONE;
    uint64_t names = 0;

    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_STRTAB)
            names = entries[i].d_un.d_ptr;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL && found == MPI_LIBRARY_NONE; i++)
        if (entries[i].d_tag == DT_NEEDED)
            found = library_at(image, names + entries[i].d_un.d_val);
    return found;
}

static enum mpi_library library_of_file(int fd)
{
    struct image image = { .fd = fd };
    Elf64_Ehdr head;

    if (pread(fd, &head, sizeof head, 0) != sizeof head
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64
        || head.e_phentsize != sizeof(Elf64_Phdr))
        return MPI_LIBRARY_NONE;
    while (image.count < head.e_phnum && image.count < HEADERS) {
        const off_t at = (off_t)head.e_phoff + image.count * (off_t)sizeof(Elf64_Phdr);

        if (pread(fd, &image.parts[image.count], sizeof(Elf64_Phdr), at) != sizeof(Elf64_Phdr))
            break;
        image.count++;
    }
    for (int i = 0; i < image.count; i++)
        if (image.parts[i].p_type == PT_DYNAMIC)
            return library_in(&image, &image.parts[i]);
    return MPI_LIBRARY_NONE;
}

enum mpi_library mpi_library_of(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum mpi_library found;

    if (fd < 0)
        return MPI_LIBRARY_NONE;
    found = library_of_file(fd);
    close(fd);
    return found;
}
