/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a 64-bit hash, for tables that know things again by it alone. */
#ifndef SPARKTRACE_SHIM_HASH_H
#define SPARKTRACE_SHIM_HASH_H

#include <stdint.h>

static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

#endif
