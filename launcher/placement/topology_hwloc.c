/* SPDX-License-Identifier: Apache-2.0 */
/* topology_hwloc.c - the machine as hwloc describes it.
 *
 * hwloc knows machines whose firmware or kernel describes them wrongly, and users
 * who gave it a corrected description (HWLOC_XMLFILE).  It is loaded when it is
 * needed: a machine without it has sysfs. */
#include "launcher/placement/topology.h"

#ifndef CT_WITH_HWLOC

int topology_by_hwloc(struct topology *topology, const char *root)
{
    (void)topology;
    (void)root;
    return -1; /* built without its headers */
}

#else

#include <dlfcn.h>
#include <hwloc.h>
#include <stdlib.h>

#include "runtime/util/log.h"

/* The functions that we use, by their own types. */
struct hwloc {
    void *library;
    __typeof__(hwloc_topology_init) *init;
    __typeof__(hwloc_topology_set_flags) *set_flags;
    __typeof__(hwloc_topology_load) *load;
    __typeof__(hwloc_topology_destroy) *destroy;
    __typeof__(hwloc_get_type_depth) *type_depth;
    __typeof__(hwloc_get_obj_by_depth) *object;
    __typeof__(hwloc_bitmap_isset) *isset;
    __typeof__(hwloc_bitmap_first) *first;
};

/* Local: hwloc's plugins, which would load CUDA and OpenCL to look for GPUs, then don't
 * find its functions and stay out. */
static int open_library(struct hwloc *hwloc)
{
    const struct {
        void **function;
        const char *name;
    } functions[] = {
        { (void **)&hwloc->init, "hwloc_topology_init" },
        { (void **)&hwloc->set_flags, "hwloc_topology_set_flags" },
        { (void **)&hwloc->load, "hwloc_topology_load" },
        { (void **)&hwloc->destroy, "hwloc_topology_destroy" },
        { (void **)&hwloc->type_depth, "hwloc_get_type_depth" },
        { (void **)&hwloc->object, "hwloc_get_obj_by_depth" },
        { (void **)&hwloc->isset, "hwloc_bitmap_isset" },
        { (void **)&hwloc->first, "hwloc_bitmap_first" },
    };

    hwloc->library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; hwloc->library && i < sizeof functions / sizeof *functions; i++)
        if (!(*functions[i].function = dlsym(hwloc->library, functions[i].name))) {
            dlclose(hwloc->library);
            hwloc->library = NULL;
        }
    return hwloc->library ? 0 : -1;
}

static int is_data_cache(const struct hwloc_obj *object)
{
    return object->type >= HWLOC_OBJ_L1CACHE && object->type <= HWLOC_OBJ_L5CACHE;
}

/* The objects above a processing unit, the nearest first: the last cache is the highest. */
static struct cpu describe_unit(const struct hwloc *hwloc, const struct hwloc_obj *unit)
{
    struct cpu cpu = { .core = (int)unit->os_index, .cache = -1, .socket = -1, .node = 0 };

    for (const struct hwloc_obj *above = unit->parent; above; above = above->parent) {
        const int lowest = above->complete_cpuset ? hwloc->first(above->complete_cpuset) : -1;

        if (above->type == HWLOC_OBJ_CORE)
            cpu.core = lowest;
        else if (above->type == HWLOC_OBJ_PACKAGE)
            cpu.socket = (int)above->os_index;
        else if (is_data_cache(above))
            cpu.cache = lowest;
    }
    return cpu;
}

static int describe_all(const struct hwloc *hwloc, hwloc_topology_t machine,
                        struct topology *topology)
{
    const int units = hwloc->type_depth(machine, HWLOC_OBJ_PU);
    const struct hwloc_obj *object;
    int found = 0;

    for (unsigned i = 0; (object = hwloc->object(machine, units, i)); i++)
        if ((int)object->os_index < topology->cpus
            && cpus_has(&topology->allowed, (int)object->os_index)) {
            topology->cpu[object->os_index] = describe_unit(hwloc, object);
            found++;
        }
    for (unsigned i = 0; (object = hwloc->object(machine, HWLOC_TYPE_DEPTH_NUMANODE, i)); i++)
        for (int cpu = cpus_next(&topology->allowed, 0); cpu >= 0;
             cpu = cpus_next(&topology->allowed, cpu + 1))
            if (object->cpuset && hwloc->isset(object->cpuset, (unsigned)cpu))
                topology->cpu[cpu].node = (int)object->os_index;
    return found == cpus_count(&topology->allowed) ? 0 : -1; /* else sysfs may know the rest */
}

/* Another root is a variable to hwloc; this machine's real CPUs must not be asked then. */
static void set_root(const char *root)
{
    if (!*root)
        return;
    setenv("HWLOC_FSROOT", root, 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
}

static void unset_root(const char *root)
{
    if (!*root)
        return;
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
}

int topology_by_hwloc(struct topology *topology, const char *root)
{
    struct hwloc hwloc;
    hwloc_topology_t machine;
    int status = -1;

    if (open_library(&hwloc) < 0)
        return -1;
    set_root(root);
    if (hwloc.init(&machine) == 0) {
        if (hwloc.set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0
            && hwloc.load(machine) == 0)
            status = describe_all(&hwloc, machine, topology);
        hwloc.destroy(machine);
    }
    unset_root(root);
    dlclose(hwloc.library);
    if (status == 0)
        topology->source = "hwloc";
    else
        log_line(LOG_INFO, "hwloc does not know all CPUs of this machine; sysfs is read instead");
    return status;
}

#endif
