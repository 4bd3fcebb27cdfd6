/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's state of the calling thread (PyThreadState). */
#ifndef SPARKTRACE_SHIM_PYTHON_THREAD_H
#define SPARKTRACE_SHIM_PYTHON_THREAD_H

#include "peek.h"
#include "python_layout.h"

#include <stdint.h>

/*
 * The innermost frame of the calling thread, in the interpreter whose _PyRuntime is at `runtime`; 0: it runs no Python
 * code. -EFAULT: what was found is no such thing; another negative errno: the kernel forbids to look.
 */
int python_thread_frame(struct peek *seen, const struct python_layout *layout, uintptr_t runtime,
                        uintptr_t *ret_frame);

#endif
