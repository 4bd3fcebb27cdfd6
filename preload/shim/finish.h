/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the program, as far as it can be seen from inside. */
#ifndef SPARKTRACE_SHIM_FINISH_H
#define SPARKTRACE_SHIM_FINISH_H

/*
 * Asks the recorder for the last block and waits until the trace is complete, 2 s at most and no longer than the
 * recorder lives. Nothing happens in a vfork child, which is not the program.
 */
void recording_finish(void);

#endif
