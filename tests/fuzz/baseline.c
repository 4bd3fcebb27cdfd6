/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baselines of others; and what is taken must come through writing and reading again unchanged. Measures of any numbers and
 * names, which no file had first: what is written of them is taken.
 */
#include "analyzer/baseline.h"

#include <errno.h>
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

/* What was written of a measure is taken, and is then written alike. */
static void come_through(const struct measure *measure)
{
	struct measures again = {0};

	if (baseline_write(first, measure) || baseline_read(first, &again) ||
	    baseline_write(second, again.runs))
		abort();
	compare_files();
	measures_release(&again);
}

static void try_file(const uint8_t *data, size_t size)
{
	struct measures baseline = {0};

	put(data, size);
	if (baseline_read(given, &baseline))
		return;
	/* A trace is another fuzzer's matter. */
	if (baseline_is_file(baseline.runs))
		come_through(baseline.runs);
	measures_release(&baseline);
}

/* The input as numbers of any size: of the next byte the low six bits say how many bits of the eight bytes behind it count. */
static uint64_t take(const uint8_t **data, size_t *size)
{
	uint64_t number = 0;
	unsigned bits;

	if (*size < 1 + sizeof(number))
		return 0;
	bits = **data % 64;
	memcpy(&number, *data + 1, sizeof(number));
	*data += 1 + sizeof(number);
	*size -= 1 + sizeof(number);
	return number >> bits;
}

static void try_measure(const uint8_t *data, size_t size)
{
	char name[3000] = "-", version[] = "1";
	struct measure_version versions = {name, version};
	struct part parts[METRIC_COUNT];
	struct measures baseline = {0};
	int error;
	struct measure measure = {
		.breakdown = {parts, METRIC_COUNT}, .versions = &versions, .version_count = 1};

	measure.fingerprint.device = "none";
	measure.fingerprint.allocator = name;
	measure.fingerprint.heap_threshold = take(&data, &size);
	measure.fingerprint.threads = take(&data, &size);
	measure.weights = take(&data, &size);
	measure.scale.largest_tensor = take(&data, &size);
	measure.scale.released = take(&data, &size);
	for (int i = 0; i < METRIC_COUNT; i++) {
		uint64_t low = take(&data, &size);
		struct range value = {low, bytes_add(low, take(&data, &size))};

		measure.values[i] = value;
		parts[i] = (struct part){(enum metric)i, PART_FILE, name, value, NULL};
	}
	snprintf(name + 1, sizeof(name) - 1, "%.*s", (int)(size < 2900 ? size : 2900), (const char *)data);
	error = baseline_write(given, &measure);
	if (error == -ENODATA)
		return;
	if (error || baseline_read(given, &baseline))
		abort();
	come_through(baseline.runs);
	measures_release(&baseline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	try_file(data, size);
	try_measure(data, size);
	return 0;
}
