/* SPDX-License-Identifier: Apache-2.0 */
/* test_shell_words.c - words are split and quoted as sh does it. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/util/shell_words.c"

/* The words of text, each in angle brackets; "open: '" for a quote that stays open. */
static const char *ours(const char *text)
{
    static char found[1024];
    char open, **words = shell_split(text, &open), *to = found;

    if (!words) {
        snprintf(found, sizeof found, "open: %c", open);
        return found;
    }
    *to = '\0';
    for (int i = 0; words[i]; i++)
        to += sprintf(to, "<%s>", words[i]);
    free(words);
    return found;
}

/* What sh makes of the same text. */
static const char *of_the_shell(const char *text)
{
    static char found[1024];
    char script[1024];
    FILE *sh;
    size_t got;

    snprintf(script, sizeof script, "printf '<%%s>' %s", text);
    setenv("SCRIPT", script, 1);
    sh = popen("sh -c \"$SCRIPT\"", "r");
    assert_non_null(sh);
    got = fread(found, 1, sizeof found - 1, sh);
    found[got] = '\0';
    pclose(sh);
    return found;
}

static void words_are_those_of_the_shell(void **state)
{
    static const char *const texts[] = {
        "gdb --args",      "  gdb\t-q  ",       "'a b' c",     "\"a b\"c'd e'",
        "a\\ b",           "\"a\\\"b\\c\\\\\"", "'a\\b'",      "a'' ''",
        "\"it's\" 'a\"b'", "\\'a\\'",           "\"\\$x\\`\"", "a\\\nb",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(ours(texts[i]), of_the_shell(texts[i]));
}

static void nothing_is_expanded(void **state)
{
    (void)state;
    assert_string_equal(ours("$HOME * ~ `id` a;b|c"), "<$HOME><*><~><`id`><a;b|c>");
    assert_string_equal(ours(""), "");
    assert_string_equal(ours("a\\"), "<a\\>");
}

static void a_quote_that_stays_open_is_named(void **state)
{
    (void)state;
    assert_string_equal(ours("gdb 'a b"), "open: '");
    assert_string_equal(ours("gdb \"a'"), "open: \"");
}

/* Every byte that a word can have comes back from sh as it was. */
static void quoted_words_come_back_from_the_shell(void **state)
{
    char *words[] = { "plain", "",     "a b", "it's", "$x", "--a=b",
                      "~",     "a\nb", "\\",  "*?[]", "#",  NULL };
    char text[256], expected[256], *to = expected;
    FILE *memory = fmemopen(text, sizeof text, "w");

    (void)state;
    for (int i = 0; words[i]; i++)
        to += sprintf(to, "<%s>", words[i]);
    shell_print(memory, words);
    fclose(memory);
    assert_string_equal(of_the_shell(text), expected);
    assert_string_equal(ours(text), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_shell),
        cmocka_unit_test(nothing_is_expanded),
        cmocka_unit_test(a_quote_that_stays_open_is_named),
        cmocka_unit_test(quoted_words_come_back_from_the_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
