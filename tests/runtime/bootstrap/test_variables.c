/* SPDX-License-Identifier: Apache-2.0 */
/* test_variables.c - a CT_ variable that is almost one gets a word, and CT_LOG must be one of its.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/option_table.h"
#include "runtime/bootstrap/variables.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

static void the_table_has_all_that_ctrun_and_the_choices_read(void **state)
{
    int found = 0;

    (void)state;
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        for (size_t v = 0; v < sizeof row->variables / sizeof *row->variables; v++)
            if (row->variables[v] && !strncmp(row->variables[v], "CT_", 3)) {
                found++;
                if (!variable_is_known(row->variables[v]))
                    expect_fails(__FILE__, __LINE__, "%s is not in runtime/bootstrap/variables.c",
                                 row->variables[v]);
            }
    }
    EXPECT(found >= 15);
    EXPECT(variable_is_known("CT_ALL_REDUCE") && variable_is_known("CT_REDUCE_SCATTER_V"));
}

static void what_is_almost_a_name_is_meant_to_be_that_name(void **state)
{
    static const struct {
        const char *name, *meant;
    } cases[] = {
        { "CT_TIMOUT_MS", "CT_TIMEOUT_MS" },
        { "CT_TIMEOUT_SM", "CT_TIMEOUT_MS" },
        { "CT_LNK", "CT_LINK" },
        { "CT_ALLREDUCE", "CT_ALL_REDUCE" },
        { "CT_STORE_SECRETFILE", "CT_STORE_SECRET_FILE" },
        { "CT_TIMEOUT_MS", NULL },
        { "CT_LOG", NULL },
        { "CT_BUILD", NULL },
        /* of a program's own: computed tomography, say */
        { "CT_SCANNER", NULL },
        { "CT_LAG", "CT_LOG" },
        { "CT_SLICES", NULL },
        { "CT_X", NULL },
        { "CT_", NULL },
        { "CTRUN_LOG", NULL },
        { "CT_A_NAME_THAT_IS_LONGER_THAN_ANY_OF_OURS_COULD_EVER_BE", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *meant = variable_meant(cases[i].name);

        if (cases[i].meant ? !meant || strcmp(meant, cases[i].meant) != 0 : meant != NULL)
            expect_fails(__FILE__, __LINE__, "%s is taken for %s", cases[i].name,
                         meant ? meant : "none");
    }
}

static char said[1000];

static void keep(void *arg, const char *line, size_t size)
{
    (void)arg;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%.*s", (int)size, line);
}

static void alone(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    setenv("CT_TIMOUT_MS", "5000", 1);
    setenv("CT_SCANNER", "2", 1);
    setenv("CT_LOG", "warn", 1);
    log_divert(keep, NULL);
    EXPECT_OK(ct_init_process_group(NULL));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    log_divert(NULL, NULL);
    EXPECT(strcmp(said, program_rank() > 0
                            ? ""
                            : "rank 0: CT_TIMOUT_MS has no effect; did you mean CT_TIMEOUT_MS?\n")
           == 0);
}

static void rank_0_says_which_variable_is_misspelt(void **state)
{
    (void)state;
    run_programs(3, alone, NULL);
}

static void loud(ct_group *unused, void *arg)
{
    ct_group *group;
    ct_store *store;

    (void)unused;
    (void)arg;
    setenv("CT_LOG", "loud", 1);
    EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_INVALID,
                 "CT_LOG=loud|none, waits, error, warn, info");
    EXPECT_OK(ct_store_hash(&store));
    EXPECT_ERROR(ct_create_group(store, 0, 1, NULL, &group), CT_ERR_INVALID, "CT_LOG=loud");
    EXPECT_OK(ct_store_close(store));
    setenv("CT_LOG", "", 1);
    EXPECT_OK(ct_init_process_group(NULL));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_word_that_ct_log_does_not_have_is_refused(void **state)
{
    (void)state;
    run_programs(1, loud, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_all_that_ctrun_and_the_choices_read),
        cmocka_unit_test(what_is_almost_a_name_is_meant_to_be_that_name),
        cmocka_unit_test(rank_0_says_which_variable_is_misspelt),
        cmocka_unit_test(a_word_that_ct_log_does_not_have_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
