/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_protocol.c - parses the requests with a table, and has a function for each request.
 *
 * A request consists of words, "key=value", with spaces between them.  The last word of a put, a
 * publish and an abort extends to the end of the line.  A rank may send anything.  A line that is
 * not a request is PMI_WRONG.  If a request can't be carried out, the reply refuses it. */
#include "launcher/pmi/pmi_protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUT_COST 128 /* bytes that a put counts for, in addition to its text */

struct pmi_request_line {
    const char *line;
    size_t size;
    struct pmi_job *job;
    struct pmi_client *client;
    struct text *reply;
    struct pmi_abort *abort;
};

/* ---- Words ------------------------------------------------------------------ */

/* Returns the text after "name=" up to the end of the line; data is NULL if the line has no such
 * word. */
static struct bytes rest_of(const struct pmi_request_line *r, const char *name)
{
    const size_t length = strlen(name);
    const char *at = r->line, *end = r->line + r->size;

    while (at < end) {
        const char *gap = memchr(at, ' ', (size_t)(end - at));

        if ((size_t)(end - at) > length && !memcmp(at, name, length) && at[length] == '=')
            return (struct bytes){ at + length + 1, (size_t)(end - at) - length - 1 };
        at = gap ? gap + 1 : end;
    }
    return (struct bytes){ NULL, 0 };
}

static struct bytes word_of(const struct pmi_request_line *r, const char *name)
{
    struct bytes word = rest_of(r, name);
    const char *gap = word.data ? memchr(word.data, ' ', word.size) : NULL;

    if (gap)
        word.size = (size_t)(gap - (const char *)word.data);
    return word;
}

/* Returns the value of the word `name` if the line begins with that word; otherwise data is NULL.
 */
static struct bytes first_of(const struct pmi_request_line *r, const char *name)
{
    const struct bytes word = word_of(r, name);

    return word.data == r->line + strlen(name) + 1 ? word : (struct bytes){ NULL, 0 };
}

static int pmi_is_word(struct bytes word, const char *text)
{
    return word.data && word.size == strlen(text) && !memcmp(word.data, text, word.size);
}

/* Returns the number after "name="; fallback if the word is missing or its value is not a number.
 */
static int pmi_number_of(const struct pmi_request_line *r, const char *name, int fallback)
{
    const struct bytes word = word_of(r, name);
    char text[16], *end;
    long value;

    if (!word.data || word.size == 0 || word.size >= sizeof text)
        return fallback;
    memcpy(text, word.data, word.size);
    text[word.size] = '\0';
    value = strtol(text, &end, 10);
    return *end || value < INT32_MIN || value > INT32_MAX ? fallback : (int)value;
}

/* Adds a reply that consists of `head` and `value`.  A client has put the value, which may contain
 * any bytes except a newline. */
static enum pmi_outcome answer_with(struct pmi_request_line *r, const char *head,
                                    struct bytes value)
{
    text_print(r->reply, "%s", head);
    text_add(r->reply, value.data, value.size);
    text_add(r->reply, "\n", 1);
    return PMI_ANSWERED;
}

/* ---- The requests ----------------------------------------------------------- */

