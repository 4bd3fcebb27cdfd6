/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver: the driver answers first, with the program's own arguments (an empty name, version 0 and no
 * place for the status are all in use), and only an address that it gave is replaced. Status and result
 * stay as they are. Nothing is recorded and nothing starts here: programs resolve hundreds of names
 * before they ask for anything.
 */
#include "call.h"

#include "banned.h"

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags)
{
	CUresult result = DRIVER(cuGetProcAddress)(symbol, address, version, flags);

	if (result == CUDA_SUCCESS && address && *address)
		*address = driver_resolved(*address, symbol, flags);
	return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
	CUresult result = DRIVER(cuGetProcAddress_v2)(symbol, address, version, flags, status);

	if (result == CUDA_SUCCESS && address && *address)
		*address = driver_resolved(*address, symbol, flags);
	return result;
}
