/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous copies in private mappings of weight files, counted before they vanish. */
#ifndef SPARKTRACE_SHIM_ANON_H
#define SPARKTRACE_SHIM_ANON_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Writes `anon` records for what the remembered mappings hold between start and end, which the program is about to
 * unmap, map over, move or discard. Costs nothing where nothing is remembered, else 12-14 ms per GiB of copies. The
 * guard must be up. True: all was seen, and there are none.
 */
bool anon_note(uintptr_t start, uintptr_t end, enum st_moment why);

#endif
