/* SPDX-License-Identifier: Apache-2.0 */
/* test_coordinator.c - what follows when a round has ended on all nodes.
 *
 * An elastic job with one agent, and another that comes while the round runs.  The store and its
 * connections are not there: the functions that send to agents are replaced here. */
#include "tests/harness.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/nodes/coordinator.h"
#include "runtime/util/clock.h"

static char agents[3]; /* agents are told apart by these addresses */
static void *notes[3];
static const struct store_agent_hooks *coordinator_hooks;
static struct nodes *nodes;
static struct plan last_plan;
static int rounds, stops, stop_signal, ends, last_code, told_over, closed, least, beats, newcomers;
static char refused[NODE_TEXT], waiting[NODE_TEXT], progress[NODE_TEXT], sent[NODE_TEXT];
static char told_stop[NODE_TEXT], told_beat[NODE_TEXT], clock_name[NODE_TEXT];

static struct store_agent *agent(int i)
{
    return (struct store_agent *)&agents[i];
}

/* ---- Instead of the store ------------------------------------------------------ */

void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg)
{
    (void)server;
    (void)arg;
    coordinator_hooks = hooks;
}

void store_agent_send(struct store_agent *to, int type, const void *data, size_t bytes)
{
    (void)to;
    told_over += type == NODE_OVER;
    beats += type == NODE_BEAT;
    if (type == NODE_STOP)
        node_text(told_stop, NODE_TEXT, data, bytes);
    if (type == NODE_BEAT)
        node_text(told_beat, NODE_TEXT, data, bytes);
    if (type == NODE_REFUSED || type == NODE_WAITING || type == NODE_PROGRESS)
        node_text(type == NODE_REFUSED   ? refused
                  : type == NODE_WAITING ? waiting
                                         : sent,
                  NODE_TEXT, data, bytes);
}

void store_agent_send_shared(struct store_agent *to, int type, const void *data, size_t bytes,
                             struct value **shared)
{
    (void)shared;
    store_agent_send(to, type, data, bytes);
}

void store_agent_flush(struct store_agent *to)
{
    (void)to;
}

int store_server_newcomers(const struct store_server *server)
{
    (void)server;
    return newcomers;
}

void store_server_accept_no_more(struct store_server *server)
{
    (void)server;
}

void store_agent_end(struct store_agent *to)
{
    (void)to;
    closed++;
}

void store_agent_note(struct store_agent *to, void *note)
{
    notes[(const char *)to - agents] = note;
}

void *store_agent_noted(const struct store_agent *to)
{
    return notes[(const char *)to - agents];
}

void job_rendezvous_new_round(struct job_rendezvous *meet)
{
    (void)meet;
}

void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause)
{
    (void)meet;
    (void)rank;
    (void)cause;
}

/* ---- The job ------------------------------------------------------------------- */

static void on_round(void *job, const struct plan *plan)
{
    (void)job;
    last_plan = *plan;
    rounds++;
}

static void on_stop(void *job, int number, int rank, const char *why)
{
    (void)job;
    (void)rank;
    (void)why;
    stop_signal = number;
    stops++;
}

static void on_over(void *job, int code, int rank, const char *why)
{
    (void)job;
    (void)rank;
    assert_string_equal(why, "");
    last_code = code;
    ends++;
}

static void on_root_cause(void *job, struct failure *root, char what[NODE_TEXT])
{
    (void)job;
    (void)root;
    what[0] = 0;
}

static void on_stop_asked(void *job, int for_good)
{
    (void)job;
    (void)for_good;
}

static void on_died(void *job, const struct control_death *death, int count)
{
    (void)job;
    (void)death;
    (void)count;
}

static void on_member(void *job, int node, int there)
{
    (void)job;
    (void)node;
    (void)there;
}

static void on_waits(void *job, const char *text)
{
    (void)job;
    snprintf(progress, sizeof progress, "%s", text);
}

