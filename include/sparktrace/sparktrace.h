/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that want to say where they are: a phase or a step begins.
 *
 *	sparktrace_mark("load");
 *
 * Without libsparktrace.so it does nothing; nothing need be linked. From Python:
 *
 *	mark = getattr(ctypes.CDLL(None), "sparktrace_mark", lambda name: None)
 *	mark(b"load")
 */
#ifndef SPARKTRACE_SPARKTRACE_H
#define SPARKTRACE_SPARKTRACE_H

#ifdef __cplusplus
extern "C" {
#endif

/* `name`: UTF-8, copied. */
void sparktrace_mark(const char *name) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* A weak name that nobody defined is NULL. */
#define sparktrace_mark(name) (sparktrace_mark ? (sparktrace_mark)(name) : (void)0)

#endif
