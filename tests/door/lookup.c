/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may ask of dlsym, and what it is told: the same with and without anything in front of it.
 * Links libnext.so (next.c), which asks for the definition behind its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

double half_cos(double x);
const char *next_of_missing(void);

static const char *object_of(void *address)
{
	Dl_info info;

	if (!address)
		return "nothing";
	if (!dladdr(address, &info))
		return "somewhere";
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

/* What dlerror says, without the name of the object that was searched. */
static const char *error(void)
{
	const char *text = dlerror();
	const char *colon = text ? strstr(text, ": ") : NULL;

	return !text ? "no error" : colon ? colon + 2 : text;
}

static void ask_version(void *handle, const char *name, const char *version)
{
	void *address;

	dlerror();
	address = dlvsym(handle, name, version);
	printf("%s of %s: %s, %s\n", name, version, object_of(address), error());
}

static void ask(const char *what, void *handle, const char *name)
{
	void *address;

	dlerror();
	address = dlsym(handle, name);
	printf("%s %s: %s, %s\n", what, name, object_of(address), error());
}

int main(void)
{
	void *libm = dlopen("libm.so.6", RTLD_NOW), *self = dlopen(NULL, RTLD_NOW);
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	printf("half_cos(0) = %g\n", half_cos(0));
	printf("missing: %s\n", next_of_missing());
	ask("libm", libm, "cos");
	ask("libm", libm, "no_such_name");
	ask("libm", libm, "cuInit");
	ask("default", RTLD_DEFAULT, "half_cos");
	ask("default", RTLD_DEFAULT, "no_such_name");
	ask("default", RTLD_DEFAULT, "cuInit");
	ask("default", RTLD_DEFAULT, "cuMemAlloc_v2");
	ask("next", RTLD_NEXT, "half_cos");
	ask("next", RTLD_NEXT, "cuMemAlloc_v2");
	ask("self", self, "half_cos");
	ask("self", self, "cuInit");
	ask("libc", libc, "mmap");
	ask_version(libc, "dlsym", "GLIBC_2.34");
	ask_version(libc, "dlsym", "NO_SUCH");
	ask_version(RTLD_NEXT, "dlopen", "GLIBC_2.34");
	ask_version(libc, "cuMemAlloc_v2", "GLIBC_2.34");
	return 0;
}
