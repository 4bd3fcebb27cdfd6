/* SPDX-License-Identifier: Apache-2.0 */
/* What dlsym and dlvsym do, behind the stubs of <arch>/dlsym.S. */
#include "door.h"

#include "cufile.h"
#include "driver.h"
#include "real.h"

#include <dlfcn.h>

#include "banned.h"

/* Does the caller's object stand before us in the order of lookups (the program itself does)? */
static bool before_us(void *caller)
{
	struct link_map *object = NULL;
	Dl_info info;

	if (!dladdr1(caller, &info, (void **)&object, RTLD_DL_LINKMAP))
		return false;
	for (struct link_map *at = real_own(); at; at = at->l_prev)
		if (at->l_prev == object)
			return true;
	return false;
}

/*
 * RTLD_NEXT is answered by the caller's place in the list of objects, so it is jumped to even for our names:
 * what another interposer asks for behind itself is its own affair. Only from before us it would find ours,
 * driver or no driver.
 */
static bool door_ours(void *handle, const char *name, void *caller)
{
	return (driver_owns(name) || cufile_owns(name)) && (handle != RTLD_NEXT || before_us(caller));
}

/*
 * Our exports come first in the global scope, where RTLD_DEFAULT and the program's own handle look: they would be
 * found there without any driver.
 */
static void *door_lookup(void *handle, const char *name, void *caller)
{
	void *address;

	if (handle == RTLD_DEFAULT)
		return driver_beyond(name, caller);
	address = real()->dlsym(handle, name);
	if ((driver_is_wrapper(address) || cufile_is_wrapper(address)) && handle != real_own())
		address = real()->dlsym(RTLD_NEXT, name);
	return address;
}

/* What the program gets in place of the address that it would have got. */
static void *door_answer(const char *name, void *address)
{
	return cufile_owns(name) ? cufile_wrapped(name, address) : driver_wrapped(address);
}

struct door door_dlsym(void *handle, const char *name, const char *version, void *caller)
{
	(void)version;
	if (!door_ours(handle, name, caller))
		return (struct door){(void *)real()->dlsym, NULL};
	return (struct door){NULL, door_answer(name, door_lookup(handle, name, caller))};
}

struct door door_dlvsym(void *handle, const char *name, const char *version, void *caller)
{
	if (!door_ours(handle, name, caller) || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
		return (struct door){(void *)real()->dlvsym, NULL};
	return (struct door){NULL, door_answer(name, real()->dlvsym(handle, name, version))};
}
