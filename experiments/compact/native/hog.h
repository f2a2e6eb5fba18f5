/* SPDX-License-Identifier: GPL-2.0-only */
/* CPU shared between the kernel that makes huge pages and a loop that only counts. */
#ifndef REAM_COMPACT_HOG_H
#define REAM_COMPACT_HOG_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct work - what the CPU did between two moments
 * @is_busy: There is a loop that has the same CPU all the time.
 * @time_ns: By the clock.
 * @kernel_ns: CPU time of the calling thread, which runs the kernel.
 * @waited_ns: How long that thread could have run, and another did.
 * @hog_ns: CPU time of the loop.
 * @hog_iterations: How often it went round.
 */
struct work {
	bool is_busy;
	uint64_t time_ns, kernel_ns, waited_ns, hog_ns, hog_iterations;
};

/* Around what is timed; the loop runs from before the beginning until after the end. */
void work_begin(struct work *work, bool is_busy);
void work_end(struct work *work);

#endif
