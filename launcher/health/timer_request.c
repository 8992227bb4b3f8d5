/* SPDX-License-Identifier: Apache-2.0 */
/* timer_request.c - one flat JSON object, read strictly.  Pure. */
#include "launcher/health/timer_request.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A name or value: where it begins, and how long it is without its quotes. */
struct token {
    enum { TOKEN_NONE, TOKEN_STRING, TOKEN_NUMBER, TOKEN_WORD } kind;
    const char *at;
    size_t length;
};

static const char *blanks(const char *at)
{
    return at + strspn(at, " \t\r");
}

/* Past the quote that ends a string; NULL: there is none. */
static const char *end_of_string(const char *at)
{
    while (*at && *at != '"' && (unsigned char)*at >= ' ') {
        if (*at == '\\' && !strchr("\"\\/bfnrtu", at[1] ? at[1] : '?'))
            return NULL;
        at += *at == '\\' ? 2 : 1;
    }
    return *at == '"' ? at + 1 : NULL;
}

/* -?digits(.digits)?(e[+-]?digits)? */
static const char *end_of_number(const char *at)
{
    const char *digits;

    at += *at == '-';
    digits = at;
    at += strspn(at, "0123456789");
    if (at == digits || (*digits == '0' && at > digits + 1))
        return NULL;
    if (*at == '.') {
        digits = ++at;
        at += strspn(at, "0123456789");
        if (at == digits)
            return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        digits = at;
        at += strspn(at, "0123456789");
        if (at == digits)
            return NULL;
    }
    return at;
}

static int is(const struct token *token, const char *text)
{
    return token->length == strlen(text) && !memcmp(token->at, text, token->length);
}

/* Reads one token, and the blanks behind it. */
static const char *take(const char *at, struct token *token)
{
    const char *end;

    *token = (struct token){ TOKEN_NONE, at, 0 };
    if (*at == '"') {
        token->kind = TOKEN_STRING;
        token->at = at + 1;
        end = end_of_string(at + 1);
        token->length = end ? (size_t)(end - at) - 2 : 0;
    } else if (*at == '-' || isdigit((unsigned char)*at)) {
        token->kind = TOKEN_NUMBER;
        end = end_of_number(at);
        token->length = end ? (size_t)(end - at) : 0;
    } else {
        token->kind = TOKEN_WORD;
        token->length = strspn(at, "aeflnrstu");
        end = at + token->length;
        if (!is(token, "true") && !is(token, "false") && !is(token, "null"))
            end = NULL;
    }
    return end ? blanks(end) : NULL;
}

/* A whole number of this range. */
static int whole(const struct token *token, double least, double most, double *value)
{
    *value = token->kind == TOKEN_NUMBER ? strtod(token->at, NULL) : NAN;
    return *value >= least && *value <= most && *value == floor(*value);
}

enum { VERSION = 1, PID = 2, SCOPE = 4, EXPIRES = 8, SIGNAL = 16, ALL = 31 };

/* The bit of the member that was read; 0: it is none of ours; -1: it can't be. */
static int member(struct timer_request *request, const struct token *name,
                  const struct token *value)
{
    double number;

    if (is(name, "version"))
        return whole(value, 1, 1, &number) ? VERSION : -1;
    if (is(name, "pid")) {
        if (!whole(value, 1, 1 << 30, &number))
            return -1;
        request->pid = (pid_t)number;
        return PID;
    }
    if (is(name, "signal")) {
        if (!whole(value, 0, NSIG - 1, &number))
            return -1;
        request->signal = (int)number;
        return SIGNAL;
    }
    if (is(name, "scope_id")) {
        if (value->kind != TOKEN_STRING || value->length >= sizeof request->scope)
            return -1;
        memcpy(request->scope, value->at, value->length);
        request->scope[value->length] = '\0';
        return SCOPE;
    }
    if (is(name, "expiration_time")) {
        request->expires = value->kind == TOKEN_NUMBER ? strtod(value->at, NULL) : NAN;
        return isfinite(request->expires) ? EXPIRES : -1;
    }
    return 0;
}

int timer_request_read(struct timer_request *request, const char *line)
{
    const char *at = blanks(line);
    int seen = 0;

    if (*at != '{')
        return -1;
    do {
        struct token name, value;
        int bit;

        at = take(blanks(at + 1), &name);
        if (!at || name.kind != TOKEN_STRING || *at != ':' || !(at = take(blanks(at + 1), &value)))
            return -1;
        if ((bit = member(request, &name, &value)) < 0 || (seen & bit))
            return -1;
        seen |= bit;
    } while (*at == ',');
    return *at == '}' && !*blanks(at + 1) && seen == ALL ? 0 : -1;
}
