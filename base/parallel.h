/* SPDX-License-Identifier: Apache-2.0
 *
 * Independent pieces of work over threads: a queue by index.
 */
#ifndef MOESIM_BASE_PARALLEL_H
#define MOESIM_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

/* Piece i, on thread `worker`: numbers below the threads asked for, so that each can have memory of its own. */
typedef moesim_code moesim_piece_fn(void *cookie, uint32_t worker, size_t i, moesim_error *err);

/* Runs pieces 0 to n − 1 on at most `threads` threads (0 counts as 1), the caller's being worker 0; a thread that the system
 * refuses is done without. After a failure no further piece begins; the error is that of the failed piece with the lowest
 * index, whatever the number of threads. Interruption is an error too. progress, begun by the caller, may be NULL. */
moesim_code moesim_parallel(uint32_t threads, size_t n, moesim_piece_fn *work, void *cookie, moesim_progress *progress,
                            moesim_error *err);

#endif
