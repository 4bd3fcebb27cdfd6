/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a name that the program shall find in place of its own: everything else is hidden. */
#ifndef SPARKTRACE_SHIM_EXPORT_H
#define SPARKTRACE_SHIM_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
