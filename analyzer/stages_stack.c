/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with memory, told by the functions and packages that asked for it. */
#include <analyzer/stages.h>

#include <string.h>

/*
 * Part of a function's name, or the name of a package, and what it says; the first row that any frame fits counts.
 * at::native::_to_copy is what PyTorch's .to(dtype) becomes; bitsandbytes quantises on the device and allocates its
 * outputs there (facts/loaders.md 4.3); engines re-pack in process_weights_after_loading (5.1).
 */
static const struct {
	const char *function, *package;
	enum stage stage;
} rows[] = {
	{"process_weights_after_loading", NULL, STAGE_REPACK},
	{"repack", NULL, STAGE_REPACK},
	{NULL, "bitsandbytes", STAGE_QUANTISE},
	{"quantize", NULL, STAGE_QUANTISE},
	{"_ZN2at6native8_to_copy", NULL, STAGE_CONVERSION},
	{"_ZN2at6native5clone", NULL, STAGE_HOST_COPY},
	{"_ZN2at6native10contiguous", NULL, STAGE_HOST_COPY},
};

static bool row_fits(size_t row, const char *function, const struct package *package)
{
	if (rows[row].package)
		return package && !strcmp(package->name, rows[row].package);
	return function && strstr(function, rows[row].function);
}

static bool stack_fits(const struct names *names, uint32_t stack, size_t row)
{
	for (size_t i = 0; i < names_depth(names, stack); i++) {
		struct frame frame = names_frame(names, stack, i);

		if (row_fits(row, frame.function, names_package(names, frame.module)))
			return true;
	}
	for (size_t i = 0; i < names_python_depth(names, stack); i++) {
		struct python_frame frame = names_python_frame(names, stack, i);

		if (row_fits(row, frame.function, names_package(names, frame.file)))
			return true;
	}
	return false;
}

enum stage stage_of_stack(const struct names *names, uint32_t stack)
{
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		if (stack_fits(names, stack, row))
			return rows[row].stage;
	return STAGE_COUNT;
}
