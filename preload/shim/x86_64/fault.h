/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_SHIM_X86_64_FAULT_H
#define SPARKTRACE_SHIM_X86_64_FAULT_H

#include <stdbool.h>
#include <ucontext.h>

#define FAULT_WRITE 0x2 /* bits of the processor's error code */
#define FAULT_FETCH 0x10

/* Was it a store that faulted? */
static inline bool fault_is_write(const ucontext_t *context)
{
	greg_t error = context->uc_mcontext.gregs[REG_ERR];

	return (error & FAULT_WRITE) && !(error & FAULT_FETCH);
}

#endif
