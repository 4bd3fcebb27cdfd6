/* SPDX-License-Identifier: Apache-2.0 */
/* The decision of the stubs dlsym and dlvsym (x86_64/dlsym.S, aarch64/dlsym.S). */
#ifndef SPARKTRACE_SHIM_DOOR_H
#define SPARKTRACE_SHIM_DOOR_H

/* Two registers. */
struct door {
	void *jump;   /* not NULL: go there, as if the program had called it */
	void *answer; /* else return this */
};

/* `caller` is the return address of the program's call; `version` means nothing to door_dlsym. */
struct door door_dlsym(void *handle, const char *name, const char *version, void *caller);
struct door door_dlvsym(void *handle, const char *name, const char *version, void *caller);

#endif
