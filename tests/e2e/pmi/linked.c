/* SPDX-License-Identifier: Apache-2.0 */
/* linked.c - a program that is linked with an MPI, by the library's name: does ctrun serve it? */
#include <stdio.h>
#include <stdlib.h>

int MPI_Init(int *argc, char ***argv);

int main(int argc, char **argv)
{
    const char *fd = getenv("PMI_FD");

    MPI_Init(&argc, &argv);
    printf("%s\n", fd ? "PMI" : "no PMI");
    return 0;
}
