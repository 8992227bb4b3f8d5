/* SPDX-License-Identifier: Apache-2.0 */
/* host_list.c - parses lists of hosts from one line or a file.
 *
 * A name may have one or more ranges in brackets, as Slurm writes them: "r[1-2]n[01-16]".  Ranges
 * are expanded from left to right, and numbers keep their leading zeros.  Brackets at the start of
 * a name that contain a colon enclose an IPv6 address. */
#include "config/values/host_list.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MOST 1000000
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some Windows editors start a file with these bytes */
#define ITEM_BREAKS ", \t\r\n"
#define HOSTS_MOST 100000 /* a longer list or range is taken for a typing error */

/* ---- The list, and the hash table that finds a host by its name ---------------- */

/* Returns the name's place in the hash table.  The place holds the host's index + 1, or 0 if the
 * name is not in the list. */
static int *hosts_place_of(const struct host_list *list, const char *name)
{
    const unsigned places = 2 * (unsigned)list->room; /* never full; a power of two */
    unsigned hash = 2166136261u;                      /* FNV-1a */

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    while (list->places[hash % places]
           && strcmp(list->hosts[list->places[hash % places] - 1].name, name) != 0)
        hash++;
    return &list->places[hash % places];
}

static int grow(struct host_list *list)
{
    const int room = list->room ? 2 * list->room : 8;
    struct host_slots *hosts = realloc(list->hosts, (size_t)room * sizeof *hosts);
    int *places = calloc(2 * (size_t)room, sizeof *places);

    list->hosts = hosts ? hosts : list->hosts;
    if (!hosts || !places) {
        free(places);
        return -1;
    }
    free(list->places);
    list->places = places;
    list->room = room;
    for (int i = 0; i < list->count; i++)
        *hosts_place_of(list, hosts[i].name) = i + 1;
    return 0;
}

static int hosts_add(struct host_list *list, const char *name, int slots, struct why *why)
{
    struct host_slots *host;
    int *place;

    if (list->count == list->room && grow(list) < 0)
        return value_wrong(why, "out of memory for %d hosts", list->count);
    place = hosts_place_of(list, name);
    if (*place) {
        host = &list->hosts[*place - 1];
        host->slots = host->slots ? host->slots : 1;
        slots = slots ? slots : 1;
        if (slots > SLOTS_MOST - host->slots)
            return value_wrong(why, "%.100s has more than %d workers", name, SLOTS_MOST);
        host->slots += slots;
        return 0;
    }
    if (list->count == HOSTS_MOST)
        return value_wrong(why, "there are more than %d hosts", HOSTS_MOST);
    host = &list->hosts[list->count++];
    snprintf(host->name, HOST_NAME, "%s", name);
    host->slots = slots;
    *place = list->count;
    return 0;
}

/* Returns 1 if the name is an IPv6 address, which may have a zone.  Any other name with colons,
 * such as "a:4:5", is taken for a typing error. */
