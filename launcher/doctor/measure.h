/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - the network between two hosts: one connects to the other, which answers. */
#ifndef LAUNCHER_DOCTOR_MEASURE_H
#define LAUNCHER_DOCTOR_MEASURE_H

#include <stdint.h>

#define TOKEN 32           /* characters that both ends know; a connection without them is closed */
#define MEASURE_SECONDS 12 /* neither end takes longer; each step has a shorter limit */

struct measurement {
    int64_t trip_ns, skew_ns;
    double bytes_per_s;
    char error[400];    /* "": the rest is there */
    const char *remedy; /* "": there is no error */
};

/* From this host to the one that listens there. */
void measure_peer(struct measurement *measurement, const char *address, int port,
                  const char *token);

/* The other end, on a connection that was accepted, until it is closed. */
void measure_serve(int fd, const char *token);

#endif
