/* SPDX-License-Identifier: Apache-2.0 */
/* speaks_pmi.c - a worker that speaks PMI 1.1 as programs of the MPICH family do, without an MPI:
 *   speaks_pmi WHAT [RANK [NUMBER]]   RANK does something else than the others */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *to, *from;
static int rank, size;
static char space[256];

static char *reply(void)
{
    static char line[8192];

    if (!fgets(line, sizeof line, from)) {
        fprintf(stderr, "rank %d: ctrun closed PMI_FD\n", rank);
        exit(9);
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static char *ask(const char *request)
{
    fprintf(to, "%s\n", request);
    fflush(to);
    return reply();
}

static void must(const char *request, const char *expected)
{
    const char *got = ask(request);

    if (strncmp(got, expected, strlen(expected)) != 0) {
        fprintf(stderr, "rank %d: %s: \"%s\" and not \"%s\"\n", rank, request, got, expected);
        exit(8);
    }
}

static void begin(void)
{
    const char *name;

    must("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1");
    must("cmd=get_maxes", "cmd=maxes kvsname_max=");
    must("cmd=get_appnum", "cmd=appnum appnum=0");
    name = strstr(ask("cmd=get_my_kvsname"), "kvsname=");
    sscanf(name, "kvsname=%255s", space);
}

static void barrier(void)
{
    must("cmd=barrier_in", "cmd=barrier_out");
}

static void put(const char *key, const char *value)
{
    char request[2048];

    snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s value=%s", space, key, value);
    must(request, "cmd=put_result rc=0");
}

/* NULL: no rank has put it. */
static const char *get(const char *key)
{
    char request[512];
    char *got, *value;

    snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s", space, key);
    got = ask(request);
    value = strstr(got, "value=");
    return strstr(got, "rc=0") && value ? value + 6 : NULL;
}

static void finalize(void)
{
    must("cmd=finalize", "cmd=finalize_ack");
}

static char *key_of(int of, int i, char key[64])
{
    snprintf(key, 64, "card-%d-%d", of, i);
    return key;
}

/* A value that only that key has, of `bytes`. */
static char *value_of(int of, int i, int bytes, char value[1024])
{
    const int used = snprintf(value, 1024, "%d.%d.", of, i);

    memset(value + used, 'a' + (of + i) % 26, (size_t)(bytes - used));
    value[bytes] = '\0';
    return value;
}

#define MOST_READ 64

/* All ranks put `count` values of `bytes` bytes and read those of all, where ranks are many of
 * those that follow them. */
static void exchange(int count, int bytes)
{
    char key[64], value[1024];

    for (int i = 0; i < count; i++)
        put(key_of(rank, i, key), value_of(rank, i, bytes, value));
    barrier();
    for (int next = 0; next < size && next < MOST_READ; next++)
        for (int i = 0; i < count; i++) {
            const int of = (rank + next) % size;
            const char *got = get(key_of(of, i, key));

            if (!got || strcmp(got, value_of(of, i, bytes, value)) != 0) {
                fprintf(stderr, "rank %d read \"%.20s\" of rank %d\n", rank, got ? got : "(none)",
                        of);
                exit(8);
            }
        }
    barrier();
}

/* Never reads a reply, and never ends. */
static void flood(void)
{
    for (;;) {
        fprintf(to, "cmd=get_maxes\n");
        fflush(to);
    }
}

static void names(void)
{
    if (rank == 0)
        must("cmd=publish_name service=ocean port=tag#0$host$", "cmd=publish_result info=ok rc=0");
    barrier();
    must("cmd=lookup_name service=ocean",
         "cmd=lookup_result info=ok rc=0 msg=success port=tag#0$host$");
    must("cmd=lookup_name service=land", "cmd=lookup_result info=fail rc=-1");
    barrier();
    if (rank == 0)
        must("cmd=unpublish_name service=ocean", "cmd=unpublish_result info=ok rc=0");
}

static void refused(void)
{
    char request[2048] = "cmd=put key=long value=";
    const size_t head = strlen(request);

    must("mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\nargcnt=0\nendcmd\n"
         "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\nendcmd",
         "cmd=spawn_result rc=-1");
    memset(request + head, 'v', 1024);
    must(request, "cmd=put_result rc=-1 msg=value_too_long");
    must("cmd=put kvsname=another key=a value=b", "cmd=put_result rc=-1 msg=no_such_kvsname");
    must("cmd=get kvsname=another key=PMI_process_mapping", "cmd=get_result rc=-1");
    must("cmd=get_universe_size", "cmd=universe_size size=");
}

/* Puts values until one is refused. */
static void fill(void)
{
    char key[64], value[1024], request[2048];

    for (int i = 0; i < 10000; i++) {
        snprintf(request, sizeof request, "cmd=put key=%s value=%s", key_of(rank, i, key),
                 value_of(rank, i, 1000, value));
        if (strstr(ask(request), "rc=-1"))
            return;
    }
    exit(8);
}

static void obey(int number)
{
    (void)number;
    _exit(0);
}

/* What a rank that is not like the others does. */
static void misbehave(const char *what, int number)
{
    if (!strcmp(what, "abort")) {
        fprintf(to, "cmd=abort exitcode=%d message=the ocean is dry\n", number);
        fflush(to);
        pause(); /* it does not end by itself */
    } else if (!strcmp(what, "garbage")) {
        fprintf(to, "GET / HTTP/1.1\n");
        fflush(to);
        pause();
    } else if (!strcmp(what, "long")) {
        for (int i = 0; i < 100000; i++)
            putc('x', to);
        fflush(to);
        pause();
    } else if (!strcmp(what, "flood")) {
        flood();
    } else if (!strcmp(what, "leaves") || !strcmp(what, "obeys")) {
        exit(number);
    } else if (!strcmp(what, "sleeps")) {
        pause();
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "exchange";
    const int other = argc > 2 ? atoi(argv[2]) : -1, number = argc > 3 ? atoi(argv[3]) : 0;

    if (!getenv("PMI_FD")) {
        printf("no PMI\n");
        return 0;
    }
    rank = atoi(getenv("PMI_RANK"));
    size = atoi(getenv("PMI_SIZE"));
    to = fdopen(atoi(getenv("PMI_FD")), "w");
    from = fdopen(dup(atoi(getenv("PMI_FD"))), "r");
    if (!strcmp(what, "absent") && rank == other)
        return 0;
    begin();
    if (!strcmp(what, "obeys") && rank != other)
        signal(SIGTERM, obey);
    if (!strcmp(what, "obeys"))
        barrier();                /* now all others do */
    if (!strcmp(what, "again")) { /* the round before it has left nothing */
        char key[64];

        if (get(key_of(rank, 0, key)))
            return 8;
        exchange(1, 20);
        if (rank == other && !strcmp(getenv("TORCHELASTIC_RESTART_COUNT"), "0"))
            exit(3);
    } else if (!strcmp(what, "exchange")) {
        exchange(number > 0 ? number : 1, other > 0 ? other : 20);
    } else if (!strcmp(what, "mapping")) {
        printf("%s\n", get("PMI_process_mapping"));
    } else if (!strcmp(what, "names")) {
        names();
    } else if (!strcmp(what, "refused")) {
        refused();
    } else if (!strcmp(what, "fill")) {
        fill();
    } else if (rank == other) {
        misbehave(what, number);
    } else {
        barrier();
    }
    barrier();
    finalize();
    printf("rank %d of %d is done\n", rank, size);
    return 0;
}
