/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wait.c - waiting for keys.
 *
 * The server has no timeouts: a wait that runs into its deadline is cancelled, the
 * keys that are missing are asked for and named, and then the connection is in step
 * again.  So is one that a death ends: nobody may be left to set the key. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/monitor/control_page.h"
#include "runtime/store/tcp_wire.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

enum {
    MOST_LOOKED_FOR = 64, /* keys of a wait that timed out */
    MOST_NAMED = 8
};

/* The server answers 1; before it 0, if the wait had just been released. */
static ct_status cancel_wait(struct wire *w, int *released)
{
    uint8_t answer = 0;
    ct_status status;

    wire_command(w, STORE_CANCEL_WAIT);
    status = wire_ask(w, &answer, 1);
    *released = status == CT_OK && answer == 0;
    if (*released)
        status = wire_get(w, &answer, 1);
    if (status == CT_OK && answer != 1)
        status =
            wire_break(w, CT_ERR_PEER, "it answered %d instead of 1 to a cancelled wait", answer);
    return status;
}

static ct_status missing(const struct wire *w, const struct bytes *keys, int count,
                         const uint8_t *absent, int looked_for, int64_t waited)
{
    char names[MOST_NAMED * (QUOTED_SIZE + 2) + 1] = "", others[64] = "", key[QUOTED_SIZE];
    size_t used = 0;
    int found = 0;

    for (int i = 0; i < looked_for; i++)
        if (absent[i] && found++ < MOST_NAMED)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     found > 1 ? ", " : "", wire_quote(keys[i], key));
    if (count > looked_for)
        snprintf(others, sizeof others, "%sperhaps some of %d others", found ? " and " : "",
                 count - looked_for);
    else if (found > MOST_NAMED)
        snprintf(others, sizeof others, " and %d other%s", found - MOST_NAMED,
                 found > MOST_NAMED + 1 ? "s" : "");
    return ct_fail(CT_ERR_TIMEOUT, "the store at %s: key%s %s%s %s not there after %lld ms",
                   w->where, found == 1 ? "" : "s", names, others,
                   found == 1 && !*others ? "is" : "are", (long long)waited);
}

ct_status wire_check_each(struct wire *w, const struct bytes *keys, int count, uint8_t *absent)
{
    for (int i = 0; i < count; i++) {
        wire_command(w, STORE_CHECK);
        wire_put_keys(w, &keys[i], 1);
    }
    return count > 0 ? wire_ask(w, absent, (size_t)count) : CT_OK;
}

/* CT_OK: they came at the last moment. */
static ct_status look_for(struct wire *w, const struct bytes *keys, int count, int64_t waited)
{
    const int looked_for = count < MOST_LOOKED_FOR ? count : MOST_LOOKED_FOR;
    uint8_t absent[MOST_LOOKED_FOR] = { 1 };
    ct_status status = CT_OK;
    int found = 0;

    if (count > 1)
        status = wire_check_each(w, keys, looked_for, absent);
    for (int i = 0; i < looked_for; i++)
        found += absent[i] == 0;
    if (status != CT_OK || found == count)
        return status;
    return missing(w, keys, count, absent, looked_for, waited);
}

/* ---- Deaths ------------------------------------------------------------------ */

void wire_tells(struct wire *w, struct control *control, uint32_t known, int any)
{
    if (w->control && w->alarm >= 0)
        descriptor_close(w->alarm);
    w->control = control && control->head ? control : NULL;
    w->alarm = w->control ? control_alarm(control) : -1;
    descriptor_own(w->alarm);
    w->known = known;
    w->any = any;
}

static const struct control_death *new_death(struct wire *w)
{
    const uint32_t told = w->control ? control_deaths(w->control) : 0;

    for (; w->known < told; w->known++) {
        const struct control_death *death = control_death(w->control, w->known);

        if (w->any || death->how != CLD_EXITED || death->code != 0)
            return death;
    }
    return NULL;
}

ct_status wire_look(struct wire *w)
{
    const struct control_death *death = new_death(w);
    char sentence[256];

    if (!death)
        return CT_OK;
    control_death_sentence(death, sentence, sizeof sentence);
    return ct_fail(CT_ERR_PEER, "%s", sentence);
}

/* 1: something came; 0: the deadline passed; -1: *death. */
static int answer_or_death(struct wire *w, int64_t deadline, const struct control_death **death)
{
    struct pollfd ready[2] = { { .fd = w->fd, .events = POLLIN },
                               { .fd = w->alarm, .events = POLLIN } };
    struct epoll_event event;

    if (!w->control)
        return wire_ready(w, deadline);
    while (w->taken == w->filled) {
        const int polled = (*death = new_death(w)) ? poll(ready, 1, 0)
                                                   : poll(ready, 2, time_left_ms(deadline, 60000));

        if (polled > 0 && ready[1].revents) /* its edge is taken; new_death() looks */
            epoll_wait(w->alarm, &event, 1, 0);
        if ((polled > 0 && ready[0].revents) || (polled < 0 && errno != EINTR))
            return 1;
        if (*death)
            return -1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
    return 1;
}

static ct_status say_death(struct wire *w, const struct bytes *keys,
                           const struct control_death *death)
{
    char key[QUOTED_SIZE], sentence[256];

    w->known++;
    control_death_sentence(death, sentence, sizeof sentence);
    return ct_fail(CT_ERR_PEER, "waiting for key %s of the store at %s: %s",
                   wire_quote(keys[0], key), w->where, sentence);
}

/* ---- A wait ------------------------------------------------------------------ */

ct_status wire_wait(struct wire *w, const struct bytes *keys, int count, int64_t deadline)
{
    const int64_t start = clock_ms();
    const struct control_death *death = NULL;
    char key[QUOTED_SIZE];
    uint8_t answer = 0;
    int released, came;
    ct_status status;

    wire_command(w, STORE_WAIT);
    wire_put_keys(w, keys, count);
    status = wire_send(w);
    if (status != CT_OK)
        return status;
    if (w->control && count > 0)
        control_waiting(w->control, "key %s of the store", wire_quote(keys[0], key));
    came = answer_or_death(w, deadline, &death);
    if (w->control)
        control_waiting(w->control, "%s", "");
    if (came > 0) {
        status = wire_get(w, &answer, 1);
        if (status == CT_OK && answer != 0)
            status = wire_break(w, CT_ERR_PEER, "it answered %d instead of 0", answer);
        return status;
    }
    status = cancel_wait(w, &released);
    if (status != CT_OK || released)
        return status;
    return death ? say_death(w, keys, death) : look_for(w, keys, count, clock_ms() - start);
}
