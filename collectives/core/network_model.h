/* SPDX-License-Identifier: Apache-2.0 */
/* network_model.h - the network between the hosts of a group, for the cost models of algorithms. */
#ifndef COLLECTIVES_CORE_NETWORK_MODEL_H
#define COLLECTIVES_CORE_NETWORK_MODEL_H

#include <stddef.h>

/* A message of n bytes between hosts takes alpha_us + n * us_per_byte.  Each further message at the
 * same time costs a rank overhead_us. */
struct network_model {
    double alpha_us, overhead_us, us_per_byte;
};

/* What the ranks of a group have agreed on, and the measurement that changes it
 * (collectives/hosts/measure_network.c).  Only calls that run use it, and the calls of a group run
 * one after the other. */
struct network {
    struct network_model model;
    double claimed;     /* us per byte of the link, as its driver reports it */
    int is_given;       /* 1 if the user set the model, so nothing is measured */
    int is_measured;    /* 1 once the ranks have agreed on a measurement */
    int calls;          /* number of calls measured since `bytes` was set */
    size_t bytes;       /* of the first of these calls */
    double us_per_byte; /* the least of these calls on this rank */
};

#endif
