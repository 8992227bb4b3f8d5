/* SPDX-License-Identifier: Apache-2.0 */
/* test_interpreter.c - the interpreter of the kernels' PTX (tests/ptx) does what the PTX ISA says,
 * and refuses what it does not know.  Needs no CUDA. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/types/narrow_float.h"
#include "tests/ptx/ptx.h"

/* ---- A kernel of one statement --------------------------------------------------------- */

struct parameter {
    uint64_t a, b, c; /* in each kind of register as number 1, 2, 3 */
    uint64_t *to;     /* where what is then in number 9 goes */
};

/* Number 0 is the address. */
static const char head[] = ".version 9.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k(\n\t.param .align 8 .b8 p[32]\n)\n"
                           ".maxntid 64, 1, 1\n{\n"
                           "\t.reg .pred %p<10>;\n\t.reg .b16 %rs<10>;\n\t.reg .b32 %r<10>;\n"
                           "\t.reg .f32 %f<10>;\n\t.reg .b64 %rd<10>;\n\t.reg .f64 %fd<10>;\n"
                           "\tld.param.u64 %rd1, [p];\n\tld.param.u64 %rd2, [p+8];\n"
                           "\tld.param.u64 %rd3, [p+16];\n\tld.param.u64 %rd0, [p+24];\n"
                           "\tcvt.u32.u64 %r1, %rd1;\n\tcvt.u32.u64 %r2, %rd2;\n"
                           "\tcvt.u32.u64 %r3, %rd3;\n\tcvt.u16.u64 %rs1, %rd1;\n"
                           "\tcvt.u16.u64 %rs2, %rd2;\n\tmov.b32 %f1, %r1;\n\tmov.b32 %f2, %r2;\n"
                           "\tmov.b64 %fd1, %rd1;\n\tmov.b64 %fd2, %rd2;\n"
                           "\tsetp.ne.s64 %p1, %rd1, 0;\n\tsetp.ne.s64 %p2, %rd2, 0;\n"
                           "\tsetp.ne.s64 %p3, %rd3, 0;\n";

static const struct {
    const char *result, *to_rd9;
} results[] = {
    { "%p9", "selp.b64 %rd9, 1, 0, %p9;\n" },
    { "%rs9", "cvt.u64.u16 %rd9, %rs9;\n" },
    { "%r9", "cvt.u64.u32 %rd9, %r9;\n" },
    { "%f9", "mov.b32 %r9, %f9;\ncvt.u64.u32 %rd9, %r9;\n" },
    { "%fd9", "mov.b64 %rd9, %fd9;\n" },
    { "%rd9", "" },
};

static struct ptx *read_one(const char *statement, char *words)
{
    const char *to_rd9 = "";
    char *text = NULL;

    for (size_t k = 0; k < sizeof results / sizeof *results; k++)
        if (strstr(statement, results[k].result))
            to_rd9 = results[k].to_rd9;
    EXPECT(
        asprintf(&text, "%s%s\n%sst.global.u64 [%%rd0], %%rd9;\nret;\n}\n", head, statement, to_rd9)
        > 0);
    return ptx_read(text, words);
}

/* By one thread; `words` says what was wrong, or nothing. */
static uint64_t run_one(const char *statement, uint64_t a, uint64_t b, uint64_t c, char *words)
{
    static _Alignas(16) uint64_t memory[4];
    struct parameter parameter = { a, b, c, &memory[1] };
    struct ptx_range range = { (uintptr_t)&memory[1], (uintptr_t)&memory[3] };
    const struct ptx_launch launch = { .kernel = "k",
                                       .blocks = 1,
                                       .threads = 1,
                                       .parameter = &parameter,
                                       .bytes = sizeof parameter,
                                       .read = { &range, 1 },
                                       .written = { &range, 1 } };
    struct ptx *const ptx = read_one(statement, words);

    memset(memory, 0, sizeof memory);
    if (ptx)
        ptx_run(ptx, &launch, words);
    ptx_free(ptx);
    return memory[1];
}

/* ---- What is known ----------------------------------------------------------------------- */

