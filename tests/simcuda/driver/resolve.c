/* SPDX-License-Identifier: Apache-2.0 */
/* Names of errors, and the resolver: which export a base name, a CUDA version and flags mean. */
#include "tests/simcuda/driver/sim.h"
#include "tests/simcuda/driver/resolver.h"

#include <string.h>

struct error {
	CUresult code;
	const char *name, *text;
};

static const struct error errors[] = {
	{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{CUDA_ERROR_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported"},
	{CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
         "part or all of the requested memory range is already mapped"},
	{CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
         "pointer does not correspond to a registered memory region"},
	{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const struct error *error_find(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
	const struct error *error = error_find(code);

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char **name)
{
	const struct error *error = error_find(code);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The private tables between driver and runtime are the vendor's own; there are none here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* First row of a name in the sorted table, or the table's end. */
static size_t rows_find(const char *name)
{
	size_t low = 0, high = resolver_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(resolver_rows[middle].base, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The newest row that the version covers; a per-thread-stream twin wins over it where one is wanted. */
static const struct resolver_row *row_choose(const char *name, int version, bool per_thread, bool *ret_known)
{
	const struct resolver_row *best[2] = {NULL, NULL};

	*ret_known = false;
	for (size_t i = rows_find(name); i < resolver_count && strcmp(resolver_rows[i].base, name) == 0;
	     i++) {
		const struct resolver_row *row = &resolver_rows[i];

		*ret_known = true;
		if (row->version <= version && (!best[row->twin] || row->version > best[row->twin]->version))
			best[row->twin] = row;
	}
	return per_thread && best[1] ? best[1] : best[0];
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
	const struct resolver_row *row;
	bool known;

	if (!name || !function || version > SIM_DRIVER_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	row = row_choose(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
	*function = row ? row->function : NULL;
	if (status)
		*status = row     ? CU_GET_PROC_ADDRESS_SUCCESS
		          : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
		                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return row || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The first form, of CUDA 11.3: no status, and an error where there is no function. */
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
