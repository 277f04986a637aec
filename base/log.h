/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines and warnings on standard error, and progress for anything over two seconds. Thread-safe.
 */
#ifndef MOESIM_BASE_LOG_H
#define MOESIM_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum moesim_level { MOESIM_LOG_ERROR, MOESIM_LOG_WARN, MOESIM_LOG_INFO, MOESIM_LOG_DEBUG } moesim_level;

/* Default: WARN. Set once, before threads start. */
void moesim_log_set_level(moesim_level level);

/* "moesim: warning: …\n" to standard error, one line with '?' for control characters (base/text.h); a running progress line
 * is cleared first. */
void moesim_log(moesim_level level, const char *fmt, ...) MOESIM_PRINTF(2, 3);

/* A progress line on standard error, drawn only when it is a terminal or `always`, only after two seconds, at most five
 * times a second: "what  37 %  1.2 M events/s  12 s left". total 0: unknown. One at a time. */
typedef struct moesim_progress {
    const char *what;
    uint64_t total, unit_scale;   /* unit_scale: multiply counts for the rate shown (events a step), at least 1 */
    const char *unit;
    double started, drawn;        /* monotonic seconds; display only, never part of a result */
    bool visible, always;
} moesim_progress;

void moesim_progress_begin(moesim_progress *p, const char *what, uint64_t total, uint64_t unit_scale, const char *unit);
void moesim_progress_update(moesim_progress *p, uint64_t done);
void moesim_progress_end(moesim_progress *p);

/* Set by the handler that moesim_interrupt_install() installs for SIGINT, SIGTERM and SIGHUP; long loops poll it and return
 * MOESIM_E_INTERRUPTED. SIGPIPE, SIGQUIT and SIGXCPU end the process as ever, but remove temporary files first. Signals that
 * are ignored stay so. */
bool moesim_interrupted(void);
void moesim_interrupt_install(void);

#endif