static int may_have_colons(const char *name)
{
    const char *at = strchr(name, '@');
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    name = at ? at + 1 : name;
    snprintf(address, sizeof address, "%.*s", (int)strcspn(name, "%"), name);
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

static int is_host(const char *name)
{
    if (strchr(name, ':') && !may_have_colons(name))
        return 0;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.:-@%", *c) && !(*c & 0x80))
            return 0;
    return *name && *name != '-'; /* ssh would take a leading '-' for an option */
}

static int add_checked(struct host_list *list, const char *name, int slots, const char *item,
                       struct why *why)
{
    if (!is_host(name))
        return value_wrong(why, "'%.100s' names no host; write NAME, NAME:SLOTS or NAME[1-4]:SLOTS",
                           item);
    return hosts_add(list, name, slots, why);
}

/* ---- One item: NAME[ranges][:SLOTS] ------------------------------------------- */

static int hosts_expand(struct host_list *list, const char *done, const char *rest, int slots,
                        const char *item, struct why *why);

/* Expands one range, FROM or FROM-TO.  Adds a host for each number, with the text `done` before the
 * number and the text `after` behind it. */
static int expand_range(struct host_list *list, const char *done, const char *range, int length,
                        const char *after, int slots, const char *item, struct why *why)
{
    const int width = (int)strspn(range, "0123456789");
    long from, to;
    char *end;

    errno = 0;
    from = to = strtol(range, &end, 10);
    if (width > 0 && *end == '-' && isdigit((unsigned char)end[1]))
        to = strtol(end + 1, &end, 10);
    if (width == 0 || end != range + length || errno || to < from || to - from >= HOSTS_MOST)
        return value_wrong(why, "'%.100s': '%.*s' is not a range of numbers", item, length, range);
    for (long i = from; i <= to; i++) {
        char text[2 * HOST_NAME];

        snprintf(text, sizeof text, "%s%0*ld", done, width, i);
        if (hosts_expand(list, text, after, slots, item, why) < 0)
            return -1;
    }
    return 0;
}

static int hosts_expand(struct host_list *list, const char *done, const char *rest, int slots,
                        const char *item, struct why *why)
{
    const char *open = strchr(rest, '['), *close = open ? strchr(open, ']') : NULL;
    char text[2 * HOST_NAME];

    if (strlen(done) + strlen(rest) >= HOST_NAME && !open)
        return value_wrong(why, "'%.100s' is longer than a host name can be", item);
    snprintf(text, sizeof text, "%s%.*s", done, open ? (int)(open - rest) : (int)strlen(rest),
             rest);
    if (!open)
        return add_checked(list, text, slots, item, why);
    if (!close || strlen(text) >= HOST_NAME)
        return value_wrong(why, "'%.100s': a bracket is not closed", item);
    if (close == open + 1)
        return value_wrong(why, "'%.100s': the brackets are empty", item);
    for (const char *range = open + 1;; range++) { /* skips the comma */
        const size_t length = strcspn(range, ",]");

        if (expand_range(list, text, range, (int)length, close + 1, slots, item, why) < 0)
            return -1;
        range += length;
        if (range == close)
            return 0;
    }
}

/* Cuts ":SLOTS" off the item and sets *slots, which is 0 if the item has no slots.  An item with
 * several colons and no brackets is an IPv6 address. */
static int cut_slots(char *item, int *slots, const char *whole, struct why *why)
{
    char *bracket = strrchr(item, ']'), *colon = strchr(bracket ? bracket : item, ':');

    *slots = 0;
    if (!colon || (!bracket && strchr(colon + 1, ':')))
        return 0;
    if (value_int(colon + 1, slots) < 0 || *slots < 1 || *slots > SLOTS_MOST)
        return value_wrong(why, "'%.100s': '%.20s' is not a number of workers", whole, colon + 1);
    *colon = 0;
    return 0;
}

static int add_item(struct host_list *list, const char *whole, struct why *why)
{
    char item[2 * HOST_NAME], *bracket;
    int slots;

    if (strlen(whole) >= sizeof item)
        return value_wrong(why, "'%.40s...' is longer than a host name can be", whole);
    strcpy(item, whole);
    if (cut_slots(item, &slots, whole, why) < 0)
        return -1;
    bracket = strchr(item, ']');
    if (item[0] == '[' && bracket && !bracket[1] && memchr(item, ':', (size_t)(bracket - item))) {
        *bracket = 0;
        return add_checked(list, item + 1, slots, whole, why);
    }
    return hosts_expand(list, "", item, slots, whole, why);
}

/* ---- A line of items ----------------------------------------------------------- */

/* Returns the number of bytes up to the next comma or blank outside of brackets. */
static size_t item_length(const char *text)
{
    size_t i = 0;

    for (int depth = 0; text[i]; i++) {
        depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
        if (depth <= 0 && (text[i] == ',' || isspace((unsigned char)text[i])))
            break;
    }
    return i;
}

int host_list_parse(struct host_list *list, const char *text, struct why *why)
{
    *list = (struct host_list){ 0 };
    while (*(text += strspn(text, ITEM_BREAKS))) {
        const size_t length = item_length(text);
        char *item = strndup(text, length);
        const int result =
            item ? add_item(list, item, why) : value_wrong(why, "out of memory for a host");

        free(item);
        if (result < 0) {
            host_list_free(list);
            return -1;
        }
        text += length;
    }
    return list->count ? 0 : value_wrong(why, "no host is named");
}

int parse_hosts(const char *text, void *field, struct why *why)
{
    struct host_list list;

    if (host_list_parse(&list, text, why) < 0)
        return -1;
    host_list_free(&list);
    *(const char **)field = text;
    return 0;
}

/* Shortens each range to its first number, so "rack[1-4]n[007-016,20]" becomes "rack[1]n[007]".
 * The caller needs only the first of what may be thousands of hosts. */
static void keep_first_of_ranges(char *item)
{
    char *to = item;

    for (const char *from = item; *from;) {
        const size_t digits = *from == '[' ? strspn(from + 1, "0123456789") : 0;
        const char *close = digits ? strchr(from, ']') : NULL;

        if (close && strchr(",-", from[1 + digits])) {
            memmove(to, from, 1 + digits);
            to += 1 + digits;
            from = close;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
}

const char *host_without_user(const char *name)
{
    const char *at = strchr(name, '@');

    return at ? at + 1 : name;
}

int host_list_first(const char *text, char *name, size_t size)
{
    struct host_list list;
    struct why why;
    int result;
    char *first;

    text += strspn(text, ITEM_BREAKS);
    first = strndup(text, item_length(text));
    if (first)
        keep_first_of_ranges(first);
    if (!first || host_list_parse(&list, first, &why) < 0) {
        free(first);
        return -1;
    }
    result = snprintf(name, size, "%s", host_without_user(list.hosts[0].name)) < (int)size ? 0 : -1;
    host_list_free(&list);
    free(first);
    return result;
}

/* ---- A file -------------------------------------------------------------------- */

/* Reads the number of slots from the words behind a host, such as "slots=4", "slots = 4" or "4
 * all.q@a".  Ignores other words, such as those on CPU binding.  Leaves *slots unchanged if the
 * words have no number of slots. */
static int read_slots(char *words, int *slots, struct why *why)
{
    char *rest = words + strspn(words, " \t");
    int number;

    if (isdigit((unsigned char)*rest)) {
        rest[strcspn(rest, " \t")] = 0;
        return value_int(rest, slots) < 0 || *slots < 1 || *slots > SLOTS_MOST
                   ? value_wrong(why, "'%.20s' is not a number of workers", rest)
                   : 0;
    }
    for (; *rest; rest += strcspn(rest, " \t"), rest += strspn(rest, " \t")) {
        char word[24];
        const char *value;

        if (strncmp(rest, "slots", 5) != 0 || !strchr(" =", rest[5]))
            continue;
        value = rest + 5 + strspn(rest + 5, " \t=");
        snprintf(word, sizeof word, "%.*s", (int)strcspn(value, " \t"), value);
        if (value_int(word, &number) < 0 || number < 1 || number > SLOTS_MOST)
            return value_wrong(why, "'%.40s': '%s' is not a number of workers", rest, word);
        *slots = number;
        return 0;
    }
    return 0;
}

static int hosts_read_line(struct host_list *list, char *line, struct why *why)
{
    char *host = line + strspn(line, " \t"), *rest;
    int slots = 0;
    struct host_list one;

    line[strcspn(line, "#\r\n")] = 0;
    if (!*host)
        return 0;
    rest = host + item_length(host);
    if (*rest == ',')
        return value_wrong(why, "'%.100s': write one host per line", host);
    if (*rest)
        *rest++ = 0;
    if (read_slots(rest, &slots, why) < 0 || host_list_parse(&one, host, why) < 0)
        return -1;
    for (int i = 0; i < one.count; i++)
        if (hosts_add(list, one.hosts[i].name, slots ? slots : one.hosts[i].slots, why) < 0) {
            host_list_free(&one);
            return -1;
        }
    host_list_free(&one);
    return 0;
}

int host_list_read(struct host_list *list, const char *path, struct why *why)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int number = 0, result = 0;
    struct why of_line;

    *list = (struct host_list){ 0 };
    if (!file)
        return value_wrong(why, "%.150s: %s", path, strerror(errno));
    errno = 0;
    while (result == 0 && getline(&line, &room, file) >= 0) {
        const int has_mark = ++number == 1 && !strncmp(line, BYTE_ORDER_MARK, 3);

        if ((result = hosts_read_line(list, line + (has_mark ? 3 : 0), &of_line)) < 0)
            value_wrong(why, "%.80s:%d: %.150s", path, number, of_line.text);
    }
    if (result == 0 && ferror(file))
        result = value_wrong(why, "%.150s: %s", path, strerror(errno));
    else if (result == 0 && list->count == 0)
        result = value_wrong(why, "%.150s names no host", path);
    free(line);
    fclose(file);
    if (result < 0)
        host_list_free(list);
    return result;
}

void host_list_free(struct host_list *list)
{
    free(list->hosts);
    free(list->places);
    *list = (struct host_list){ 0 };
}
