/* SPDX-License-Identifier: Apache-2.0 */
/* embed.S - the files of `ctctl new` as texts inside ctctl (launcher/ctctl/new.c).  The
 * assembler is given their folder. */
#define TEXT(name, file)   \
    .global name;          \
    .hidden name;          \
name:                      \
    .incbin file;          \
    .byte 0

    .section .rodata
    TEXT(template_main, "main.c")
    TEXT(template_cmake, "CMakeLists.txt")
    TEXT(template_readme, "README.md")

    .section .note.GNU-stack, "", %progbits
