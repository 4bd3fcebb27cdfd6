/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_SHIM_AARCH64_FAULT_H
#define SPARKTRACE_SHIM_AARCH64_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* What the kernel writes behind the registers, at the end of a ucontext_t: records, each with its length; ABI. */
#define FAULT_RECORDS  4096
#define FAULT_SYNDROME 0x45535201 /* ESR_MAGIC */

struct fault_record {
	uint32_t magic, size;
	uint64_t syndrome;
};

#define FAULT_CLASS(syndrome) ((syndrome) >> 26 & 0x3f)
#define FAULT_DATA            0x24 /* a data abort from user space */
#define FAULT_WRITE           (1u << 6)

/* Was it a store that faulted? Where the kernel does not tell (emulators), it is taken for one. */
static inline bool fault_is_write(const ucontext_t *context)
{
	const unsigned char *end = (const unsigned char *)(context + 1), *at = end - FAULT_RECORDS;

	while (at + sizeof(struct fault_record) <= end) {
		const struct fault_record *record = (const void *)at;

		if (record->magic == FAULT_SYNDROME)
			return FAULT_CLASS(record->syndrome) == FAULT_DATA &&
			       (record->syndrome & FAULT_WRITE);
		if (!record->magic || record->size < sizeof(uint64_t))
			break;
		at += record->size;
	}
	return true;
}

#if defined(__aarch64__)
_Static_assert(sizeof(((ucontext_t *)0)->uc_mcontext.__reserved) == FAULT_RECORDS &&
                       offsetof(ucontext_t, uc_mcontext.__reserved) + FAULT_RECORDS == sizeof(ucontext_t),
               "the records are at the end");
#endif

#endif
