/* SPDX-License-Identifier: Apache-2.0 */
/* Under which circumstances a run was measured. */
#include <analyzer/measure_parts.h>
#include <analyzer/units.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Settings of PyTorch's allocator; the first two are one setting under its old and its new name. */
static const struct {
	const char *info, *prefix;
} allocator_settings[] = {
	{"env.PYTORCH_CUDA_ALLOC_CONF", ""},
	{"env.PYTORCH_ALLOC_CONF", ""},
	{"env.PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING="},
};

static const char *const door_names[DEVICE_DOOR_COUNT] = {
	[DEVICE_DOOR_BLOCK] = "block",     [DEVICE_DOOR_VMM] = "vmm",     [DEVICE_DOOR_POOL] = "pool",
	[DEVICE_DOOR_MANAGED] = "managed", [DEVICE_DOOR_ARRAY] = "array",
};

/* By which most bytes came; "none" where none did. */
static const char *main_door(const struct measured *processes, size_t count)
{
	uint64_t doors[DEVICE_DOOR_COUNT] = {0}, most = 0;
	const char *name = "none";

	for (size_t i = 0; i < count; i++)
		for (int d = 0; d < DEVICE_DOOR_COUNT; d++)
			doors[d] = bytes_add(doors[d], processes[i].model->doors[d]);
	for (int d = 0; d < DEVICE_DOOR_COUNT; d++) {
		if (doors[d] <= most)
			continue;
		most = doors[d];
		name = door_names[d];
	}
	return name;
}

static char *allocator_text(const struct measured *processes, size_t count)
{
	const struct model *first = processes[0].model;
	const char *between = " (";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs(main_door(processes, count), out);
	for (size_t i = 0; i < sizeof(allocator_settings) / sizeof(allocator_settings[0]); i++) {
		const char *value = model_info(first, allocator_settings[i].info);

		if (!value || !*value)
			continue;
		fprintf(out, "%s%s%s", between, allocator_settings[i].prefix, value);
		between = ", ";
	}
	if (*between == ',')
		fputc(')', out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A program that asked the driver for nothing is the same everywhere. */
static const char *device_class(const struct model *whole, const struct measured *processes, size_t count)
{
	static const char *const names[] = {[ST_POOL_UNKNOWN] = "unknown",
	                                    [ST_POOL_UMA] = "unified",
	                                    [ST_POOL_DISCRETE] = "discrete",
	                                    [ST_POOL_SIMULATED] = "simulated"};
	bool used = whole->device_peak || whole->pinned_peak;

	for (size_t i = 0; i < count; i++)
		used |= processes[i].model->device_peak || processes[i].model->pinned_peak;
	if (!used)
		return "none";
	return (size_t)whole->pool < sizeof(names) / sizeof(names[0]) ? names[whole->pool] : "unknown";
}

/* What was asked for, and whether it took place everywhere. */
static char *relief_text(const struct measured *processes, size_t count)
{
	const char *asked = model_info(processes[0].model, "setting.SPARKTRACE_RELIEF");
	bool refused = false;
	char *text;

	for (size_t i = 0; i < count; i++)
		refused |= processes[i].model->relief.refused != 0;
	if (asprintf(&text, "%s%s", asked && *asked ? asked : "off", refused ? " (refused)" : "") < 0)
		return NULL;
	return text;
}

static uint64_t heap_threshold(const struct model *model)
{
	const char *value = model_info(model, "setting.SPARKTRACE_HEAP_THRESHOLD");
	uint64_t bytes;

	return value && !size_parse(value, &bytes) ? bytes : ST_UNKNOWN;
}

int fingerprint_make(struct fingerprint *fingerprint, const struct model *whole,
                     const struct measured *processes, size_t count)
{
	fingerprint->device = device_class(whole, processes, count);
	fingerprint->heap_threshold = heap_threshold(processes[0].model);
	fingerprint->threads = whole->load.threads;
	fingerprint->page_size = whole->page_size;
	fingerprint->processes = count;
	fingerprint->allocator = allocator_text(processes, count);
	fingerprint->relief = relief_text(processes, count);
	return fingerprint->allocator && fingerprint->relief ? 0 : -ENOMEM;
}

void fingerprint_release(struct fingerprint *fingerprint)
{
	free(fingerprint->allocator);
	free(fingerprint->relief);
	*fingerprint = (struct fingerprint){0};
}

/* --- versions ------------------------------------------------------------------------------------- */

#define VERSION_UNKNOWN "unknown"

/* Two of one name: both are said. An unknown one says nothing beside another. */
static bool version_is_said(const struct measure *measure, const struct loader_part *part)
{
	for (size_t i = 0; i < measure->version_count; i++) {
		const struct measure_version *version = &measure->versions[i];

		if (!strcmp(version->name, part->name) &&
		    (!part->version || !strcmp(version->version, part->version)))
			return true;
	}
	return false;
}

/* The one of that name whose version is unknown makes room. */
static void version_forget_unknown(struct measure *measure, const char *name)
{
	for (size_t i = 0; i < measure->version_count; i++) {
		struct measure_version *version = &measure->versions[i];

		if (strcmp(version->name, name) != 0 || strcmp(version->version, VERSION_UNKNOWN) != 0)
			continue;
		free(version->name);
		free(version->version);
		*version = measure->versions[--measure->version_count];
		return;
	}
}

static int version_add(struct measure *measure, const struct loader_part *part)
{
	struct measure_version *version, *moved;

	if (version_is_said(measure, part))
		return 0;
	version_forget_unknown(measure, part->name);
	moved = realloc(measure->versions, (measure->version_count + 1) * sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	measure->versions = moved;
	version = &measure->versions[measure->version_count];
	version->name = strdup(part->name);
	version->version = strdup(part->version ? part->version : VERSION_UNKNOWN);
	if (version->name && version->version) {
		measure->version_count++;
		return 0;
	}
	free(version->name);
	free(version->version);
	return -ENOMEM;
}

static int version_compare(const void *left, const void *right)
{
	const struct measure_version *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->version, b->version);
}

int measure_versions(struct measure *measure, const struct measured *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct model *model = processes[i].model;

		for (size_t l = 0; l < model->loader_count; l++)
			for (unsigned p = 0; p < model->loaders[l].part_count; p++) {
				int error = version_add(measure, &model->loaders[l].parts[p]);

				if (error)
					return error;
			}
	}
	if (measure->version_count)
		qsort(measure->versions, measure->version_count, sizeof(*measure->versions), version_compare);
	return 0;
}
