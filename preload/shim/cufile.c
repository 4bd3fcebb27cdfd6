/* SPDX-License-Identifier: Apache-2.0 */
#include "cufile.h"

#include "driver.h"
#include "event.h"
#include "guard.h"
#include "real.h"
#include "sys.h"
#include "text.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "banned.h"

#define HANDLES 1024 /* registered at one time: a shard each */

static const struct row {
	const char *name;
	void *wrapper;
} rows[CUFILE_COUNT] = {
#define C(name) {#name, (void *)&name},
#include "cufile.def"
#undef C
};

static _Atomic(void *) addresses[CUFILE_COUNT];
static _Atomic uintptr_t library_start, library_end;
static _Atomic(const void *) library; /* the one that is known: the first seen */

/* An entry belongs to the process that made it: a fork child numbers its files anew. */
static struct handle {
	_Atomic(cufile_handle) handle; /* NULL: free; `taken`: being written */
	uint32_t pid;
	struct file file;
} handles[HANDLES];
static char taken;

static void report(const char *what, const char *which)
{
	char buffer[320];
	struct text text = text_in(buffer, sizeof(buffer));
	struct guard guard;

	if (!guard_enter_nested(&guard))
		return;
	text_add(&text, what);
	text_add(&text, which);
	EVENT_TAIL(coverage, buffer, text_length(&text), );
	guard_leave(&guard);
}

static const struct row *row_find(const char *name)
{
	if (!name || strncmp(name, "cuFile", 6) != 0)
		return NULL;
	for (unsigned i = 0; i < CUFILE_COUNT; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

bool cufile_owns(const char *name)
{
	return row_find(name) != NULL;
}

bool cufile_is_wrapper(const void *address)
{
	for (unsigned i = 0; address && i < CUFILE_COUNT; i++)
		if (rows[i].wrapper == address)
			return true;
	return false;
}

/* Where its code lies: its program headers stand in its first page. */
static void library_measure(const void *base)
{
	const ElfW(Ehdr) *head = base;
	const ElfW(Phdr) *segments = (const void *)((const char *)base + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X))
			continue;
		atomic_store(&library_end, (uintptr_t)base + segments[i].p_vaddr + segments[i].p_memsz);
		atomic_store(&library_start, (uintptr_t)base + segments[i].p_vaddr);
	}
}

/* Whatever its version, its file is called libcufile.*, a renamed copy in a wheel libcufile-<hash>.*. */
static bool is_library(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *file = slash ? slash + 1 : path;

	return file && (strncmp(file, "libcufile.", 10) == 0 || strncmp(file, "libcufile-", 10) == 0);
}

/* Is `address` of the library that we know, or of the first one? Another one stays as it is; the trace says so. */
static bool library_known(void *address)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const void *none = NULL;
	Dl_info info;

	if (!dladdr(address, &info) || !is_library(info.dli_fname))
		return false;
	if (atomic_compare_exchange_strong(&library, &none, info.dli_fbase))
		library_measure(info.dli_fbase);
	else if (none != info.dli_fbase && !atomic_flag_test_and_set(&said))
		report("a second libcufile, whose reads are not seen: ", info.dli_fname);
	return atomic_load(&library) == info.dli_fbase;
}

/* Keeps the address of a row, which changes once, from NULL. True: it is the library's. */
static bool row_learn(const struct row *row, void *address)
{
	_Atomic(void *) *at = &addresses[row - rows];

	if (atomic_load_explicit(at, memory_order_acquire) == address)
		return true;
	if (!library_known(address))
		return false;
	atomic_store_explicit(at, address, memory_order_release);
	return true;
}

void *cufile_wrapped(const char *name, void *address)
{
	const struct row *row = row_find(name);

	return row && address && row_learn(row, address) ? row->wrapper : address;
}

void *cufile_real(enum cufile_entry entry, void *caller)
{
	void *address = atomic_load_explicit(&addresses[entry], memory_order_acquire);

	if (likely(address != NULL))
		return address;
	address = driver_beyond(rows[entry].name, caller);
	dlerror();
	if (address)
		row_learn(&rows[entry], address);
	return address;
}

bool cufile_inside(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	return at >= atomic_load_explicit(&library_start, memory_order_relaxed) &&
	       at < atomic_load_explicit(&library_end, memory_order_relaxed);
}

static struct handle *handle_find(cufile_handle handle)
{
	for (unsigned i = 0; handle && i < HANDLES; i++)
		if (atomic_load_explicit(&handles[i].handle, memory_order_acquire) == handle)
			return &handles[i];
	return NULL;
}

void cufile_remember(cufile_handle handle, int fd)
{
	struct file file;

	if (!handle || !file_of(fd, &file) || !file_weights(&file))
		return;
	for (unsigned i = 0; i < HANDLES; i++) {
		cufile_handle none = NULL;

		if (!atomic_compare_exchange_strong(&handles[i].handle, &none, &taken))
			continue;
		handles[i].pid = sys_getpid();
		handles[i].file = file;
		atomic_store_explicit(&handles[i].handle, handle, memory_order_release);
		return;
	}
	report("too many files are registered with cuFile at one time; what is read from the others is not "
	       "seen",
	       "");
}

bool cufile_file(cufile_handle handle, struct file *ret_file)
{
	struct handle *found = handle_find(handle);

	if (!found || found->pid != sys_getpid())
		return false;
	*ret_file = found->file;
	return true;
}

void cufile_forget(cufile_handle handle)
{
	struct handle *found = handle_find(handle);

	if (found)
		atomic_store_explicit(&found->handle, NULL, memory_order_release);
}
