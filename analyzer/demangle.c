/* SPDX-License-Identifier: Apache-2.0 */
#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangle_function(const char *name, char *buffer, size_t *length, int *status);

/* Not a dependency: an analyzer without a C++ runtime shows the names as they are. */
static demangle_function *find_demangler(void)
{
	static demangle_function *found;
	static int looked;
	void *library;

	if (looked)
		return found;
	looked = 1;
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		*(void **)&found = dlsym(library, "__cxa_demangle");
	return found;
}

/* Cuts "(...)" and what follows it off the end; "(anonymous namespace)::f" and "operator()" stay. */
static void cut_arguments(char *name)
{
	char *end = strrchr(name, ')'), *at = end;
	int depth = 0;

	if (!end || strchr(end, ':'))
		return;
	for (; at > name; at--) {
		depth += (*at == ')') - (*at == '(');
		if (!depth)
			break;
	}
	if (at > name && (at < name + 8 || strncmp(at - 8, "operator", 8) != 0))
		*at = '\0';
}

char *demangle_name(const char *name)
{
	demangle_function *demangle = !strncmp(name, "_Z", 2) ? find_demangler() : NULL;
	int status = -1;
	char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;

	if (!text || status) {
		free(text);
		return strdup(name);
	}
	cut_arguments(text);
	return text;
}
