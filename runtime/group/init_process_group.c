/* SPDX-License-Identifier: Apache-2.0 */
/* init_process_group.c - creates and destroys the default group, and creates groups at a caller's
 * store.
 *
 * An init reads the rank and size from the environment or the options (launcher_env.h).  Then it
 * opens the store (rendezvous.h), and creates the mesh and the group. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/parse_number.h"
#include "config/values/slurm.h"
#include "runtime/exchange/launcher_exchange.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/bootstrap/variables.h"
#include "runtime/group/group_extension.h"
#include "runtime/group/leftovers.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"

/* How long, in ms, a failed init waits for a death notice, and then for the other ranks. */
#define LATE_NOTICE_MS 1000
#define DEFAULT_TIMEOUT_MS (30 * 60 * 1000)

/* State of the default group; the group itself is in group.c. */
static struct {
    pthread_mutex_t lock; /* held during init and destroy */
    struct rendezvous rendezvous;
    struct control control; /* the page of ctrun; empty without ctrun */
    int local_rank;
    struct launcher_meeting meeting; /* used if mpirun or mpiexec started ranks on several hosts */
    int number;                      /* number of successful inits; part of the store's keys */
    _Atomic pid_t process;           /* the process of the last init; 0 before the first */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

void default_group_forget(void)
{
    default_group_set(NULL);
    leftovers_forget();
    memset(&world, 0, sizeof world);
    pthread_mutex_init(&world.lock, NULL); /* a thread of the parent may have held the lock */
}

int ct_is_initialized(void)
{
    return default_group() != NULL;
}

ct_store *ct_store_default(void)
{
    return default_group() ? world.rendezvous.store : NULL;
}

int ct_restart_count(void)
{
    const char *text = getenv("TORCHELASTIC_RESTART_COUNT");
    int count;

    return text && value_int(text, &count) == 0 && count >= 0 ? count : 0;
}

int ct_local_rank(void)
{
    struct identity who;

    if (default_group())
        return world.local_rank;
    return identity_read(NULL, &who) == CT_OK ? who.local_rank : 0;
}

static ct_status init_check_options(const ct_init_options *options)
{
    if (!options)
        return CT_OK;
    if (options->size != sizeof *options)
        return ct_fail(CT_ERR_INVALID,
                       "ct_init_options.size is %zu; start from "
                       "CT_INIT_OPTIONS_INIT",
                       options->size);
    if (options->timeout_ms != -1 && options->timeout_ms <= 0)
        return ct_fail(CT_ERR_INVALID, "ct_init_options.timeout_ms is %d; it must be positive",
                       options->timeout_ms);
    return CT_OK;
}

static ct_status init_timeout_of(const ct_init_options *options, struct limit *limit)
{
    const char *text = getenv("CT_TIMEOUT_MS");
    char *end;
    long value;

    *limit = (struct limit){ DEFAULT_TIMEOUT_MS, "default" };
    if (options && options->timeout_ms > 0) {
        *limit = (struct limit){ options->timeout_ms, "ct_init_options.timeout_ms" };
    } else if (text && *text) {
        value = strtol(text, &end, 10);
        if (*end || value <= 0 || value > INT32_MAX)
            return ct_fail(CT_ERR_INVALID,
                           "CT_TIMEOUT_MS=%s: it must be a number of milliseconds "
                           "from 1 to %d",
                           text, INT32_MAX);
        *limit = (struct limit){ (int)value, "CT_TIMEOUT_MS" };
    }
    return CT_OK;
}

/* Returns the number of death notices that do not concern this init.  That is 0 if all ranks of
 * ctrun's job are in this init, else the number of notices so far. */
static uint32_t deaths_before(const struct identity *who)
{
    const struct control *control = &world.control;

    return !control->head || who->size == control->world ? 0 : control_deaths(control);
}

static int has_new_death(const struct identity *who)
{
    return world.control.head && control_deaths(&world.control) > deaths_before(who);
}

/* If a death caused the failure of the init, sets ct_last_error() to that death and returns
 * CT_ERR_PEER.  Else returns `status`.  The death may be on another host.  Then its notice may come
 * LATE_NOTICE_MS after this rank has failed because of the death. */
static ct_status cause_of_failure(const struct identity *who, ct_status status)
{
    const uint32_t before = deaths_before(who);
    const int64_t until = clock_ms() + LATE_NOTICE_MS;
    char sentence[256];

    while (status == CT_ERR_PEER && who->agent_store && world.control.head && !has_new_death(who)
           && clock_ms() < until)
        poll(NULL, 0, 1);
    if ((status != CT_ERR_PEER && status != CT_ERR_TIMEOUT) || !has_new_death(who))
        return status;
    control_death_sentence(control_death(&world.control, before), sentence, sizeof sentence);
    return ct_fail_because(
        (struct blame){ control_death(&world.control, before)->rank, BLAME_DIED }, CT_ERR_PEER,
        "%s", sentence);
}

/* Tries to init once.  Returns CT_ERR_PEER if the store was closed.  Then rank 0 is just leaving an
 * earlier group, and the next try finds the new store. */
static ct_status init_once(const struct identity *who, const ct_init_options *options,
                           const struct group_extension *extension, struct limit limit,
                           int64_t deadline, ct_group **group)
{
    struct mesh *mesh = NULL;
    ct_status status;

    control_waiting(&world.control, "the store at %s:%d",
                    who->meeting ? who->meeting->address : who->address,
                    who->meeting ? who->meeting->port : who->port);
    status = rendezvous_open(&world.rendezvous, who, options, world.number, deadline);
    control_waiting(&world.control, "%s", "");
    if (status != CT_OK)
        return status;
    store_watch_deaths(world.rendezvous.store, &world.control, deaths_before(who), 1);
    status = mesh_create(world.rendezvous.store, who->rank, who->size, deadline, &mesh);
    if (status == CT_OK)
        status =
            group_create_root(mesh, world.rendezvous.store, "world", limit, NULL, extension, group);
    if (status == CT_OK) {
        world.rendezvous.store->faults = mesh->faults;
        store_watch_deaths(world.rendezvous.store,
                           options && options->store ? NULL : &world.control,
                           world.control.head ? control_deaths(&world.control) : 0, 0);
    } else {
        mesh_destroy(mesh);
        status = cause_of_failure(who, status);
        store_watch_deaths(world.rendezvous.store, NULL, 0, 0);
        /* The other ranks will fail soon, too.  Keeps the store open for them until then. */
        rendezvous_close(&world.rendezvous, clock_ms() + LATE_NOTICE_MS);
    }
    return status;
}

/* Replaces Slurm's name of rank 0's host by an address.  Leaves a name without an address as it is,
 * since the name may resolve later. */
static void init_find_slurm_node(struct identity *who)
{
    if (slurm_node_address(who->address, sizeof who->address) < 0)
        log_line(LOG_WAITS,
                 "rank 0's host, %s, does not resolve, and scontrol gives no other address of it; "
                 "srun --mpi=pmi2 works without names, or set MASTER_ADDR to an address of that "
                 "host and MASTER_PORT to a free port there",
                 who->address);
}

/* Tries to init until a try succeeds or fails for another reason than a closed store. */
static ct_status init_with_retries(struct identity *who, const ct_init_options *options,
                                   const struct group_extension *extension, struct limit limit,
                                   ct_group **group)
{
    const int64_t deadline = deadline_after(limit.ms);
    struct long_wait wait = long_wait_begin();
    ct_status status = CT_OK;

    if (who->by_launcher) {
        status = launcher_meet(&world.meeting, who->rank, deadline);
        who->meeting = &world.meeting;
    }
    if (who->is_slurm_node)
        init_find_slurm_node(who);
    if (status != CT_OK)
        return status;
    while ((status = init_once(who, options, extension, limit, deadline, group)) == CT_ERR_PEER
           && who->rank > 0 && !who->agent_store && clock_ms() < deadline && !has_new_death(who))
        if (long_wait_is_due(&wait))
            log_line(LOG_WAITS, "waiting %d s for a new group: %s", LONG_WAIT_MS / 1000,
                     ct_last_error());
    if (status == CT_ERR_PEER && clock_ms() >= deadline)
        status = CT_ERR_TIMEOUT;
    if (status == CT_ERR_TIMEOUT)
        ct_fail_because(ct_last_blame(), status, "%s (limit %d ms, set by %s)", ct_last_error(),
                        limit.ms, limit.by);
    return status;
}

/* Starts the backend, and reads the rank and size into *who.  Returns CT_ERR_INVALID if the
 * backend's library has another rank or size. */
static ct_status start_backend(const struct group_extension *extension,
                               const ct_init_options *options, struct identity *who)
{
    int rank = 0, size = 1;
    ct_status status = extension->start ? extension->start(&rank, &size) : CT_OK;

    if (status == CT_OK)
        status = identity_read(options, who);
    if (status != CT_OK || !extension->start || (who->rank == rank && who->size == size))
        return status;
    return ct_fail(CT_ERR_INVALID,
                   "backend \"mpi\": MPI says that this is rank %d of %d, but it is rank %d of %d "
                   "(%s); start the program with the mpirun or mpiexec of the MPI that "
                   "libct-mpi.so was compiled for",
                   rank, size, who->rank, who->size,
                   !strcmp(who->launcher, "env") ? "RANK, WORLD_SIZE" : who->launcher);
}

/* Tells ctrun which rank made init fail, if all ranks of the job are in this init. */
static void init_note_blame(const struct identity *who)
{
    const struct control_blame blame = { .on = ct_last_blame() };

    if (blame.on.reason != BLAME_NONE && world.control.head && who->size == world.control.world)
        control_blame(&world.control, &blame);
}

static ct_status init_locked(const ct_init_options *options,
                             const struct group_extension *extension)
{
    struct identity who;
    char log_name[24];
    struct limit limit;
    ct_group *group = NULL;
    enum control_state before;
    ct_status status;

    if (default_group())
        return ct_fail(CT_ERR_INVALID, "there is a default group already; call "
                                       "ct_destroy_process_group(CT_WORLD) first");
    status = init_check_options(options);
    if (status == CT_OK)
        status = init_timeout_of(options, &limit);
    if (status == CT_OK)
        status = start_backend(extension, options, &who);
    if (status != CT_OK)
        return status;
    snprintf(log_name, sizeof log_name, "rank %d", who.rank);
    /* Under ctrun the ranks do not log their waits, since ctrun prints them. */
    log_setup(log_name, who.generation[0] ? LOG_NONE : LOG_WAITS);
    control_take(&world.control);
    if (who.rank == 0 && !world.control.head) /* under ctrun, ctrun has warned already */
        environment_warn();
    if (world.control.own) /* earlier programs of this worker may have used some keys */
        world.number = (int)atomic_load(&world.control.own->inits);
    before = control_set_state(&world.control, CONTROL_INIT);
    status = init_with_retries(&who, options, extension, limit, &group);
    if (status != CT_OK) {
        init_note_blame(&who);
        control_set_state(&world.control, before == CONTROL_STARTED ? CONTROL_OUTSIDE : before);
        control_close(&world.control);
        return status;
    }
    control_set_state(&world.control, CONTROL_READY);
    world.number++;
    if (world.control.own) {
        atomic_store(&world.control.own->inits, (uint32_t)world.number);
        control_forgive(world.control.own, 0, 0);
    }
    world.local_rank = who.local_rank;
    default_group_set(group);
    leftovers_begin(group, who.local_rank);
    return CT_OK;
}

ct_status init_process_group(const ct_init_options *options,
                             const struct group_extension *extension)
{
    const pid_t process = forks_maker();
    ct_status status;

    /* Does not lock before this check, since in a child of fork() a thread of the parent may have
     * held the lock. */
    if (default_group() && default_group()->maker != process)
        return ct_fail_in(group_refuse_child(default_group()), "ct_init_process_group: ");
    if (world.process != 0 && world.process != process)
        default_group_forget();
    world.process = process;
    pthread_mutex_lock(&world.lock);
    status = init_locked(options, extension);
    pthread_mutex_unlock(&world.lock);
    return status == CT_OK ? CT_OK : ct_fail_in(status, "ct_init_process_group: ");
}

ct_status ct_destroy_process_group(ct_group *group)
{
    ct_group *g;
    char sentence[1024];
    int64_t deadline;
    ct_status status = group_resolve(group, &g);

    if (status != CT_OK)
        return status;
    queue_drain(g->async.queue);
    status = group_unreturned_mismatch(g);
    snprintf(sentence, sizeof sentence, "%s", ct_last_error());
    if (g != default_group()) {
        group_destroy(g);
        return status == CT_OK ? CT_OK : ct_fail(status, "%s", sentence);
    }
    pthread_mutex_lock(&world.lock);
    deadline = deadline_after(g->limit.ms);
    leftovers_end(g);
    default_group_set(NULL);
    store_watch_deaths(world.rendezvous.store, NULL, 0, 0);
    world.rendezvous.store->faults = NULL; /* group_destroy() frees the faults with the mesh */
    control_set_state(&world.control, CONTROL_LEFT);
    group_destroy(g);
    rendezvous_close(&world.rendezvous, deadline);
    control_close(&world.control);
    pthread_mutex_unlock(&world.lock);
    return status == CT_OK ? CT_OK : ct_fail(status, "%s", sentence);
}

/* ---- ct_create_group() ----------------------------------------------------- */

static ct_status check_create(const ct_store *store, int rank, int size,
                              const ct_group_options *options, ct_group **group)
{
    if (!store || !group)
        return ct_fail(CT_ERR_INVALID,
                       "ct_create_group: the store or the pointer for the group is NULL");
    if (size < 1 || rank < 0 || rank >= size)
        return ct_fail(CT_ERR_INVALID,
                       "ct_create_group: rank %d of %d; ranks are from 0 to the size less one",
                       rank, size);
    if (options && options->backend && strcmp(options->backend, "cpu")
        && strcmp(options->backend, "gloo"))
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "ct_create_group: backend \"%s\" can't be used; use \"cpu\" (only "
                       "ct_init_process_group() accepts others)",
                       options->backend);
    if (options && options->parent)
        return ct_fail(CT_ERR_INVALID,
                       "ct_create_group: the group has no parent; leave parent NULL");
    return options ? group_options_check(options) : CT_OK;
}

ct_status create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                       const struct group_extension *extension, ct_group **group)
{
    const char *name = options && options->name ? options->name : "created";
    struct limit limit;
    struct mesh *mesh;
    ct_status status = check_create(store, rank, size, options, group);

    if (status == CT_OK)
        status = init_timeout_of(NULL, &limit);
    if (status != CT_OK)
        return status;
    if (options && options->timeout_ms > 0)
        limit = (struct limit){ options->timeout_ms, "ct_group_options.timeout_ms" };
    status = mesh_create(store, rank, size, deadline_after(limit.ms), &mesh);
    if (status == CT_OK) {
        status = group_create_root(mesh, store, name, limit, options ? options->algorithms : NULL,
                                   extension, group);
        if (status != CT_OK)
            mesh_destroy(mesh);
    }
    if (status == CT_ERR_TIMEOUT)
        ct_fail(status, "%s (limit %d ms, set by %s)", ct_last_error(), limit.ms, limit.by);
    return status == CT_OK ? CT_OK : ct_fail_in(status, "ct_create_group: ");
}