static const struct {
    const char *statement;
    uint64_t a, b, c, wanted;
} known[] = {
    { "add.s32 %r9, %r1, %r2;", 0xffffffff, 2, 0, 1 },
    { "sub.s32 %r9, %r1, -5;", 0xfffffffe, 0, 0, 3 },
    { "mul.lo.s32 %r9, %r1, %r2;", 0x10001, 0x10001, 0, 0x20001 },
    { "mul.lo.s64 %rd9, %rd1, %rd2;", -3, 7, 0, -21 },
    { "mul.wide.u32 %rd9, %r1, %r2;", 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001 },
    { "div.s32 %r9, %r1, %r2;", 0xfffffff9, 2, 0, 0xfffffffd },
    { "div.u32 %r9, %r1, %r2;", 0xfffffff9, 2, 0, 0x7ffffffc },
    { "min.s32 %r9, %r1, %r2;", 0xffffffff, 1, 0, 0xffffffff },
    { "min.u32 %r9, %r1, %r2;", 0xffffffff, 1, 0, 1 },
    { "shl.b32 %r9, %r1, %r2;", 0xf, 31, 0, 0x80000000 },
    { "shl.b32 %r9, %r1, %r2;", 0xf, 32, 0, 0 },
    { "shl.b16 %rs9, %rs1, 15;", 3, 0, 0, 0x8000 },
    { "shr.u32 %r9, %r1, %r2;", 0x80000000, 40, 0, 0 },
    { "shr.s32 %r9, %r1, %r2;", 0x80000000, 40, 0, 0xffffffff },
    { "shr.u64 %rd9, %rd1, %r2;", UINT64_MAX, 64, 0, 0 },
    { "shr.u64 %rd9, %rd1, %r2;", UINT64_MAX, 63, 0, 1 },
    { "shr.s64 %rd9, %rd1, %r2;", UINT64_MAX - 1, 64, 0, UINT64_MAX },
    { "bfi.b64 %rd9, %rd1, %rd2, 8, 16;", 0x12345, UINT64_MAX, 0, 0xffffffffff2345ff },
    { "bfi.b32 %r9, %r1, %r2, 28, 8;", 0xab, 0, 0, 0xb0000000 },
    { "prmt.b32 %r9, %r1, %r2, 0x7140;", 0x33221100, 0x77665544, 0, 0x77114400 },
    { "prmt.b32 %r9, %r1, %r2, 0x9a8b;", 0x80227f00, 0, 0, 0x000000ff },
    { "cvt.s32.s8 %r9, %r1;", 0x180, 0, 0, 0xffffff80 },
    { "cvt.s32.s16 %r9, %rs1;", 0x8000, 0, 0, 0xffff8000 },
    { "cvt.u32.u16 %r9, %rs1;", 0x18000, 0, 0, 0x8000 },
    { "cvt.s64.s32 %rd9, %rd1;", 0x1ffffffff, 0, 0, UINT64_MAX },
    { "mov.b64 %rd9, {%r1, %r2};", 1, 2, 0, 0x200000001 },
    { "mov.b64 {%r4, %r9}, %rd1;", 0x500000006, 0, 0, 5 },
    { "mov.b32 %r9, {%rs1, %rs2};", 0x1234, 0xabcd, 0, 0xabcd1234 },
    { "selp.b32 %r9, %r1, %r2, %p3;", 7, 8, 0, 8 },
    { "mov.u32 %r9, %ntid.x;", 0, 0, 0, 1 },
    { "mov.u32 %r9, 3;\n@%p3 mov.u32 %r9, 4;", 0, 0, 1, 4 },
    { "mov.u32 %r9, 3;\n@!%p3 mov.u32 %r9, 4;", 0, 0, 1, 3 },
    { "mov.u32 %r9, 3;\n@%p3 bra $L1;\nmov.u32 %r9, 4;\n$L1:", 0, 0, 1, 3 },
    /* with a NaN nothing holds but what has a u, and nan */
    { "setp.lt.f32 %p9, %f1, %f2;", 0x7fc00000, 0x3f800000, 0, 0 },
    { "setp.ne.f32 %p9, %f1, %f2;", 0x7fc00000, 0x3f800000, 0, 0 },
    { "setp.neu.f32 %p9, %f1, %f2;", 0x7fc00000, 0x3f800000, 0, 1 },
    { "setp.geu.f64 %p9, %fd1, %fd2;", 0x7ff8000000000000, 0, 0, 1 },
    { "setp.nan.f32 %p9, %f1, %f2;", 0x3f800000, 0xffc00001, 0, 1 },
    { "setp.num.f32 %p9, %f1, %f2;", 0x3f800000, 0x3f800000, 0, 1 },
    { "setp.eq.f32 %p9, %f1, %f2;", 0x80000000, 0, 0, 1 },
    { "setp.lt.s16 %p9, %rs1, %rs2;", 0x8000, 0, 0, 1 },
    { "setp.lt.u16 %p9, %rs1, %rs2;", 0x8000, 0, 0, 0 },
    /* rounded to nearest, to even; denormals stay; a NaN is nobody's */
    { "add.rn.f32 %f9, %f1, %f2;", 0x3f800000, 0x33800000, 0, 0x3f800000 },
    { "add.rn.f32 %f9, %f1, 0f33800001;", 0x3f800000, 0, 0, 0x3f800001 },
    { "add.rn.f32 %f9, %f1, %f2;", 1, 1, 0, 2 },
    { "mul.rn.f32 %f9, %f1, %f2;", 0x7f800000, 0, 0, 0x7fffffff },
    { "sub.rn.f64 %fd9, %fd1, %fd2;", 0x3ff0000000000000, 0x3ff0000000000000, 0, 0 },
    { "div.rn.f32 %f9, %f1, %f2;", 0x3f800000, 0x40400000, 0, 0x3eaaaaab },
    { "cvt.rn.f32.u32 %f9, %r1;", 0xffffffff, 0, 0, 0x4f800000 },
    { "cvt.rn.f64.u32 %fd9, %r1;", 0xffffffff, 0, 0, 0x41efffffffe00000 },
    { "cvt.rn.f16.f32 %rs9, %f1;", 0x477ff000, 0, 0, 0x7c00 }, /* 65520: half way to 2^16 */
    { "cvt.rn.f16.f32 %rs9, %f1;", 0x477fefff, 0, 0, 0x7bff },
    { "cvt.rn.f16.f32 %rs9, %f1;", 0xb3000000, 0, 0, 0x8000 }, /* half the least */
    { "cvt.rn.f16.f32 %rs9, %f1;", 0x33000001, 0, 0, 1 },
    { "cvt.rn.bf16.f32 %rs9, %f1;", 0x3f808000, 0, 0, 0x3f80 },
    { "cvt.rn.bf16.f32 %rs9, %f1;", 0x3f818000, 0, 0, 0x3f82 },
    { "cvt.rn.bf16.f32 %rs9, %f1;", 0xff7fffff, 0, 0, 0xff80 },
    { "cvt.rn.bf16.f32 %rs9, %f1;", 0x7f800001, 0, 0, 0x7fff },
    { "cvt.f32.f16 %f9, %rs1;", 0xfc00, 0, 0, 0xff800000 },
    /* what is narrower than its register */
    { "st.global.u16 [%rd0+8], %r1;\nld.global.s8 %r9, [%rd0+9];", 0x8180, 0, 0, 0xffffff81 },
    { "st.global.cs.v2.u32 [%rd0], {%r1, %r2};\nld.global.u32 %rd9, [%rd0+4];", 1, 9, 0, 9 },
};

