/* SPDX-License-Identifier: Apache-2.0 */
/* Baselines of others; and what is taken must come through writing and reading again unchanged. */
#include "analyzer/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory: every file is synced. */
static char folder[] = "/dev/shm/fuzz-baseline.XXXXXX";
static char given[64], first[64], second[64];

static void sweep(void)
{
	unlink(given);
	unlink(first);
	unlink(second);
	rmdir(folder);
}

/* What is said of each wrong input goes nowhere; sanitizers write to the descriptor. */
static void begin(void)
{
	if (*given)
		return;
	stderr = fopen("/dev/null", "w");
	if (!stderr || !mkdtemp(folder))
		abort();
	snprintf(given, sizeof(given), "%s/given", folder);
	snprintf(first, sizeof(first), "%s/first", folder);
	snprintf(second, sizeof(second), "%s/second", folder);
	atexit(sweep);
}

static void put(const uint8_t *data, size_t size)
{
	FILE *out = fopen(given, "w");

	if (!out || fwrite(data, 1, size, out) != size || fclose(out))
		abort();
}

static size_t get(const char *path, char *text)
{
	FILE *in = fopen(path, "r");
	size_t size;

	if (!in)
		abort();
	size = fread(text, 1, TEXT_MAX, in);
	fclose(in);
	return size;
}

static void compare_files(void)
{
	static char a[TEXT_MAX], b[TEXT_MAX];
	size_t size = get(first, a);

	if (size != get(second, b) || memcmp(a, b, size) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct measures baseline = {0}, again = {0};

	begin();
	put(data, size);
	if (baseline_read(given, &baseline))
		return 0;
	/* A trace is another fuzzer's matter. */
	if (baseline_is_file(baseline.runs)) {
		if (baseline_write(first, baseline.runs) || baseline_read(first, &again) ||
		    baseline_write(second, again.runs))
			abort();
		compare_files();
		measures_release(&again);
	}
	measures_release(&baseline);
	return 0;
}
