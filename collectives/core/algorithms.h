/* SPDX-License-Identifier: Apache-2.0 */
/* algorithms.h - all algorithms by name, and a table of algorithms for each operation
 * (collectives/operations).  A table has the best algorithm first and NULL at the end. */
#ifndef COLLECTIVES_CORE_ALGORITHMS_H
#define COLLECTIVES_CORE_ALGORITHMS_H

struct algorithm;

/* Algorithms that send messages among all ranks (collectives/message). */
extern const struct algorithm all_reduce_ring, all_to_all_bruck, all_to_all_pairwise,
    reduce_scatter_direct;

/* Algorithms for ranks on one host (collectives/shm). */
extern const struct algorithm all_gather_shm, all_reduce_shm_one_shot, all_reduce_shm_two_shot,
    all_to_all_shm, broadcast_shm, gather_shm, reduce_scatter_shm, reduce_shm, scatter_shm;

/* Algorithms for ranks on several hosts (collectives/hosts). */
extern const struct algorithm all_gather_nodes, all_gather_nodes_chain, all_gather_nodes_doubling,
    all_reduce_nodes, all_reduce_nodes_doubling, all_reduce_nodes_halving, all_to_all_nodes,
    barrier_nodes, broadcast_nodes, broadcast_nodes_chain, broadcast_nodes_doubling,
    broadcast_nodes_halving, gather_nodes, reduce_nodes, reduce_nodes_doubling,
    reduce_nodes_halving, reduce_nodes_parts, reduce_scatter_nodes, reduce_scatter_nodes_doubling,
    reduce_scatter_nodes_halving, scatter_nodes;

/* Algorithms that call an MPI library (collectives/mpi/mpi_rows.c). */
extern const struct algorithm broadcast_mpi, reduce_mpi, all_reduce_mpi, reduce_scatter_mpi,
    gather_mpi, all_gather_mpi, scatter_mpi, all_to_all_mpi, barrier_mpi;

extern const struct algorithm *const broadcast_algorithms[];
extern const struct algorithm *const reduce_algorithms[];
extern const struct algorithm *const all_reduce_algorithms[];
extern const struct algorithm *const reduce_scatter_algorithms[];
extern const struct algorithm *const gather_algorithms[];
extern const struct algorithm *const all_gather_algorithms[];
extern const struct algorithm *const scatter_algorithms[];
extern const struct algorithm *const all_to_all_algorithms[];
extern const struct algorithm *const barrier_algorithms[];
extern const struct algorithm *const monitored_barrier_algorithms[];
extern const struct algorithm *const nccl_comm_algorithms[];

#endif