static void each_instruction_does_what_the_isa_says(void **state)
{
    char words[PTX_WORDS] = "";

    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const uint64_t got = run_one(known[k].statement, known[k].a, known[k].b, known[k].c, words);

        if (words[0] || got != known[k].wanted)
            expect_fails(__FILE__, __LINE__, "%s gives 0x%llx; %s", known[k].statement,
                         (unsigned long long)got, words);
    }
}

/* Another way to the same numbers: that of runtime/types/narrow_float.h. */
static void all_halves_are_doubled_as_by_the_host(void **state)
{
    static uint16_t half[65536], back[65536];
    char words[PTX_WORDS] = "";
    const uint64_t parameter[] = { (uintptr_t)half, (uintptr_t)back };
    struct ptx_range read = { (uintptr_t)half, (uintptr_t)(half + 65536) };
    struct ptx_range written = { (uintptr_t)back, (uintptr_t)(back + 65536) };
    const struct ptx_launch launch = { .kernel = "k",
                                       .blocks = 1024,
                                       .threads = 64,
                                       .parameter = parameter,
                                       .bytes = sizeof parameter,
                                       .read = { &read, 1 },
                                       .written = { &written, 1 } };
    struct ptx *const ptx = ptx_read(
        strdup(".visible .entry k(\n.param .align 8 .b8 p[16]\n)\n{\n.reg .b16 %h<9>;\n"
               ".reg .b32 %r<9>;\n.reg .b64 %a<9>;\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\n"
               "mov.u32 %r2, %tid.x;\nmul.lo.u32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\n"
               "mul.wide.u32 %a0, %r0, 2;\nld.param.u64 %a1, [p];\nld.param.u64 %a2, [p+8];\n"
               "add.u64 %a1, %a1, %a0;\nadd.u64 %a2, %a2, %a0;\nld.global.u16 %h0, [%a1];\n"
               "cvt.f32.f16 %r3, %h0;\nadd.rn.f32 %r3, %r3, %r3;\ncvt.rn.f16.f32 %h1, %r3;\n"
               "st.global.u16 [%a2], %h1;\n}\n"),
        words);

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    EXPECT(ptx && ptx_run(ptx, &launch, words));
    for (unsigned i = 0; i < 65536; i++) {
        const float value = f16_to_f32((uint16_t)i);

        EXPECT(back[i] == (value == value ? f32_to_f16(value + value) : 0x7fff));
    }
    ptx_free(ptx);
}

