/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_RECORDER_CLOCK_H
#define SPARKTRACE_RECORDER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

/* ns of a clock. */
static inline uint64_t clock_read(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* What this thread has cost so far. */
static inline uint64_t clock_cost(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

#endif
