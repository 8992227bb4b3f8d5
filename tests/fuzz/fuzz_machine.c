/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_machine.c - whatever the kernel, or a container that stands in for it, shows of the
 * machine: control groups in both versions, CPUs, caches and nodes in sysfs.
 *
 * The input is texts, each behind a byte for its size.  A file under "/fuzz" that is opened is the
 * next of them, in the order in which they are asked for; the same path gives the same
 * text within one input; behind the last one no file is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/placement/topology.h"
#include "runtime/util/cgroup.h"

#define FILES_BELOW "/fuzz/"
#include "tests/fuzz/files.h"

enum { CPUS = 4 };

static const uint8_t *input;
static size_t left;

static int next_text(struct file *file)
{
    if (left == 0)
        return 0;
    file->size = input[0] < left - 1 ? input[0] : left - 1;
    file->text = file->size > 0 ? input + 1 : NULL;
    input += 1 + file->size;
    left -= 1 + file->size;
    return 1;
}

/* ---- One input ---------------------------------------------------------------------------- */

static void begin(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    files_count = 0;
}

static void look_at_topology(void)
{
    static struct topology topology;
    struct cpus allowed = { { 0 } };
    char text[CPUS_TEXT];

    for (int cpu = 0; cpu < CPUS; cpu++)
        cpus_add(&allowed, cpu);
    topology_read(&topology, "/fuzz", &allowed);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        holds(topology.cpu[cpu].core >= 0 && topology.cpu[cpu].core < CPUS_MOST);
        holds(topology.cpu[cpu].cache >= -1 && topology.cpu[cpu].cache < CPUS_MOST);
        holds(topology.cpu[cpu].node >= 0 && topology.cpu[cpu].node < CPUS_MOST);
    }
    holds(topology_last_node(&topology) < CPUS_MOST);
    for (int node = -1; node < 3; node++) {
        const struct cpus cpus = topology_node(&topology, node);

        holds(cpus_within(&cpus, &topology.allowed));
        cpus_write(&cpus, text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin(data, size);
    holds(cgroup_cpus("/fuzz") >= 0);
    begin(data, size);
    look_at_topology();
    return 0;
}
