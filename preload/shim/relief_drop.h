/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SPARKTRACE_RELIEF=drop: the page cache of a weight range is given back once it has been used: copied to the device
 * straight from its mapping, read, or unmapped for the last time.
 *
 * Nothing can be lost by it. Mapped pages are given back by MADV_PAGEOUT, which writes out what only memory holds,
 * whatever is mapped there by then; what was read, by posix_fadvise on the descriptor it was read from; what is left of
 * mappings that are gone is the recorder's, which sees the record and asks for it by posix_fadvise on its own.
 * What is dropped too early is read again. All with the guard up; errno is not kept.
 */
#ifndef SPARKTRACE_SHIM_RELIEF_DROP_H
#define SPARKTRACE_SHIM_RELIEF_DROP_H

#include "file.h"
#include "maps.h"

#include <sparktrace/format.h>

/* A copy to the device out of [addr, addr + size) was asked for; one that is not over is remembered until its sync. */
void drop_copied(uintptr_t addr, uint64_t size, bool async, uint64_t stream);

/* The program waited for that stream, or (ST_SYNC_CONTEXT) for all. An event does not tell which copies it stands behind. */
void drop_synced(enum st_sync_how how, uint64_t handle);

/* Bytes of a weight file were read from `fd`. */
void drop_read(int fd, const struct file *file, uint64_t offset, uint64_t size);

/* Mappings that are about to go; more at once are not given back. */
struct drop {
	struct mapping parts[8];
	unsigned count;
};

/* `no_copies`: a look has shown that no page of them is anonymous, which could only go to swap. */
void drop_look(struct drop *drop, uintptr_t start, uintptr_t end, bool no_copies);
void drop_unmapped(const struct drop *drop);

#endif