static enum pmi_outcome init(struct pmi_request_line *r)
{
    if (pmi_number_of(r, "pmi_version", 0) != 1) {
        text_print(r->reply, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
        return PMI_ANSWERED;
    }
    r->client->state = PMI_INITIALIZED;
    text_print(r->reply, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    return PMI_ANSWERED;
}

static enum pmi_outcome get_maxes(struct pmi_request_line *r)
{
    text_print(r->reply, "cmd=maxes kvsname_max=%zu keylen_max=%d vallen_max=%d rc=0\n",
               sizeof r->job->name, PMI_KEY_MOST, PMI_VALUE_MOST);
    return PMI_ANSWERED;
}

static enum pmi_outcome get_appnum(struct pmi_request_line *r)
{
    text_print(r->reply, "cmd=appnum appnum=0 rc=0\n");
    return PMI_ANSWERED;
}

static enum pmi_outcome get_my_kvsname(struct pmi_request_line *r)
{
    text_print(r->reply, "cmd=my_kvsname kvsname=%s rc=0\n", r->job->name);
    return PMI_ANSWERED;
}

static enum pmi_outcome get_universe_size(struct pmi_request_line *r)
{
    text_print(r->reply, "cmd=universe_size size=%d rc=0\n", r->job->world);
    return PMI_ANSWERED;
}

/* Adds the put's size to the rank's total.  Returns NULL if the put is allowed, or the reason why
 * it is not. */
static const char *why_not_put(const struct pmi_request_line *r, struct bytes key,
                               struct bytes value)
{
    const struct bytes name = word_of(r, "kvsname");

    if (name.data && !pmi_is_word(name, r->job->name))
        return "no_such_kvsname";
    if (key.size == 0 || key.size >= PMI_KEY_MOST)
        return "key_too_long";
    if (value.size >= PMI_VALUE_MOST)
        return "value_too_long";
    r->client->put += key.size + value.size + PUT_COST;
    return r->client->put > PMI_RANK_MOST ? "too_many_puts" : NULL;
}

static enum pmi_outcome pmi_put(struct pmi_request_line *r)
{
    const struct bytes key = word_of(r, "key"), value = rest_of(r, "value");
    const char *why;

    if (!key.data || !value.data)
        return PMI_WRONG;
    why = why_not_put(r, key, value);
    r->client->is_full |= r->client->put > PMI_RANK_MOST;
    if (!why && pmi_space_put(&r->job->space, key, value) < 0)
        why = "out_of_memory";
    text_print(r->reply, "cmd=put_result rc=%d msg=%s\n", why ? -1 : 0, why ? why : "success");
    return PMI_ANSWERED;
}

static enum pmi_outcome pmi_get(struct pmi_request_line *r)
{
    const struct bytes key = word_of(r, "key"), name = word_of(r, "kvsname");
    const int is_ours = !name.data || pmi_is_word(name, r->job->name);
    struct bytes value = { NULL, 0 };

    if (!key.data)
        return PMI_WRONG;
    if (is_ours)
        value = pmi_space_get(&r->job->space, key);
    if (is_ours && !value.data && pmi_is_word(key, "PMI_process_mapping") && *r->job->mapping)
        value = (struct bytes){ r->job->mapping, strlen(r->job->mapping) };
    if (!value.data) {
        text_print(r->reply, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
        return PMI_ANSWERED;
    }
    return answer_with(r, "cmd=get_result rc=0 msg=success value=", value);
}

static enum pmi_outcome barrier_in(struct pmi_request_line *r)
{
    (void)r;
    return PMI_WAITS;
}

static enum pmi_outcome finalize(struct pmi_request_line *r)
{
    r->client->state = PMI_FINALIZED;
    text_print(r->reply, "cmd=finalize_ack rc=0\n");
    return PMI_ANSWERED;
}

/* Reads an abort.  Its message may contain spaces.  A '?' replaces each character that is not
 * printable ASCII, since a terminal would obey control characters. */
static enum pmi_outcome abort_job(struct pmi_request_line *r)
{
    const struct bytes message = rest_of(r, "message");
    const unsigned char *from = message.data;
    size_t i;

    r->abort->code = pmi_number_of(r, "exitcode", 1);
    for (i = 0; i < message.size && i < sizeof r->abort->message - 1; i++)
        r->abort->message[i] = from[i] < ' ' || from[i] > '~' ? '?' : (char)from[i];
    r->abort->message[i] = '\0';
    return PMI_ABORTS;
}

/* ---- Names: seen on one node only -------------------------------------------- */

static const char one_node[] = "ctrun_publishes_names_in_jobs_of_one_node_only";

static enum pmi_outcome publish_name(struct pmi_request_line *r)
{
    const struct bytes service = word_of(r, "service"), port = rest_of(r, "port");
    const char *why = r->job->is_alone ? NULL : one_node;

    if (!service.data || !port.data)
        return PMI_WRONG;
    r->client->put += service.size + port.size + PUT_COST;
    if (!why && (service.size == 0 || r->client->put > PMI_RANK_MOST))
        why = "too_many_names";
    if (!why && pmi_space_get(&r->job->names, service).data)
        why = "name_is_published_already";
    if (!why && pmi_space_put(&r->job->names, service, port) < 0)
        why = "out_of_memory";
    text_print(r->reply, "cmd=publish_result info=%s rc=%d msg=%s\n", why ? "fail" : "ok",
               why ? -1 : 0, why ? why : "success");
    return PMI_ANSWERED;
}

static enum pmi_outcome unpublish_name(struct pmi_request_line *r)
{
    const struct bytes service = word_of(r, "service");
    const int is_there = service.data && pmi_space_get(&r->job->names, service).data;

    if (!service.data)
        return PMI_WRONG;
    if (is_there)
        pmi_space_remove(&r->job->names, service);
    text_print(r->reply, "cmd=unpublish_result info=%s rc=%d msg=%s\n", is_there ? "ok" : "fail",
               is_there ? 0 : -1, is_there ? "success" : "name_is_not_published");
    return PMI_ANSWERED;
}

static enum pmi_outcome lookup_name(struct pmi_request_line *r)
{
    const struct bytes service = word_of(r, "service");
    struct bytes port;

    if (!service.data)
        return PMI_WRONG;
    port = pmi_space_get(&r->job->names, service);
    if (!port.data) {
        text_print(r->reply, "cmd=lookup_result info=fail rc=-1 msg=%s\n",
                   r->job->is_alone ? "name_is_not_published" : one_node);
        return PMI_ANSWERED;
    }
    return answer_with(r, "cmd=lookup_result info=ok rc=0 msg=success port=", port);
}

/* ---- Spawn ------------------------------------------------------------------- */

/* Reads a line of a spawn, which ends with the line "endcmd".  After the last spawn of a request,
 * the reply refuses the request, since ctrun does not start further processes. */
static enum pmi_outcome within_spawn(struct pmi_request_line *r)
{
    struct pmi_client *client = r->client;

    if (pmi_is_word(first_of(r, "mcmd"), "spawn"))
        *client = (struct pmi_client){ client->state, client->put, client->is_full, 1, 1, 1 };
    else if (first_of(r, "totspawns").data)
        client->spawns = pmi_number_of(r, "totspawns", 1);
    else if (first_of(r, "spawnssofar").data)
        client->spawn = pmi_number_of(r, "spawnssofar", 1);
    else if (r->size == 6 && !memcmp(r->line, "endcmd", 6)) {
        client->in_spawn = 0;
        if (client->spawn >= client->spawns)
            text_print(r->reply,
                       "cmd=spawn_result rc=-1 msg=ctrun_spawns_no_processes errcodes=-1\n");
    }
    return PMI_ANSWERED;
}

/* ---- One line ---------------------------------------------------------------- */

static const struct {
    const char *name;
    enum pmi_outcome (*act)(struct pmi_request_line *r);
} requests[] = {
    { "init", init },
    { "get_maxes", get_maxes },
    { "get_appnum", get_appnum },
    { "get_my_kvsname", get_my_kvsname },
    { "get_universe_size", get_universe_size },
    { "put", pmi_put },
    { "get", pmi_get },
    { "barrier_in", barrier_in },
    { "finalize", finalize },
    { "abort", abort_job },
    { "publish_name", publish_name },
    { "unpublish_name", unpublish_name },
    { "lookup_name", lookup_name },
};

enum pmi_outcome pmi_request(struct pmi_job *job, struct pmi_client *client, const char *line,
                             size_t size, struct text *reply, struct pmi_abort *abort)
{
    struct pmi_request_line r = { line, size, job, client, reply, abort };
    const struct bytes name = word_of(&r, "cmd");

    if (client->in_spawn || pmi_is_word(first_of(&r, "mcmd"), "spawn"))
        return within_spawn(&r);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (pmi_is_word(name, requests[i].name))
            return requests[i].act(&r);
    return PMI_WRONG;
}
