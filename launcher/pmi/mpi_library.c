/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_library.c - reads the library names in a program's DT_NEEDED.  It does not read which
 * libraries these libraries need, since it would have to find them as the dynamic linker does.
 * That is not necessary, since the compiler wrappers (mpicc) put MPI into each program's DT_NEEDED.
 * The file may contain anything, so only a limited number of bytes is read. */
#include "launcher/pmi/mpi_library.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define HEADERS 64   /* most program headers that are read */
#define ENTRIES 1024 /* most entries of the dynamic section that are read */

/* The type of a function that is called with the name of each library. */
typedef void visitor(void *arg, const char *name);

struct image {
    int fd;
    Elf64_Phdr parts[HEADERS];
    int count;
};

/* Turns an address in memory into an offset in the file; -1 if the file does not contain that
 * address. */
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

/* Reads the library name at that address and calls visit. */
static void visit_at(const struct image *image, uint64_t address, visitor *visit, void *arg)
{
    const off_t at = offset_of(image, address);
    char name[64] = "";

    if (at >= 0 && pread(image->fd, name, sizeof name - 1, at) > 0)
        visit(arg, name);
}

static void visit_dynamic(const struct image *image, const Elf64_Phdr *dynamic, visitor *visit,
                          void *arg)
{
    Elf64_Dyn entries[ENTRIES];
    const ssize_t got = pread(image->fd, entries, sizeof entries, (off_t)dynamic->p_offset);
    const size_t count = got > 0 ? (size_t)got / sizeof *entries : 0;
    uint64_t names = 0;

    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_STRTAB)
            names = entries[i].d_un.d_ptr;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_NEEDED)
            visit_at(image, names + entries[i].d_un.d_val, visit, arg);
}

static void visit_file(int fd, visitor *visit, void *arg)
{
    struct image image = { .fd = fd };
    Elf64_Ehdr head;

    if (pread(fd, &head, sizeof head, 0) != sizeof head
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64
        || head.e_phentsize != sizeof(Elf64_Phdr))
        return;
    while (image.count < head.e_phnum && image.count < HEADERS) {
        const off_t at = (off_t)head.e_phoff + image.count * (off_t)sizeof(Elf64_Phdr);

        if (pread(fd, &image.parts[image.count], sizeof(Elf64_Phdr), at) != sizeof(Elf64_Phdr))
            break;
        image.count++;
    }
    for (int i = 0; i < image.count; i++)
        if (image.parts[i].p_type == PT_DYNAMIC) {
            visit_dynamic(&image, &image.parts[i], visit, arg);
            return;
        }
}

static void visit_libraries(const char *path, visitor *visit, void *arg)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return;
    visit_file(fd, visit, arg);
    close(fd);
}

/* ---- Which MPI is it? ----------------------------------------------------------- */

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

static void take_first(void *arg, const char *name)
{
    enum mpi_library *found = arg;

    if (*found == MPI_LIBRARY_NONE)
        *found = library_named(name);
}

enum mpi_library mpi_library_of(const char *path)
{
    enum mpi_library found = MPI_LIBRARY_NONE;

    visit_libraries(path, take_first, &found);
    return found;
}

/* ---- Are there other libraries? ------------------------------------------------- */

struct others {
    int ranks; /* number of libraries that are libct or an MPI */
    int unknown;
};

static void count_others(void *arg, const char *name)
{
    static const char *const plain[] = { "libc.so.",     "libm.so.",      "libpthread.so.",
                                         "libdl.so.",    "librt.so.",     "ld-linux",
                                         "libgcc_s.so.", "libstdc++.so.", "libc++.so." };
    struct others *others = arg;

    if (!strncmp(name, "libct.so.", 9) || library_named(name) != MPI_LIBRARY_NONE) {
        others->ranks++;
        return;
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strncmp(name, plain[i], strlen(plain[i])))
            return;
    others->unknown++;
}

int is_plain_rank(const char *path)
{
    struct others others = { 0 };

    visit_libraries(path, count_others, &others);
    return others.ranks > 0 && others.unknown == 0;
}
