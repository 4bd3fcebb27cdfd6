/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "event.h"
#include "guard.h"
#include "real.h"
#include "text.h"
#include "touch.h"

#include <dlfcn.h>
#include <string.h>

#include "banned.h"

struct driver_row {
	const char *name;
	const char *base;
	int version;
	bool per_thread; /* the twin for the per-thread default stream */
	void *wrapper;   /* NULL: needed, not owned */
};

static const struct driver_row rows[DRIVER_COUNT] = {
#define D(name, base, version, twin) {#name, #base, version, sizeof(#twin) > 1, (void *)&name},
#define N(name, type)
#include "driver.def"
#undef N
#undef D
#define D(name, base, version, twin)
#define N(name, type) {#name, NULL, 0, false, NULL},
#include "driver.def"
#undef N
#undef D
};

#define SECONDS 4 /* other drivers that are remembered, so that each is reported once */

_Atomic(void *) driver_address[DRIVER_COUNT];
static _Atomic(struct link_map *) provider;
static _Atomic(struct link_map *) seconds[SECONDS];
static _Atomic bool renamed;

/* Writes the record `coverage`: what, then which. */
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

/* Whatever its version, the driver's file is called libcuda.*, a renamed copy in a wheel libcuda-<hash>.*. */
static bool is_driver(const struct link_map *object)
{
	const char *slash = strrchr(object->l_name, '/');
	const char *file = slash ? slash + 1 : object->l_name;

	return strncmp(file, "libcuda.", 8) == 0 || strncmp(file, "libcuda-", 8) == 0;
}

static struct link_map *object_of(void *address)
{
	struct link_map *object = NULL;
	Dl_info info;

	return dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP) ? object : NULL;
}

/* Another interposer: our exports now lead from the program straight to the driver. */
static void report_others(struct link_map *object)
{
	void *next = real()->dlsym(RTLD_NEXT, "cuInit");
	struct link_map *other = next ? object_of(next) : NULL;

	if (other && other != object)
		report("another library exports driver entries too, and is passed over: ", other->l_name);
}

/*
 * Several threads may do this at once and write the same. None waits for another: one may hold the loader's
 * lock, which the other needs here.
 */
static void driver_fill(void *handle, struct link_map *object)
{
	for (unsigned i = 0; i < DRIVER_COUNT; i++)
		atomic_store_explicit(&driver_address[i], real()->dlsym(object, rows[i].name),
		                      memory_order_release);
	if (real()->dlsym(handle, "simcuda_version"))
		shim_simulated();
	report_others(object);
}

/*
 * Takes `object` for the driver unless one is known, and a reference to it that is never given back. Only what
 * dlopen returned may be asked: an object from the start of the program has no scope of its own before that.
 */
static void driver_adopt(struct link_map *object)
{
	struct link_map *none = NULL;
	void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);

	if (handle && (atomic_compare_exchange_strong(&provider, &none, object) || none == object))
		driver_fill(handle, object);
	dlerror();
}

static void driver_look(void)
{
	struct link_map *object = real_object("libcuda.so.1");

	if (object)
		driver_adopt(object);
}

/* A driver that is not the one we know stays as it is; the trace says so. */
static void driver_second(struct link_map *object)
{
	for (unsigned i = 0; i < SECONDS; i++) {
		struct link_map *none = NULL;

		if (atomic_compare_exchange_strong(&seconds[i], &none, object)) {
			report("a second driver library, whose calls are not seen: ", object->l_name);
			return;
		}
		if (none == object)
			return;
	}
}

/* CUDA_ERROR_NOT_INITIALIZED whatever the arguments; the caller removes them on both architectures. */
static CUresult driver_absent(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

/* In the objects of `object` alone. The program itself has no scope but the global one, with our exports in it. */
static void *lookup_in(struct link_map *object, const char *name)
{
	void *handle;

	if (!object->l_prev || object == real_own())
		return NULL;
	handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	dlclose(handle);
	return real()->dlsym(handle, name); /* last, for dlerror(); the object is still loaded */
}

void *driver_beyond(const char *name, void *caller)
{
	void *address = real()->dlsym(RTLD_NEXT, name);
	struct link_map *object = address ? NULL : object_of(caller);

	return object ? lookup_in(object, name) : address;
}

void *driver_find(enum driver_entry entry, void *caller)
{
	void *address;

	if (!atomic_load_explicit(&provider, memory_order_acquire))
		driver_look();
	address = atomic_load_explicit(&driver_address[entry], memory_order_acquire);
	if (address)
		return address;
	address = driver_beyond(rows[entry].name, caller);
	dlerror();
	return address ? address : (void *)&driver_absent;
}

bool driver_owns(const char *name)
{
	if (!name || name[0] != 'c' || name[1] != 'u' || name[2] < 'A' || name[2] > 'Z')
		return false;
	for (unsigned i = 0; i < DRIVER_OWNED; i++)
		if (strcmp(rows[i].name, name) == 0)
			return true;
	return false;
}

bool driver_is_wrapper(const void *address)
{
	for (unsigned i = 0; address && i < DRIVER_OWNED; i++)
		if (rows[i].wrapper == address)
			return true;
	return false;
}

static void *wrapper_of(void *address)
{
	for (unsigned i = 0; i < DRIVER_OWNED; i++)
		if (atomic_load_explicit(&driver_address[i], memory_order_acquire) == address)
			return rows[i].wrapper;
	return NULL;
}

void *driver_wrapped(void *address)
{
	struct link_map *object;
	void *wrapper;

	if (!address)
		return NULL;
	wrapper = wrapper_of(address);
	object = wrapper ? NULL : object_of(address);
	if (!object || !is_driver(object))
		return wrapper ? wrapper : address;
	if (!atomic_load_explicit(&provider, memory_order_acquire))
		driver_look();
	if (!atomic_load_explicit(&provider, memory_order_acquire))
		driver_adopt(object);
	wrapper = wrapper_of(address);
	if (!wrapper && object != atomic_load_explicit(&provider, memory_order_acquire))
		driver_second(object);
	return wrapper ? wrapper : address;
}

/* Does the resolver give `address` for this row too? Then it means the row's ABI. */
static bool answers(const struct driver_row *row, void *address, cuuint64_t flags)
{
	__typeof__(&cuGetProcAddress_v2) resolve = OPTIONAL(cuGetProcAddress_v2);
	void *answer = NULL;

	return resolve && resolve(row->base, &answer, row->version, flags, NULL) == CUDA_SUCCESS &&
	       answer == address;
}

void *driver_resolved(void *address, const char *symbol, cuuint64_t flags)
{
	void *wrapper = wrapper_of(address);
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	for (unsigned i = 0; !wrapper && symbol && i < DRIVER_OWNED; i++) {
		void *none = NULL;

		if (strcmp(rows[i].base, symbol) != 0 || (rows[i].per_thread && !per_thread) ||
		    !answers(&rows[i], address, flags))
			continue;
		atomic_compare_exchange_strong(&driver_address[i], &none, address);
		if (!atomic_exchange(&renamed, true))
			report("the driver's resolver gives addresses that are no exports, first for ",
			       symbol);
		wrapper = rows[i].wrapper;
	}
	return wrapper ? wrapper : address;
}

void driver_finish(void)
{
	struct link_map *object =
		atomic_load_explicit(&provider, memory_order_acquire) ? NULL : real_object("libcuda.so.1");

	if (object)
		report("the driver is loaded, but no way to it led through us (RTLD_DEEPBIND?): ",
		       object->l_name);
}
