/* SPDX-License-Identifier: Apache-2.0 */
/* embed.S - the compiled kernels, inside libct.  KERNELS: the file that nvcc made; without it
 * there are none. */
    .section .rodata
    .global cuda_kernels
    .hidden cuda_kernels
    .global cuda_kernels_end
    .hidden cuda_kernels_end
    .balign 16
cuda_kernels:
#ifdef KERNELS
    .incbin KERNELS
#endif
cuda_kernels_end:
    .byte 0

    .section .note.GNU-stack, "", %progbits
