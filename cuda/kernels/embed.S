/* SPDX-License-Identifier: Apache-2.0 */
/* embed.S - the compiled kernels, inside libct.  KERNELS: the file that nvcc made; without it
 * there are none. */
    .section .rodata
    .global cuda_kernels
    .hidden cuda_kernels
    .balign 16
cuda_kernels:
#ifdef KERNELS
    .incbin KERNELS
#endif
cuda_kernels_end:
    .global cuda_kernels_bytes
    .hidden cuda_kernels_bytes
    .balign 8
cuda_kernels_bytes:
    .quad cuda_kernels_end - cuda_kernels

    .section .note.GNU-stack, "", %progbits
