/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_graph.c - the fake driver's graphs: a list of what was captured, which each launch
 * enqueues once more, one behind the other.
 *
 * They use no memory until they are launched: what was freed meanwhile ends the program then.  A
 * program's own objects that a graph needs live as long as it, what was made of it and what of that
 * is still enqueued. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>

struct CUuserObject_st {
    _Atomic unsigned references;
    CUhostFn destroy;
    void *of;
};

/* The caller's, of what was made of it, and of each launch that is not over. */
struct CUgraph_st {
    _Atomic int users;
    struct op *first, **last;
    CUuserObject *objects;
    int objects_count;
};

struct CUgraphExec_st {
    CUgraph graph;
    struct point ends; /* of the launch before: the next one comes after it */
};

static void *memory(size_t bytes)
{
    void *got = calloc(1, bytes);

    if (!got)
        fake_dies("no memory");
    return got;
}

/* ---- Objects of the program ------------------------------------------------------- */

static void release(CUuserObject object, unsigned count)
{
    if (atomic_fetch_sub(&object->references, count) != count)
        return;
    object->destroy(object->of);
    free(object);
}

CUresult cuUserObjectCreate(CUuserObject *made, void *of, CUhostFn destroy, unsigned references,
                            unsigned flags)
{
    const CUresult result = fake_begin(__func__);

    if (result != CUDA_SUCCESS)
        return result;
    if (references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    *made = memory(sizeof **made);
    atomic_init(&(*made)->references, references);
    (*made)->destroy = destroy;
    (*made)->of = of;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        release(object, count);
    return result;
}

/* Only to give it away. */
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    const CUresult result = fake_begin(__func__);
    CUuserObject *list;

    if (result != CUDA_SUCCESS)
        return result;
    if (count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_NOT_SUPPORTED;
    list = realloc(graph->objects, (size_t)(graph->objects_count + 1) * sizeof *list);
    if (!list)
        fake_dies("no memory");
    list[graph->objects_count++] = object;
    graph->objects = list;
    return CUDA_SUCCESS;
}

/* ---- Graphs ------------------------------------------------------------------------- */

CUgraph graph_create(void)
{
    CUgraph graph = memory(sizeof *graph);

    atomic_init(&graph->users, 1);
    graph->last = &graph->first;
    return graph;
}

void graph_add(CUgraph graph, struct op *op)
{
    *graph->last = op;
    graph->last = &op->next;
}

static void unuse(CUgraph graph)
{
    if (atomic_fetch_sub(&graph->users, 1) > 1)
        return;
    while (graph->first) {
        struct op *next = graph->first->next;

        op_destroy(graph->first);
        graph->first = next;
    }
    for (int i = 0; i < graph->objects_count; i++)
        release(graph->objects[i], 1);
    free(graph->objects);
    free(graph);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        unuse(graph);
    return result;
}

CUresult cuGraphInstantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    *made = memory(sizeof **made);
    (*made)->graph = graph;
    atomic_fetch_add(&graph->users, 1);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    const CUresult result = fake_begin(__func__);

    if (result != CUDA_SUCCESS)
        return result;
    unuse(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

/* ---- Launches ------------------------------------------------------------------------ */

static void run_end(struct op *op)
{
    unuse(op->argument);
}

/* In a stream that is captured it would be a graph within a graph. */
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult result = fake_begin_stream(__func__, &stream);
    struct op *begin, *end;

    if (result == CUDA_SUCCESS)
        result = capture_asks(stream);
    if (result != CUDA_SUCCESS)
        return result;
    begin = op_create(NULL);
    if (exec->ends.stream)
        op_waits_for(begin, &exec->ends);
    fake_enqueue(stream, begin);
    for (const struct op *op = exec->graph->first; op; op = op->next)
        fake_enqueue(stream, op_again(op));
    end = op_create(run_end);
    end->argument = exec->graph;
    atomic_fetch_add(&exec->graph->users, 1);
    exec->ends = fake_enqueue(stream, end);
    return CUDA_SUCCESS;
}
