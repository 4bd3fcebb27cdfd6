/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_SHIM_WRAP_HEAP_H
#define SPARKTRACE_SHIM_WRAP_HEAP_H

/* Takes SPARKTRACE_HEAP_THRESHOLD over; until the constructor calls this the default holds. */
void heap_prepare(void);

#endif
