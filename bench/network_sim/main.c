/* SPDX-License-Identifier: Apache-2.0 */
/* network_sim - the collectives of libct on thousands of simulated hosts.
 *
 *     ct_bench --simulate --ops=all_reduce --hosts=8,1000,10000
 *
 * The algorithms are the library's own (collectives/); their messages cross a simulated network
 * (network.h), the ranks of a host share simulated slots (host_rounds.h), and no data is moved
 * (memory.h).  For each operation, size and number of hosts: the row that the library takes, the
 * others that end in a reasonable time, and what no algorithm can be faster than.
 *
 * Exit code: 0; 1 when a simulation failed; 2 for a wrong command line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/network_sim/options.h"
#include "bench/network_sim/results.h"
#include "bench/network_sim/scheduler.h"
#include "bench/network_sim/self_test.h"
#include "bench/progress.h"
#include "collectives/core/pipeline_segment.h"
#include "runtime/group/shm/slots.h"

/* ---- What takes too long ----------------------------------------------------------- */

/* Messages of a row in which each rank sends to each other, or to the next one for all of them;
 * 0: it is none of these. */
static double messages_of(const struct job *job, const char *row)
{
    const double h = job->hosts, p = h * job->each, n = (double)job->bytes;
    const double ways = job->operation == OPERATION_ALL_REDUCE ? 2 : 1;
    const int is_rooted =
        job->operation == OPERATION_BROADCAST || job->operation == OPERATION_REDUCE;

    if (!strcmp(row, "ring") || !strcmp(row, "nodes_chain"))
        return is_rooted ? p * (1 + n / LEAST_SEGMENT) : ways * p * (*row == 'n' ? h : p);
    if (!strcmp(row, "direct") && is_rooted)
        return p * (1 + n / (1 << 20));
    if (!strcmp(row, "direct") || !strcmp(row, "one_shot") || !strcmp(row, "two_shot"))
        return 8 * p * p; /* all at once: they take memory, too */
    return 0;
}

/* Blocks that the ranks of a host look at to exchange those of all ranks, in each piece. */
static double looks_of(const struct job *job)
{
    const double p = (double)job->hosts * job->each;
    const double pieces = ceil((double)job_bytes(job) / SHM_GROUP_MOST_SLOT);

    if (job->each == 1)
        return 0;
    if (job->operation == OPERATION_REDUCE_SCATTER)
        return 3 * p * p * pieces;
    return job->operation == OPERATION_ALL_GATHER ? 3 * p * p * ceil(pieces / job->each) : 0;
}

static double seconds_of(const struct job *job, const char *row)
{
    return 1.5e-6 * messages_of(job, row) + 5e-9 * looks_of(job);
}

/* ---- Jobs --------------------------------------------------------------------------- */

static int is_wanted(const struct options *o, const struct result *r, int row)
{
    if (!r->info[row].can || seconds_of(&r->job, r->info[row].name) > o->patience)
        return 0;
    return o->rows == ALL_ROWS || row == r->chosen;
}

static int run_job(const struct options *o, const struct job *job, struct result *r)
{
    r->job = *job;
    r->rows = job_rows(job, r->info);
    if (r->rows < 0) {
        fprintf(stderr, "network_sim: %s\n", ct_last_error());
        return -1;
    }
    r->bound = job_bound(job);
    for (int i = 0; i < r->rows; i++)
        if (r->info[i].is_chosen)
            r->chosen = i;
    for (int i = 0; i < r->rows; i++) {
        r->outcome[i].us = NAN;
        if (!is_wanted(o, r, i))
            continue;
        (o->samples ? job_sample : job_simulate)(job, i, &r->outcome[i]);
        if (r->outcome[i].failure[0]) {
            fprintf(stderr, "network_sim: %s by %s on %d hosts: %s\n",
                    operation_name(job->operation), r->info[i].name, job->hosts,
                    r->outcome[i].failure);
            return -1;
        }
    }
    return 0;
}

/* A table. */
static int run_hosts(const struct options *o, struct job job, struct results *results,
                     struct progress *progress)
{
    for (int i = 0; i < o->hosts.count; i++) {
        struct result *r = results_add(results);

        int failed;

        job.hosts = o->hosts.values[i];
        progress_case(progress, "%s, %zu bytes, %dx%d", operation_name(job.operation), job.bytes,
                      job.hosts, job.each);
        failed = !r || run_job(o, &job, r) < 0;
        progress_wipe(progress);
        if (failed)
            return -1;
        if (i == 0)
            table_heading(stdout, r);
        table_line(stdout, r);
    }
    return 0;
}

static int sizes_of(const struct options *o, int op)
{
    return o->operation[op] == OPERATION_BARRIER ? 1 : o->sizes.count;
}

static int run_all(const struct options *o, struct results *results, struct progress *progress)
{
    for (int op = 0; op < o->operations; op++)
        progress->of += sizes_of(o, op) * o->ranks.count * o->hosts.count;
    for (int op = 0; op < o->operations; op++)
        for (int ranks = 0; ranks < o->ranks.count; ranks++)
            for (int size = 0; size < sizes_of(o, op); size++) {
                const struct job job = { .operation = o->operation[op],
                                         .bytes = (size_t)o->sizes.values[size],
                                         .each = (int)o->ranks.values[ranks] };

                if (run_hosts(o, job, results, progress) < 0)
                    return -1;
            }
    return 0;
}

/* ---- Files --------------------------------------------------------------------------- */

enum kind { CSV, JSON, FIGURE };

static int write_file(const char *path, enum kind kind, const struct options *o,
                      const struct results *results)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    int failed;

    if (!path)
        return 0;
    if (file && kind == CSV)
        csv_write(file, results);
    else if (file && kind == JSON)
        json_write(file, results);
    else if (file)
        figure_draw(file, results, (int)o->ranks.values[o->ranks.count - 1]);
    failed = !file || ferror(file);
    if ((file && fclose(file) != 0) || failed) {
        fprintf(stderr, "network_sim: %s can't be written\n", path);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct results results = { 0 };
    struct progress progress;
    struct options o;
    int failed;

    progress_begin(&progress, "network_sim", 0); /* options_read() empties the environment */
    if (options_read(&o, argc, argv) < 0) {
        fprintf(stderr, "network_sim: %s\n", o.wrong);
        return 2;
    }
    if (o.help) {
        printf("%s", options_usage);
        return 0;
    }
    if (o.self_test)
        return self_test();
    printf("alpha %g us, overhead %g us, %g GB/s a wire; on a host %g GB/s copied by a rank, a hop "
           "%g us; ranks begin within %g us\n",
           model.network.alpha_us, model.network.overhead_us, 1e-3 / model.network.us_per_byte,
           1e-3 / model.copy_us_per_byte, model.hop_us, model.skew_us);
    failed = run_all(&o, &results, &progress) < 0;
    table_of_slower(stdout, &results);
    failed |= write_file(o.csv, CSV, &o, &results) < 0 || write_file(o.json, JSON, &o, &results) < 0
              || write_file(o.figure, FIGURE, &o, &results) < 0;
    scheduler_close();
    free(results.all);
    return failed;
}
