/* SPDX-License-Identifier: Apache-2.0 */
/* What is wanted of an ELF file: where it was linked to, who it is, names of its functions. */
#ifndef SPARKTRACE_RECORDER_ELFFILE_H
#define SPARKTRACE_RECORDER_ELFFILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The object mapped at `start` from `offset` of the file `path`, inode `ino`.
 * ret_bias: address minus the object's own virtual address; ret_build_id: first 8 bytes, big-endian,
 * 0: none. 0; -ESTALE: another file by now; -ENOEXEC: no ELF; errors of open.
 */
int elffile_look(const char *path, uint64_t ino, uint64_t start, uint64_t offset, uint64_t *ret_bias,
                 uint64_t *ret_build_id);

/* An address to be named: in the object's own virtual addresses. */
struct elffile_name {
	uint64_t address;
	uint64_t start; /* found: of the function */
	char *name;     /* found, on the heap; NULL: not found */
	int rank;       /* the better of several names at one place */
};

/*
 * One pass through the symbol table (.symtab, else .dynsym) for all `names`, sorted by address.
 * Functions with a size only: whatever covers the address. 0 or negative errno as above.
 */
int elffile_name(const char *path, uint64_t ino, struct elffile_name *names, size_t count);

#endif