/* ---- What is not --------------------------------------------------------------------------- */

static const struct {
    const char *statement, *words;
} refused[] = {
    { "add.rz.f32 %f9, %f1, %f2;",
      "line 31 of the PTX, `add.rz.f32 %f9, %f1, %f2;`: add.rz.f32 is" },
    { "fma.rn.f32 %f9, %f1, %f2, %f1;", "fma.rn.f32 is not known" },
    { "add.s32 %r9, %r1, %rd2;", "with such operands (wwd)" },
    { "add.s32 %r9, %r1, %r10;", "an operand of add.s32" },
    { "ld.global.u32 %r9, [%r1];", "an operand of ld.global.u32" },
    { "ld.global.nc.u32 %r9, [%rd1];", "ld.global.nc.u32 is not known" },
    { "ld.global.u32 %rs9, [%rd1];", "with such operands (hm)" },
    { "ld.global.v2.u32 %r9, [%rd1];", "with such operands (wm)" },
    { "st.param.u32 [p], %r1;", "st.param.u32 is not known" },
    { "@%r1 mov.u32 %r9, 1;", "guard" },
    { "bra $L7;", "an operand of bra" },
    { "bar.sync 0;", "bar.sync is not known" },
    { "{", "ends with its line" },
    { ".shared .b8 s[16];", "not known in a body" },
};

static void what_is_not_known_is_refused_with_its_line(void **state)
{
    char words[PTX_WORDS];

    (void)state;
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct ptx *const ptx = read_one(refused[k].statement, strcpy(words, ""));

        if (ptx || !strstr(words, refused[k].words))
            expect_fails(__FILE__, __LINE__, "%s: \"%s\"", refused[k].statement, words);
        ptx_free(ptx);
    }
}

static const struct {
    const char *statement, *words;
} faults[] = {
    { "add.s64 %rd4, %rd0, 2;\nld.global.u32 %r9, [%rd4];",
      "k, thread 0 of block 0, line 32 of the PTX, `ld.global.u32 %r9, [%rd4];`: 0x" },
    { "add.s64 %rd4, %rd0, 2;\nld.global.u32 %r9, [%rd4];", "no multiple of 4" },
    { "ld.global.v2.u64 {%rd4, %rd9}, [%rd0];", "no multiple of 16" },
    { "ld.global.u32 %r9, [%rd0+-4];", "none that it may read" },
    { "ld.u64 %rd9, [%rd0+16];", "none that it may read" },
    { "st.u32 [%rd0+16], %r1;", "none that it may write" },
    { "ld.param.u64 %rd9, [p+32];", "none that it may read" },
    { "ld.u64 %rd9, [p];", "none that it may read" },
    { "div.u32 %r9, %r1, %r2;", "divides by zero" },
    { "$L1:\nbra $L1;", "does not end" },
};

static void what_no_gpu_bears_is_a_fault_with_its_line(void **state)
{
    char words[PTX_WORDS];

    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        run_one(faults[k].statement, 1, 0, 0, strcpy(words, ""));
        if (!strstr(words, faults[k].words))
            expect_fails(__FILE__, __LINE__, "%s: \"%s\"", faults[k].statement, words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_instruction_does_what_the_isa_says),
        cmocka_unit_test(all_halves_are_doubled_as_by_the_host),
        cmocka_unit_test(what_is_not_known_is_refused_with_its_line),
        cmocka_unit_test(what_no_gpu_bears_is_a_fault_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
