/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - which GPU reaches which, how fast, and why one pair is ten times slower.
 *
 *     build/bin/topology [--svg=FILE] [--trace=FILE] [--bytes=N] [--floats=N] [--sys=DIR]
 *
 * It prints three things:
 *  - the GPUs, and what lies between each two: the PCI tree and the sockets (from sysfs), the
 *    NVLinks (from libnvidia-ml.so.1, if installed) and the driver's peer-to-peer attributes;
 *  - each pair's bandwidth one way and both ways, with copies of --bytes (64 MiB), and its latency,
 *    with peer access on and off.  What arrived is compared with what was sent;
 *  - three concurrent copies from GPU 0 on three streams, of ten tensors of --floats (10^7) each,
 *    with the reasons for their speed.
 *
 * --svg draws the matrices, --trace writes the three streams for ui.perfetto.dev, and --sys reads
 * another machine's /sys.
 *
 * Without a GPU it says so and succeeds.  It fails if bytes arrive wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "examples/topology/concurrent.h"
#include "examples/topology/show.h"

struct options {
    const char *svg, *trace, *sys;
    size_t bytes, floats;
};

static int number(const char *text, size_t *value)
{
    char *end;
    const long long read = strtoll(text, &end, 10);

    if (!*text || *end || read < 16 || read > 1LL << 36)
        return 0;
    *value = (size_t)read;
    return 1;
}

static int read_options(struct options *options, char **words)
{
    *options = (struct options){ .sys = "/sys", .bytes = 64 << 20, .floats = 10000000 };
    for (char **word = words; *word; word++) {
        if (!strncmp(*word, "--svg=", 6))
            options->svg = *word + 6;
        else if (!strncmp(*word, "--trace=", 8))
            options->trace = *word + 8;
        else if (!strncmp(*word, "--sys=", 6))
            options->sys = *word + 6;
        else if ((strncmp(*word, "--bytes=", 8) || !number(*word + 8, &options->bytes))
                 && (strncmp(*word, "--floats=", 9) || !number(*word + 9, &options->floats))) {
            fprintf(stderr,
                    "topology: %s is none of --svg=FILE, --trace=FILE, --sys=DIR, --bytes=N and "
                    "--floats=N, N at least 16\n",
                    *word);
            return -1;
        }
    }
    return 0;
}

static int written(const char *path, int result)
{
    if (result < 0)
        fprintf(stderr, "topology: %s: %s\n", path, strerror(errno));
    return result == 0;
}

/* Other bytes than were sent: printed at the end, where it is seen. */
static int is_right(const struct measured *measured, const struct concurrent *concurrent)
{
    int wrong = measured->wrong;

    for (int s = 0; s < STREAMS; s++)
        wrong += concurrent->lane[s].wrong;
    if (wrong)
        fprintf(
            stderr,
            "topology: bytes arrived that were not sent (WRONG, or in one of the three streams): "
            "look at the IOMMU and at PCIe's access control (ACS)\n");
    return !wrong;
}

int main(int argc, char **argv)
{
    static struct machine machine;
    static struct measured measured;
    static struct concurrent concurrent;
    struct options options;
    char why[200];
    int count, good;

    (void)argc;
    if (read_options(&options, argv + 1) < 0)
        return 2;
    count = driver_open(&machine.driver, why, sizeof why);
    if (count <= 0) {
        fprintf(count < 0 ? stderr : stdout, "topology: %s\n", why);
        return count < 0;
    }
    machine_read(&machine, count, options.sys);
    if (machine.count < count)
        printf("%d GPUs, of which these are the first:\n", count);
    show_machine(&machine);
    measure_pairs(&machine, options.bytes, &measured);
    show_measured(&machine, &measured);
    run_concurrent(&machine, options.floats, &concurrent);
    explain_concurrent(&machine, &concurrent);
    good = is_right(&measured, &concurrent);
    if (options.svg)
        good &= written(options.svg, draw_heat_map(options.svg, &machine, &measured));
    if (options.trace)
        good &= written(options.trace, write_trace(options.trace, &machine, &concurrent));
    if (fflush(stdout) != 0) {
        perror("topology: stdout");
        return 1;
    }
    return !good;
}
