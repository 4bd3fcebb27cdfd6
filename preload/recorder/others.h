/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous memory of all other processes of the machine: N.
 *
 * RssAnon counts a page with each process that maps it. A forked copy that never called exec maps its parent's pages
 * until one of the two writes: of such a process only what it has alone counts (Private_Dirty), and of a vfork child,
 * which is in its parent's memory, nothing.
 */
#ifndef SPARKTRACE_RECORDER_OTHERS_H
#define SPARKTRACE_RECORDER_OTHERS_H

#include <stdint.h>

/* Without the program `pid`, what shares its memory, and this process. ST_UNKNOWN: /proc cannot be read. */
uint64_t others_anon(uint32_t pid, uint64_t page_size);

#endif
