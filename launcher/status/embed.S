/* SPDX-License-Identifier: Apache-2.0 */
/* embed.S - page.html as a text inside ctrun.  The assembler is given its folder. */
    .section .rodata
    .global status_page
    .hidden status_page
status_page:
    .incbin "page.html"
    .byte 0

    .section .note.GNU-stack, "", %progbits
