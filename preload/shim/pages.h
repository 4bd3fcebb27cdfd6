/* SPDX-License-Identifier: Apache-2.0 */
/* Whole pages, of whatever size this kernel has. */
#ifndef SPARKTRACE_SHIM_PAGES_H
#define SPARKTRACE_SHIM_PAGES_H

#include <stdint.h>
#include <sys/auxv.h>

static inline uintptr_t page_size(void)
{
	return getauxval(AT_PAGESZ);
}

static inline uintptr_t page_down(uintptr_t at)
{
	return at & ~(page_size() - 1);
}

static inline uintptr_t page_up(uintptr_t at)
{
	return page_down(at + page_size() - 1);
}

#endif
