/* SPDX-License-Identifier: Apache-2.0 */
/* libct_mpi.c - the plug-in libct-mpi.so (mpi_plugin.h), the only file that includes mpi.h:
 *
 *     mpicc -O2 -shared -fPIC -Iinclude collectives/mpi/plugin/libct_mpi.c -o libct-mpi.so
 *
 * The plug-in uses only MPI's nonblocking operations.  So libct can wait with a deadline, check for
 * deaths meanwhile, and end a wait when the group is aborted.  Data longer than an int can count
 * travels as one element of an MPI type of that many bytes. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_plugin.h"

#ifndef CT_MPI_MOST
#define CT_MPI_MOST INT_MAX /* tests set a smaller value */
#endif

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request is a pointer or a number");

static struct {
    pid_t process;  /* process in which the plug-in initialised MPI; 0: the program did */
    int comms;      /* communicators that are not freed yet */
    int is_unclean; /* 1 after a request was given up */
} state;

/* ---- Start and end --------------------------------------------------------------- */

/* Finalises MPI when the process exits.  MPI_Finalize() is called this late since a program may
 * initialise libct again.  A rank that exits in the middle of a call does not finalise MPI, so the
 * launcher ends the other ranks. */
static void plugin_finalize(void)
{
    int is_finalized = 1;

    MPI_Finalized(&is_finalized);
    if (!is_finalized && state.process == getpid() && state.comms == 0 && !state.is_unclean)
        MPI_Finalize();
}

static void name_library(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    for (char *at = version; *at; at++)
        if (*at == '\t')
            *at = ' ';
    snprintf(text, size, "%.127s", version);
}

