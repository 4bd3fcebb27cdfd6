/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a plugin and runs it.
 *
 *	host PLUGIN local|global|deepbind [OTHER_DRIVER|- [WEIGHTS]]
 *
 * OTHER_DRIVER, a second driver library, is asked for one allocation of 4 MiB afterwards. WEIGHTS is a file that
 * starts a recording when it is opened.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int mode(const char *word)
{
	if (strcmp(word, "global") == 0)
		return RTLD_NOW | RTLD_GLOBAL;
	return strcmp(word, "deepbind") == 0 ? RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND : RTLD_NOW | RTLD_LOCAL;
}

static int other_driver(const char *path)
{
	unsigned long long address = 0;
	void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*alloc)(unsigned long long *, size_t);

	if (!driver)
		return -1;
	alloc = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
	return alloc(&address, 4 << 20);
}

int main(int argc, char **argv)
{
	void *plugin = argc > 2 ? dlopen(argv[1], mode(argv[2])) : NULL;
	int (*run)(size_t);

	if (!plugin) {
		fprintf(stderr, "host: %s\n", argc > 2 ? dlerror() : "PLUGIN MODE");
		return 2;
	}
	run = (int (*)(size_t))dlsym(plugin, "plugin_run");
	printf("plugin %d\n", run(1 << 20));
	if (argc > 4)
		printf("weights %d\n", open(argv[4], O_RDONLY | O_CLOEXEC) >= 0);
	if (argc > 3 && strcmp(argv[3], "-") != 0)
		printf("other %d\n", other_driver(argv[3]));
	return 0;
}
