/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frames of the calling thread, read from the interpreter's own structures without calling into it.
 *
 * Only a thread whose native stack leads through the interpreter has any. Its PyThreadState is found by walking the
 * interpreter's lists once, and remembered by the thread; each use first looks whether it still is the state of this
 * thread. From there on the thread itself holds all that is read: a frame on the chain holds its code object, and the
 * chain does not change while the thread is in a wrapper. Still nothing is believed unchecked (peek.h), since a signal
 * handler may come at any moment: a code object has the type of code objects, an instruction lies in its code. 3.11
 * lets a frame stand on the chain while it lets go of its code: there the innermost code object is asked for anew.
 */
#ifndef SPARKTRACE_SHIM_PYTHON_H
#define SPARKTRACE_SHIM_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/* Python frames of a recorded stack at most. */
#define PYTHON_FRAMES 64

struct python_walk {
	unsigned count;
	bool cut;                      /* there are more, or the walk lost its way */
	uint64_t frame[PYTHON_FRAMES]; /* words of a `frames` record, innermost first */
};

/* Call when recording starts, as stack_prepare(): it calls dlsym. Setting SPARKTRACE_PYTHON_STACKS. */
void python_prepare(void);

/*
 * Fills ret_walk; no frames for a thread that runs no Python code, as its native stack tells, which has just been
 * taken. Writes `code` records of new functions. The guard must be up. Takes no lock, allocates nothing.
 */
struct walk;
void python_take(const struct walk *native, struct python_walk *ret_walk);

/* A fork child starts a trace of its own. */
void python_reset(void);

#endif