/* It is this ctrun's own. */
static void on_clock(void *job, const struct clock_reading *reading)
{
    (void)job;
    assert_true(reading->asked_ns == 0 && reading->shown_ns == 0 && reading->heard_ns == 0);
    snprintf(clock_name, sizeof clock_name, "%s", reading->clock);
}

static const struct nodes_hooks hooks = { .round = on_round,
                                          .member = on_member,
                                          .stop = on_stop,
                                          .over = on_over,
                                          .root_cause = on_root_cause,
                                          .died = on_died,
                                          .stop_asked = on_stop_asked,
                                          .waits = on_waits,
                                          .clock = on_clock };

static void tell(int i, int type, const char *text)
{
    coordinator_hooks->said(nodes, agent(i), type, text, strlen(text));
}

static void join(int i)
{
    char text[128];

    snprintf(text, sizeof text, "-1 %d 3 1 %s host%d 1 1 r job", least, CT_VERSION, i);
    tell(i, NODE_JOIN, text);
}

/* A round of this node and one agent. */
static void start(struct event_base *base, int min, int own_workers)
{
    static struct options options;
    static struct job_rendezvous meet;

    options = (struct options){ .nnodes = { min, 3 }, .role = "r", .rdzv_conf.join_timeout = 600 };
    least = min;
    meet = (struct job_rendezvous){ .run_id = "job",
                                    .generation = "g",
                                    .address = "hosta",
                                    .port = 29400,
                                    .title = "the coordinator",
                                    .is_elastic = 1 };
    rounds = stops = ends = told_over = closed = 0;
    refused[0] = waiting[0] = progress[0] = sent[0] = 0;
    memset(notes, 0, sizeof notes);
    nodes = nodes_coordinator(base, &meet, &options, own_workers, &hooks, NULL);
    assert_non_null(nodes);
    nodes->ops->start(nodes);
}

static void begin_round(struct event_base *base, int min)
{
    start(base, min, 1);
    join(0);
    if (rounds == 0) /* the last call is over */
        rounds_begin((struct coordinator *)nodes);
}

/* A node joins while the last words of the round are under way; then the round ends with these. */
static void end_round(struct event_base *base, const struct round_end *own, const char *text)
{
    begin_round(base, 2);
    join(1);
    assert_int_equal(stops, 1);
    tell(0, NODE_ENDED, text);
    nodes->ops->ended(nodes, own);
}

