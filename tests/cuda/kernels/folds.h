/* SPDX-License-Identifier: Apache-2.0 */
/* folds.h - the cases of a fold on a GPU: it gives the bits of combine_fold_to().
 *
 * The launches are those of cuda/launch_plan.c.  Who runs them is the affair of the program that
 * these files are linked into: test_kernels.c has the kernels' bodies, compiled for the host,
 * test_ptx.c what nvcc made of them. */
#ifndef TESTS_CUDA_FOLDS_H
#define TESTS_CUDA_FOLDS_H

#include "cuda/launch_plan.h"
#include "tests/cuda/kernels/elements.h"
#include "tests/harness.h"

/* ---- What the program has ---------------------------------------------------------- */

void execute(const struct launch *launch);

/* One that takes a hundred times as long does less: of the cases that are drawn one in so many,
 * and of the halves that all others meet. */
struct effort {
    unsigned drawn, halves;
};
extern const struct effort effort;

/* ---- Running a fold (folds.c) ------------------------------------------------------ */

/* Is the next case among those that this program does? */
int is_drawn(void);

void run(const struct fold *fold, void *const *dst, int dsts, const void *const *src, size_t count,
         int processors);
/* called_off, scalars: as in fold_plan(). */
void run_parts(const struct fold *fold, const void *const *scalars, const struct fold_part *parts,
               int count, int processors, uint64_t called_off);

/* A way to call: what the plan and the kernels can tell apart. */
struct way {
    int sources, copies, in_place; /* in_place: the source that is the first destination, or -1 */
    size_t count, shift;
    int alike; /* all pointers share their misalignment */
    int processors;
};

enum { LONG = 5000, SOURCES = 9, COPIES = 9 };

/* Where row `row` of SOURCES + COPIES begins, with room for LONG of any dtype and guards. */
char *place_in(int row, const struct way *way);

/* ---- The cases --------------------------------------------------------------------- */

/* fold_drawn.c */
void all_sources_and_alignments_give_the_hosts_bits(void **state);
void all_small_counts_give_the_hosts_bits(void **state);
void long_folds_give_the_hosts_bits(void **state);
void long_common_sums_give_the_hosts_bits(void **state);
void nothing_beyond_the_ends_is_touched(void **state);
/* fold_crowds.c */
void what_is_called_off_does_nothing(void **state);
void many_sources_are_folded_from_left_to_right(void **state);
void more_destinations_than_fit_a_launch_are_copies_of_the_first(void **state);
void an_exchange_gives_each_buffer_the_bytes_of_the_other(void **state);
void many_parts_are_folded_as_if_each_were_alone(void **state);
void many_parts_of_the_common_sums_are_folded_so_too(void **state);
/* fold_scaled.c */
void scaled_sources_give_the_bits_of_combine_scale(void **state);
void as_many_scaled_sources_as_fit_are_folded(void **state);
/* fold_values.c */
void all_pairs_of_bytes_give_the_hosts_bits(void **state);
void all_halves_with_some_give_the_hosts_bits(void **state);
void each_narrow_value_counts_in_each_place(void **state);
void of_zeros_with_signs_the_last_one_is_kept(void **state);
void all_pairs_of_special_numbers_give_the_hosts_bits(void **state);

#define FOLD_CASES                                                                     \
    cmocka_unit_test(all_sources_and_alignments_give_the_hosts_bits),                  \
        cmocka_unit_test(all_small_counts_give_the_hosts_bits),                        \
        cmocka_unit_test(long_folds_give_the_hosts_bits),                              \
        cmocka_unit_test(long_common_sums_give_the_hosts_bits),                        \
        cmocka_unit_test(nothing_beyond_the_ends_is_touched),                          \
        cmocka_unit_test(what_is_called_off_does_nothing),                             \
        cmocka_unit_test(many_sources_are_folded_from_left_to_right),                  \
        cmocka_unit_test(more_destinations_than_fit_a_launch_are_copies_of_the_first), \
        cmocka_unit_test(an_exchange_gives_each_buffer_the_bytes_of_the_other),        \
        cmocka_unit_test(many_parts_are_folded_as_if_each_were_alone),                 \
        cmocka_unit_test(many_parts_of_the_common_sums_are_folded_so_too),             \
        cmocka_unit_test(scaled_sources_give_the_bits_of_combine_scale),               \
        cmocka_unit_test(as_many_scaled_sources_as_fit_are_folded),                    \
        cmocka_unit_test(all_pairs_of_bytes_give_the_hosts_bits),                      \
        cmocka_unit_test(all_halves_with_some_give_the_hosts_bits),                    \
        cmocka_unit_test(each_narrow_value_counts_in_each_place),                      \
        cmocka_unit_test(of_zeros_with_signs_the_last_one_is_kept),                    \
        cmocka_unit_test(all_pairs_of_special_numbers_give_the_hosts_bits)

#endif
