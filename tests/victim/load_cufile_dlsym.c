/* SPDX-License-Identifier: Apache-2.0 */
/* cufile_load.h, by dlopen and dlsym: fastsafetensors and kvikio find libcufile like this. 4: there is none. */
#include "cufile_load.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *library = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL);
	struct cufile api;

	if (!library || dlsym(RTLD_DEFAULT, "cuFileRead"))
		return 4;
#define E(name) MUST((api.name = (__typeof__(api.name))dlsym(library, #name)) == NULL);
	CUFILE_ENTRIES(E)
#undef E
	return cufile_main(argc, argv, &api);
}