static void a_node_that_comes_when_all_are_done_does_not_begin_the_job_again(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    end_round(base, &(struct round_end){ -1, 1 }, "-1 1");
    assert_int_equal(rounds, 1);
    assert_int_equal(told_over, 2);
    for (int i = 0; i < 2; i++)
        coordinator_hooks->left(nodes, agent(i), 0);
    assert_int_equal(ends, 1);
    assert_int_equal(last_code, 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* Nodes 0 and 1 have left, and of node 2 there is only a connection. */
static void a_node_that_comes_at_the_end_is_told_of_it(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    newcomers = 1;
    end_round(base, &(struct round_end){ -1, 1 }, "-1 1");
    for (int i = 0; i < 2; i++)
        coordinator_hooks->left(nodes, agent(i), 0);
    assert_int_equal(ends, 0);
    join(2);
    assert_int_equal(told_over, 3);
    assert_int_equal(closed, 1);
    assert_string_equal(refused, "");
    newcomers = 0;
    event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(ends, 1);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_node_that_comes_before_begins_the_next_round(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    end_round(base, &(struct round_end){ -1, 1 }, "-1 0");
    assert_int_equal(rounds, 2);
    assert_int_equal(told_over, 0);
    nodes->ops->destroy(nodes);
    end_round(base, &(struct round_end){ 0, 0 }, "-1 1");
    assert_int_equal(rounds, 2);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* Its host is taken away, say.  Asked for it, all ranks stop at a common step and exit with 75. */
static void agent_leaves(void)
{
    char text[16];

    tell(0, NODE_ASK_STOP, "g 1");
    snprintf(text, sizeof text, "%d", SIGTERM);
    tell(0, NODE_SIGNALLED, text);
    assert_int_equal(stops, 1);
    tell(0, NODE_ENDED, "75 0");
    nodes->ops->ended(nodes, &(struct round_end){ 75, 0 });
}

static void a_node_that_is_told_to_stop_leaves_and_the_others_begin_again(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 1);
    agent_leaves();
    assert_int_equal(ends, 0);
    assert_int_equal(told_over, 1); /* the one that leaves */
    if (rounds == 1)
        rounds_begin((struct coordinator *)nodes);
    assert_int_equal(rounds, 2);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void where_too_few_would_stay_the_job_ends_with_the_code_of_its_ranks(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 2);
    agent_leaves();
    assert_int_equal(told_over, 1);
    coordinator_hooks->left(nodes, agent(0), 0);
    assert_int_equal(ends, 1);
    assert_int_equal(last_code, 75);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* The round would wait for ever for an end that was not understood. */
static void a_node_whose_words_can_not_be_read_is_closed(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 2);
    tell(0, NODE_BEAT, "");
    tell(0, 250, "a type that a newer version may have");
    assert_int_equal(closed, 0);
    tell(0, NODE_ENDED, "-1");
    assert_int_equal(closed, 1);
    assert_int_equal(ends, 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_beat_that_asks_for_the_clock_is_answered_at_once(void **state)
{
    struct event_base *base = event_base_new();
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    struct clock_reading reading;

    (void)state;
    begin_round(base, 2);
    tell(0, NODE_BEAT, "1f");
    assert_int_equal(clock_reading_read(told_beat, &reading), 0);
    assert_int_equal(reading.asked_ns, 0x1f);
    assert_true(reading.shown_ns >= before && reading.shown_ns <= clock_ns(CLOCK_MONOTONIC));
    assert_string_equal(reading.clock, clock_name);
    assert_true(*clock_name);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* Whatever process asks, on whatever host name: a successor here has the same clock. */
static void the_clock_is_named_by_the_kernel_that_keeps_it(void **state)
{
    struct event_base *base = event_base_new();
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    struct stat space = { .st_ino = 0 };
    char boot[40], name[80];

    (void)state;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%39s", boot), 1);
    fclose(file);
    stat("/proc/self/ns/time", &space);
    snprintf(name, sizeof name, "%s/%llu", boot, (unsigned long long)space.st_ino);
    begin_round(base, 2);
    assert_string_equal(clock_name, name);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_beat_that_asks_for_what_is_no_time_closes_the_node(void **state)
{
    static const char *const wrong[] = { "-1",  "x",
                                         " 1",  "de0b6b3a7640001",
                                         "1 x", "10000000000000000" };
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 2);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tell(0, NODE_BEAT, wrong[i]);
        assert_int_equal(closed, i + 1);
    }
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* While it starts a thousand workers its event loop stands still. */
static void agents_get_a_heartbeat_from_one_that_is_busy(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 2);
    beats = 0;
    nodes->ops->alive(nodes);
    assert_int_equal(beats, 1);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_node_of_another_version_is_told_both(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    begin_round(base, 2);
    tell(1, NODE_JOIN, "-1 2 3 1 9.9 host1 1 1 r job");
    assert_string_equal(refused, "it has ctrun 9.9, the coordinator has " CT_VERSION);
    assert_int_equal(closed, 1);
    assert_int_equal(stops, 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* The job goes on (--on-failure=continue) without a node that was lost and is started again. */
static void a_node_that_was_lost_has_no_place_in_a_fixed_job(void **state)
{
    static const struct options options = { .nnodes = { 2, 2 },
                                            .role = "r",
                                            .on_failure = { 1, 1 } };
    static struct job_rendezvous meet = { .run_id = "job", .generation = "g", .title = "node 0" };
    struct event_base *base = event_base_new();

    (void)state;
    rounds = stops = closed = 0;
    memset(notes, 0, sizeof notes);
    nodes = nodes_coordinator(base, &meet, &options, 1, &hooks, NULL);
    nodes->ops->start(nodes);
    tell(0, NODE_JOIN, "1 2 2 1 " CT_VERSION " host1 7 1 r job");
    assert_int_equal(rounds, 1);
    tell(1, NODE_JOIN, "1 2 2 1 " CT_VERSION " host2 8 1 r job");
    assert_string_equal(refused, "host1 (pid 7) has --node-rank=1 already");
    coordinator_hooks->left(nodes, agent(0), 0);
    tell(1, NODE_JOIN, "1 2 2 1 " CT_VERSION " host1 9 1 r job");
    assert_string_equal(refused, "the job runs without it");
    assert_int_equal(closed, 2);
    assert_int_equal(stops, 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* After 5 s this ctrun alone says it; a long wait is said on all nodes. */
static void the_nodes_that_wait_are_told_for_what(void **state)
{
    struct event_base *base = event_base_new();
    struct coordinator *c;
    char wanted[200];

    (void)state;
    start(base, 3, 1);
    join(0);
    c = (struct coordinator *)nodes;
    c->since -= 6000;
    join_tick(c);
    assert_string_equal(waiting, "");
    c->since -= 30000;
    join_tick(c);
    snprintf(wanted, sizeof wanted,
             "waiting 36 s: 2 nodes are at hosta port 29400 (%s, host0), 3 to 3 make the job",
             c->own.host);
    assert_string_equal(waiting, wanted);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_terminal_shows_how_far_the_wait_is_on_each_node(void **state)
{
    struct event_base *base = event_base_new();
    struct coordinator *c;

    (void)state;
    start(base, 2, 0);
    c = (struct coordinator *)nodes;
    join(0);
    join_tick(c);
    assert_string_equal(progress, ""); /* for less than a second */
    c->since -= 2000;
    join_tick(c);
    assert_string_equal(progress, "waiting 2 of 600 s: 1 of 2 to 3 nodes has joined");
    assert_string_equal(sent, progress);
    c->last_call = c->since + 7000;
    join_tick(c);
    assert_string_equal(progress, "waiting 2 s: 1 of 2 to 3 nodes have joined; it begins in 5 s");
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* The wait would never be said, nor ever be over, while nodes come. */
static void a_node_that_comes_does_not_put_off_the_tick(void **state)
{
    struct event_base *base = event_base_new();
    struct coordinator *c;
    struct timeval before;

    (void)state;
    start(base, 3, 1);
    c = (struct coordinator *)nodes;
    before = c->tick.ev_timeout;
    usleep(2000);
    event_base_loop(base, EVLOOP_NONBLOCK);
    join(0);
    assert_true(event_pending(&c->tick, EV_TIMEOUT, NULL));
    assert_true(evutil_timercmp(&before, &c->tick.ev_timeout, ==));
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* A coordinator without workers is no node: MIN is 2, and two agents are needed. */
static void a_coordinator_without_workers_survives_the_node_of_rank_0(void **state)
{
    struct event_base *base = event_base_new();
    struct coordinator *c;

    (void)state;
    start(base, 2, 0);
    c = (struct coordinator *)nodes;
    join(0);
    assert_int_equal(c->last_call, 0);
    join(1);
    assert_true(c->last_call > 0);
    rounds_begin(c);
    assert_int_equal(last_plan.node, -1);
    assert_int_equal(last_plan.nodes, 2);
    assert_int_equal(last_plan.world, 2);
    assert_ptr_equal(c->ranked[0]->agent, agent(0));

    coordinator_hooks->left(nodes, agent(0), 0);
    assert_int_equal(stops, 1);
    tell(1, NODE_ENDED, "-1 0");
    assert_int_equal(rounds, 1); /* one node is too few */
    assert_int_equal(ends, 0);
    join(0);
    assert_int_equal(rounds, 2);
    assert_ptr_equal(c->ranked[0]->agent, agent(1)); /* it was there before */

    tell(0, NODE_ENDED, "-1 1");
    tell(1, NODE_ENDED, "-1 1");
    assert_int_equal(told_over, 2);
    for (int i = 0; i < 2; i++)
        coordinator_hooks->left(nodes, agent(i), 0);
    assert_int_equal(ends, 1);
    assert_int_equal(last_code, 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

/* Two nodes of a fixed job; the agent sends node 0 `what`. */
static void told(struct event_base *base, const char *what)
{
    static const struct options options = { .nnodes = { 2, 2 }, .role = "r" };
    static struct job_rendezvous meet = { .run_id = "job", .generation = "g", .title = "node 0" };

    rounds = stops = ends = told_over = 0;
    told_stop[0] = 0;
    memset(notes, 0, sizeof notes);
    nodes = nodes_coordinator(base, &meet, &options, 1, &hooks, NULL);
    nodes->ops->start(nodes);
    tell(0, NODE_JOIN, "1 2 2 1 " CT_VERSION " host1 7 1 r job");
    assert_int_equal(rounds, 1);
    if (*what)
        tell(0, NODE_SIGNALLED, what);
    else
        nodes->ops->signalled(nodes, SIGINT);
}

static void a_signal_to_one_ctrun_is_the_one_that_the_workers_of_all_get(void **state)
{
    struct event_base *base = event_base_new();

    (void)state;
    told(base, "2");
    assert_int_equal(stops, 1);
    assert_int_equal(stop_signal, SIGINT);
    nodes->ops->destroy(nodes);
    told(base, "");
    assert_int_equal(strncmp(told_stop, "2 -1 node 0 (", 13), 0);
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

static void a_host_that_lost_the_ctrun_of_hosts_ends_the_job_with_1(void **state)
{
    struct event_base *base = event_base_new();
    struct coordinator *c;

    (void)state;
    told(base, "0");
    c = (struct coordinator *)nodes;
    assert_int_equal(stop_signal, SIGTERM);
    assert_int_equal(c->code, 1);
    assert_string_equal(c->why, "node 1 (host1): it lost its connection to the ctrun of --hosts");
    nodes->ops->destroy(nodes);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agents_get_a_heartbeat_from_one_that_is_busy),
        cmocka_unit_test(a_node_of_another_version_is_told_both),
        cmocka_unit_test(a_node_that_was_lost_has_no_place_in_a_fixed_job),
        cmocka_unit_test(the_nodes_that_wait_are_told_for_what),
        cmocka_unit_test(a_terminal_shows_how_far_the_wait_is_on_each_node),
        cmocka_unit_test(a_node_that_comes_does_not_put_off_the_tick),
        cmocka_unit_test(a_coordinator_without_workers_survives_the_node_of_rank_0),
        cmocka_unit_test(a_node_that_comes_when_all_are_done_does_not_begin_the_job_again),
        cmocka_unit_test(a_node_that_comes_at_the_end_is_told_of_it),
        cmocka_unit_test(a_node_that_comes_before_begins_the_next_round),
        cmocka_unit_test(a_node_that_is_told_to_stop_leaves_and_the_others_begin_again),
        cmocka_unit_test(where_too_few_would_stay_the_job_ends_with_the_code_of_its_ranks),
        cmocka_unit_test(a_node_whose_words_can_not_be_read_is_closed),
        cmocka_unit_test(the_clock_is_named_by_the_kernel_that_keeps_it),
        cmocka_unit_test(a_beat_that_asks_for_the_clock_is_answered_at_once),
        cmocka_unit_test(a_beat_that_asks_for_what_is_no_time_closes_the_node),
        cmocka_unit_test(a_signal_to_one_ctrun_is_the_one_that_the_workers_of_all_get),
        cmocka_unit_test(a_host_that_lost_the_ctrun_of_hosts_ends_the_job_with_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
