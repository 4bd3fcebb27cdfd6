/* SPDX-License-Identifier: Apache-2.0 */
/* cufile_load.h, through the linker: torch is bound to libcufile like this. */
#include "cufile_load.h"

int main(int argc, char **argv)
{
	static const struct cufile api = {
#define E(name) name,
		CUFILE_ENTRIES(E)
#undef E
	};

	return cufile_main(argc, argv, &api);
}
