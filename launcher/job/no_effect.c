/* SPDX-License-Identifier: Apache-2.0 */
/* no_effect.c - logs a line for each option that has no effect.  The job continues, since torchrun
 * accepts the same options.
 *
 * options.c and rendezvous_options.c refuse options that contradict each other.  No line is logged
 * if the option's result holds anyway (--no-fold into a file), if other nodes of the job use the
 * option, or if --help says that it has no effect.  An environment variable without an effect is
 * ignored, since it may be meant for other jobs; a Kubernetes pod has PET_NNODES and more.  But an
 * unknown key of --rdzv-conf, and a feature that only torchrun has, are always logged, because a
 * program may depend on them. */
#include "launcher/job/no_effect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/log.h"

/* Logs the line unless the option came from the environment. */
static void no_effect_say(const struct options *options, enum option option, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

static void no_effect_say(const struct options *options, enum option option, const char *format,
                          ...)
{
    char words[600], text[256];
    va_list args;

    if (options->settings[option].from == FROM_ENVIRONMENT)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    setting_words(options, option, words, sizeof words);
    log_line(LOG_WARN, "%s%s", words, text);
}

static void say_if(int idle, const struct options *options, enum option option, const char *why)
{
    if (idle && options->settings[option].from != FROM_DEFAULT)
        no_effect_say(options, option, " has no effect: %s", why);
}

static void check_standalone(const struct options *o)
{
    struct nodes_range asked = { 1, 1 };
    struct why why;

    parse_nnodes(o->settings[OPTION_NNODES].text, &asked, &why);
    say_if(asked.max > 1, o, OPTION_NNODES, "--standalone runs on one node");
    say_if(o->node_rank > 0, o, OPTION_NODE_RANK, "--standalone runs on one node");
    say_if(1, o, OPTION_MASTER_ADDR, "--standalone stays on 127.0.0.1");
    say_if(o->master_port > 0, o, OPTION_MASTER_PORT, "--standalone takes any free port");
    say_if(1, o, OPTION_LOCAL_ADDR, "--standalone stays on 127.0.0.1");
    say_if(strcmp(o->rdzv_backend, "static") != 0, o, OPTION_RDZV_BACKEND,
           "--standalone meets no other node");
    say_if(*o->rdzv_endpoint, o, OPTION_RDZV_ENDPOINT, "--standalone meets no other node");
}

/* Logs an unknown key of --rdzv-conf, which torchrun ignores silently. */
static void check_keys(const struct options *o)
{
    const char *meant = o->rdzv_conf.meant;
    char words[600];

    if (!*o->rdzv_conf.unknown)
        return;
    setting_words(o, OPTION_RDZV_CONF, words, sizeof words);
    log_line(LOG_WARN, "%s: the key '%s' has no effect%s%s%s", words, o->rdzv_conf.unknown,
             meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

static void check_meeting(const struct options *o, const struct meeting *meeting)
{
    const int alone = meeting->kind == MEET_ALONE, fixed = meeting->kind == MEET_STATIC;
    const int endpoint = *o->rdzv_endpoint != '\0';
    const char *idle = alone ? NULL : rdzv_conf_idle(&o->rdzv_conf, !fixed);

    say_if(alone && *o->settings[OPTION_RDZV_CONF].text, o, OPTION_RDZV_CONF,
           "one node meets no other");
    if (idle)
        no_effect_say(o, OPTION_RDZV_CONF, ": the key '%s' has no effect with --rdzv-backend=%s",
                      idle, o->rdzv_backend);
    check_keys(o);
    if (o->standalone) {
        check_standalone(o);
        return;
    }
    say_if(alone && o->node_rank > 0, o, OPTION_NODE_RANK, "the job has one node");
    if (fixed && o->nnodes.min < o->nnodes.max)
        no_effect_say(
            o, OPTION_NNODES,
            " has no effect as a range: the job waits for all %d nodes; --rdzv-backend=c10d begins "
            "with %d",
            o->nnodes.max, o->nnodes.min);
    say_if(endpoint, o, OPTION_MASTER_ADDR, "--rdzv-endpoint says where the nodes meet");
    say_if(endpoint, o, OPTION_MASTER_PORT, "--rdzv-endpoint says where the nodes meet");
    say_if(alone && o->master_addr, o, OPTION_LOCAL_ADDR, "--master-addr says where the store is");
}

/* Logs requests for features that only torchrun has. */
static void check_left_out(const struct options *o)
{
    const char *const timers = getenv("TORCHELASTIC_ENABLE_FILE_TIMER");
    char words[600];

    setting_words(o, OPTION_EVENT_LOG_HANDLER, words, sizeof words);
    if (!strcmp(o->event_log_handler, "console"))
        log_line(LOG_WARN, "%s has no effect: --events=FILE writes what happens as JSON lines",
                 words);
    if (timers && !strcmp(timers, "1"))
        log_line(LOG_WARN, "TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect: ctrun kills no worker "
                           "whose timer expired; --stall=TIME says which ranks hang");
}

static void check_program(const struct options *o)
{
    const char *slurm = getenv("SLURM_JOB_ID"), *end = getenv("SLURM_JOB_END_TIME"),
               *secret = getenv("CT_STORE_SECRET");

    say_if(o->run_path, o, OPTION_NO_PYTHON, "--run-path takes precedence");
    say_if(o->run_path, o, OPTION_MODULE, "--run-path takes precedence");
    say_if(o->max_restarts.most == 0, o, OPTION_RESTART, "--max-restarts is 0");
    say_if(o->deadline != NULL, o, OPTION_DEADLINE_MARGIN, "--deadline says when");
    say_if(!o->deadline && !(slurm && *slurm) && !(end && *end), o, OPTION_DEADLINE_MARGIN,
           "this is not a Slurm job (SLURM_JOB_ID is not set)");
    say_if(!o->trace, o, OPTION_TRACE_SIZE, "there is no --trace");
    say_if(o->store_request > o->store_memory, o, OPTION_STORE_REQUEST, "--store-memory is less");
    say_if(o->encrypt, o, OPTION_STORE_ALLOW,
           "--encrypt refuses clients on other hosts that do not encrypt");
    say_if(o->explain, o, OPTION_DRY_RUN, "--explain takes precedence");
    say_if(o->settings[OPTION_STORE_SECRET_FILE].from != FROM_COMMAND_LINE && secret && *secret, o,
           OPTION_STORE_SECRET_FILE, "CT_STORE_SECRET takes precedence");
}

static int names_more(const struct stream_spec *spec, int size)
{
    for (int i = size; i < (int)sizeof spec->ranks; i++)
        if (spec->ranks[i] != spec->all)
            return 1;
    return 0;
}

static int tees(const struct stream_spec *spec, int bit)
{
    int found = spec->all & bit;

    for (size_t i = 0; i < sizeof spec->ranks; i++)
        found |= spec->ranks[i] & bit;
    return found;
}

static int shows_some(const char *filter, int size)
{
    for (int i = 0; i < size; i++)
        if (rank_filter_has(filter, i))
            return 1;
    return 0;
}

/* Logs options that name local ranks which do not exist.  Called only for a job of one node, since
 * another node may have local ranks that this node lacks. */
static void check_ranks(const struct options *o, int size)
{
    if (names_more(&o->redirects, size))
        no_effect_say(o, OPTION_REDIRECTS, ": the local ranks are 0 to %d", size - 1);
    if (names_more(&o->tee, size))
        no_effect_say(o, OPTION_TEE, ": the local ranks are 0 to %d", size - 1);
    if (!shows_some(o->local_ranks_filter, size))
        no_effect_say(o, OPTION_LOCAL_RANKS_FILTER,
                      ": the local ranks are 0 to %d; the output of none is shown", size - 1);
}

static void check_output(const struct options *o)
{
    const int no_files = o->log_dir && !strcmp(o->log_dir, "/dev/null");

    say_if(no_files && tees(&o->redirects, 3), o, OPTION_REDIRECTS, "--log-dir is /dev/null");
    say_if(no_files && tees(&o->tee, 3), o, OPTION_TEE, "--log-dir is /dev/null");
    say_if(!tees(&o->tee, 3), o, OPTION_LOG_LINE_PREFIX_TEMPLATE, "there is no --tee");
    say_if(!tees(&o->tee, 1), o, OPTION_DUPLICATE_STDOUT_FILTERS, "--tee has no stdout");
    say_if(!tees(&o->tee, 2), o, OPTION_DUPLICATE_STDERR_FILTERS, "--tee has no stderr");
}

void no_effect_words(const struct options *options, const struct meeting *meeting, int size)
{
    check_meeting(options, meeting);
    check_program(options);
    check_output(options);
    check_left_out(options);
    if (meeting->kind == MEET_ALONE || options->nnodes.max == 1)
        check_ranks(options, size);
}

void no_effect_ranks(const struct options *options, int world)
{
    int shown = !options->show;

    for (int rank = 0; rank < world && !shown; rank++)
        shown = ranks_have(options->show, rank, world);
    if (!shown)
        no_effect_say(options, OPTION_SHOW, ": the ranks are 0 to %d; the output of none is shown",
                      world - 1);
    if (options->on_failure.go_on && options->on_failure.least >= world)
        no_effect_say(options, OPTION_ON_FAILURE, " has no effect: of %d %s none may fail", world,
                      world == 1 ? "rank" : "ranks");
}