static int plugin_start(struct mpi_world *world)
{
    int is_initialized = 0, level = 0, error;

    MPI_Initialized(&is_initialized);
    if (!is_initialized) {
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        if (error)
            return error;
        /* Open MPI reports errors of collectives on MPI_COMM_WORLD. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        state.process = getpid();
        atexit(plugin_finalize);
    }
    MPI_Query_thread(&level);
    world->any_thread = level == MPI_THREAD_MULTIPLE;
    name_library(world->library, sizeof world->library);
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    return MPI_Comm_size(MPI_COMM_WORLD, &world->size);
}

static int is_main_thread(void)
{
    int yes = 0;

    MPI_Is_thread_main(&yes);
    return yes;
}

static int comm_create(const int *ranks, int size, int tag, void **comm)
{
    MPI_Comm *made = malloc(sizeof *made);
    MPI_Group all, some;
    int error;

    if (!made)
        return MPI_ERR_NO_MEM;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    error = MPI_Group_incl(all, size, ranks, &some);
    if (!error) {
        error = MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, made);
        MPI_Group_free(&some);
    }
    MPI_Group_free(&all);
    if (error) {
        free(made);
        return error;
    }
    MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    state.comms++;
    *comm = made;
    return MPI_SUCCESS;
}

static void comm_free(void *comm, int is_idle)
{
    if (is_idle)
        MPI_Comm_free(comm);
    else
        state.is_unclean = 1;
    state.comms--;
    free(comm);
}

/* ---- Types and ops --------------------------------------------------------------------- */

static MPI_Datatype type_of(ct_dtype dtype)
{
    switch (dtype) {
    case CT_I32:
        return MPI_INT32_T;
    case CT_U32:
        return MPI_UINT32_T;
    case CT_I64:
        return MPI_INT64_T;
    case CT_U64:
        return MPI_UINT64_T;
    case CT_F32:
        return MPI_FLOAT;
    case CT_F64:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op plugin_op_of(ct_op op)
{
    switch (op) {
    case CT_SUM:
        return MPI_SUM;
    case CT_PRODUCT:
        return MPI_PROD;
    case CT_MIN:
        return MPI_MIN;
    case CT_MAX:
        return MPI_MAX;
    case CT_BAND:
        return MPI_BAND;
    case CT_BOR:
        return MPI_BOR;
    case CT_BXOR:
        return MPI_BXOR;
    default:
        return MPI_OP_NULL;
    }
}

/* Makes a type of `bytes` bytes, from whole pieces of CT_MPI_MOST bytes and the rest. */
static int long_type(size_t bytes, MPI_Datatype *type)
{
    const size_t pieces = bytes / CT_MPI_MOST, rest = bytes % CT_MPI_MOST;
    MPI_Datatype parts[2] = { MPI_DATATYPE_NULL, MPI_BYTE };
    const int lengths[2] = { (int)pieces, (int)rest };
    const MPI_Aint at[2] = { 0, (MPI_Aint)(pieces * CT_MPI_MOST) };
    int error = MPI_Type_contiguous(CT_MPI_MOST, MPI_BYTE, &parts[0]);

    if (error)
        return error;
    error = MPI_Type_create_struct(2, lengths, at, parts, type);
    MPI_Type_free(&parts[0]);
    return error ? error : MPI_Type_commit(type);
}

/* ---- Calls ---------------------------------------------------------------------------- */

static int begin_reduction(MPI_Comm comm, const struct mpi_call *c, MPI_Request *request)
{
    const void *send = c->in_place ? MPI_IN_PLACE : c->send;
    const MPI_Datatype type = type_of(c->dtype);
    const MPI_Op op = plugin_op_of(c->op);
    const int count = (int)c->count;

    switch (c->kind) {
    case BY_MPI_REDUCE:
        return MPI_Ireduce(send, c->recv, count, type, op, c->other, comm, request);
    case BY_MPI_ALL_REDUCE:
        return MPI_Iallreduce(send, c->recv, count, type, op, comm, request);
    default:
        return MPI_Ireduce_scatter_block(send, c->recv, count, type, op, comm, request);
    }
}

static int begin_move(MPI_Comm comm, const struct mpi_call *c, int n, MPI_Datatype type,
                      MPI_Request *request)
{
    const void *send = c->in_place ? MPI_IN_PLACE : c->send;

    switch (c->kind) {
    case BY_MPI_BROADCAST:
        return MPI_Ibcast(c->recv, n, type, c->other, comm, request);
    case BY_MPI_GATHER:
        return MPI_Igather(send, n, type, c->recv, n, type, c->other, comm, request);
    case BY_MPI_ALL_GATHER:
        return MPI_Iallgather(send, n, type, c->recv, n, type, comm, request);
    case BY_MPI_SCATTER:
        return MPI_Iscatter(c->send, n, type, c->in_place ? MPI_IN_PLACE : c->recv, n, type,
                            c->other, comm, request);
    case BY_MPI_ALL_TO_ALL:
        return MPI_Ialltoall(send, n, type, c->recv, n, type, comm, request);
    case BY_MPI_MESSAGE_OUT:
        return MPI_Isend(c->send, n, type, c->other, c->tag, comm, request);
    default:
        return MPI_Irecv(c->recv, n, type, c->other, c->tag, comm, request);
    }
}

static int begin_any(MPI_Comm comm, const struct mpi_call *c, MPI_Request *request)
{
    MPI_Datatype type;
    int error;

    if (c->kind == BY_MPI_BARRIER)
        return MPI_Ibarrier(comm, request);
    if (c->kind == BY_MPI_REDUCE || c->kind == BY_MPI_ALL_REDUCE
        || c->kind == BY_MPI_REDUCE_SCATTER)
        return begin_reduction(comm, c, request);
    if (c->count <= CT_MPI_MOST)
        return begin_move(comm, c, (int)c->count, MPI_BYTE, request);
    error = long_type(c->count, &type);
    if (error)
        return error;
    error = begin_move(comm, c, 1, type, request);
    MPI_Type_free(&type); /* MPI keeps the type until the operation is done */
    return error;
}

static int plugin_begin(void *comm, const struct mpi_call *call, uint64_t *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    const int error = begin_any(*(MPI_Comm *)comm, call, &made);

    memcpy(request, &made, sizeof made);
    return error;
}

static int plugin_test(uint64_t *request, int *done)
{
    MPI_Request under_way;
    int error;

    memcpy(&under_way, request, sizeof under_way);
    error = MPI_Test(&under_way, done, MPI_STATUS_IGNORE);
    memcpy(request, &under_way, sizeof under_way);
    return error;
}

/* Gives a request up.  Cancels only a receive, since MPI can't cancel a collective or a send.  A
 * collective or a send stays active, but the group is broken and does not use the request again. */
static void plugin_give_up(uint64_t *request, enum mpi_kind kind)
{
    MPI_Request under_way;

    memcpy(&under_way, request, sizeof under_way);
    if (kind == BY_MPI_MESSAGE_IN && under_way != MPI_REQUEST_NULL) {
        MPI_Cancel(&under_way);
        MPI_Request_free(&under_way);
    }
    state.is_unclean = 1;
}

static void plugin_describe(int error, char *text, size_t size, int *is_truncation)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length = 0, class = 0;

    MPI_Error_string(error, words, &length);
    MPI_Error_class(error, &class);
    words[strcspn(words, "\n")] = 0;
    snprintf(text, size, "%s", words);
    *is_truncation = class == MPI_ERR_TRUNCATE;
}

extern const struct mpi_plugin ct_mpi_plugin;
const struct mpi_plugin ct_mpi_plugin = {
    .version = PLUGIN_VERSION,
    .start = plugin_start,
    .is_main_thread = is_main_thread,
    .comm_create = comm_create,
    .comm_free = comm_free,
    .begin = plugin_begin,
    .test = plugin_test,
    .give_up = plugin_give_up,
    .describe = plugin_describe,
};
