/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass: names, facts about the process, and releases that did not take place. */
#include <analyzer/array.h>
#include <analyzer/event.h>
#include <analyzer/model_parts.h>
#include <analyzer/names.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts kept apart; a recorder writes a dozen. */
#define COVERAGES_MAX 256

struct scan {
	struct build *build;
	size_t info_room, coverage_room;
	bool block_seen, time_seen;
	uint64_t start; /* of the program */
};

static void process_note(struct scan *scan, const struct st_ev_process *record)
{
	struct model *model = scan->build->model;

	model->pid = (uint32_t)record->pid;
	model->ppid = (uint32_t)record->ppid;
	model->uid = (uint32_t)record->uid;
	model->page_size = record->page_size;
	model->cpus = record->cpus;
	model->pool = EVENT_KNOWN_OR_0(ST_POOL_CLASS, record->pool);
	model->rank = (uint32_t)record->rank;
	model->world = (uint32_t)record->world;
	scan->start = record->start;
}

static void block_note(struct scan *scan, const struct st_ev_block *record)
{
	struct model *model = scan->build->model;

	if (!scan->block_seen) {
		model->monotonic = record->monotonic;
		model->realtime = record->realtime;
		model->utc_offset = (int64_t)record->utc_offset;
	}
	scan->block_seen = true;
	if (record->synced > model->synced)
		model->synced = record->synced;
}

/* "name=value" becomes two strings in one allocation; the name is the one that is freed. */
static int info_note(struct scan *scan, const struct st_record *record)
{
	struct model *model = scan->build->model;
	const char *text;
	size_t length = record_text(record, &text);
	char *name, *equals;

	if (array_reserve(&model->infos, sizeof(*model->infos), model->info_count, &scan->info_room))
		return -ENOMEM;
	name = strndup(text, length);
	if (!name)
		return -ENOMEM;
	equals = strchr(name, '=');
	if (equals)
		*equals++ = '\0';
	model->infos[model->info_count++] = (struct info){name, equals ? equals : ""};
	return 0;
}

static int coverage_note(struct scan *scan, const struct st_record *record)
{
	struct model *model = scan->build->model;
	const char *text;
	size_t length = record_text(record, &text);
	char *copy;

	for (size_t i = 0; i < model->coverage_count; i++)
		if (!strncmp(model->coverages[i].text, text, length) && !model->coverages[i].text[length]) {
			model->coverages[i].count++;
			return 0;
		}
	if (model->coverage_count == COVERAGES_MAX) {
		model->coverages[COVERAGES_MAX - 1].count++;
		return 0;
	}
	if (model->coverage_count == COVERAGES_MAX - 1) {
		text = "others, too many to name";
		length = strlen(text);
	}
	if (array_reserve(&model->coverages, sizeof(*model->coverages), model->coverage_count,
	                  &scan->coverage_room))
		return -ENOMEM;
	copy = strndup(text, length);
	if (!copy)
		return -ENOMEM;
	model->coverages[model->coverage_count++] = (struct coverage){copy, 1};
	return 0;
}

static int revoke_note(struct build *build, const struct st_ev_revoke *record)
{
	if (array_reserve(&build->revoked, sizeof(*build->revoked), build->revoked_count,
	                  &build->revoked_room))
		return -ENOMEM;
	build->revoked[build->revoked_count++] = record->target & ST_SEQ_MASK;
	return 0;
}

static void exit_note(struct model *model, const struct st_ev_exit *record)
{
	model->exited = true;
	model->exit_how = EVENT_KNOWN_OR_0(ST_EXIT_HOW, record->how);
	model->exit_status = (int64_t)record->status;
}

/* From the first event, or the program's start where that is known, to the last. */
static void time_note(struct scan *scan, const struct st_record *record)
{
	struct model *model = scan->build->model;

	if (record->kind == ST_KIND_block || record->kind == ST_KIND_trailer)
		return;
	if (!scan->time_seen || record->time < model->begin)
		model->begin = record->time;
	scan->time_seen = true;
	if (record->time > model->end)
		model->end = record->time;
}

static int scan_record(struct scan *scan, const struct st_record *record)
{
	struct build *build = scan->build;
	struct model *model = build->model;
	int error;

	model->records++;
	time_note(scan, record);
	switch (record->kind) {
	case ST_KIND_block:
		block_note(scan, (const void *)record);
		return 0;
	case ST_KIND_process:
		process_note(scan, (const void *)record);
		return 0;
	case ST_KIND_info:
		return info_note(scan, record);
	case ST_KIND_coverage:
		return coverage_note(scan, record);
	case ST_KIND_lost:
		model->lost_events += ((const struct st_ev_lost *)record)->count;
		model->lost_bytes += ((const struct st_ev_lost *)record)->bytes;
		return 0;
	case ST_KIND_revoke:
		return revoke_note(build, (const void *)record);
	case ST_KIND_relief:
		relief_note(&model->relief, (const void *)record);
		return 0;
	case ST_KIND_exit:
		exit_note(model, (const void *)record);
		return 0;
	case ST_KIND_moment:
		build->exit_moment |= ((const struct st_ev_moment *)record)->what == ST_MOMENT_EXIT;
		return 0;
	case ST_KIND_sample:
		build->exit_moment |= ((const struct st_ev_sample *)record)->reason == ST_MOMENT_EXIT;
		return 0;
	case ST_KIND_file:
	case ST_KIND_tensor:
	case ST_KIND_index:
		return catalog_record(&build->catalog, record);
	case ST_KIND_stack:
	case ST_KIND_module:
	case ST_KIND_symbol:
	case ST_KIND_thread:
	case ST_KIND_code:
	case ST_KIND_frames:
	case ST_KIND_package:
		error = names_record(model->names, record);
		return error;
	default:
		return 0;
	}
}

static int seq_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Whether the program ended badly, as far as its end is in the trace. */
static bool ended_badly(const struct build *build)
{
	const struct model *model = build->model;
	const struct reader_summary *summary = reader_summary(build->reader);

	/* A closed trace without an end was written by hand: then only a refused request tells. */
	if (!model->exited)
		return !summary->alive && !build->exit_moment && !summary->has_trailer;
	if (model->exit_how == ST_EXIT_SIGNALED)
		return true;
	if (model->exit_how == ST_EXIT_UNKNOWN)
		return !build->exit_moment;
	return model->exit_how == ST_EXIT_EXITED && model->exit_status;
}

int build_scan(struct build *build)
{
	struct scan scan = {.build = build};
	const struct st_record *record;
	int error;

	while ((error = reader_next(build->reader, &record)) > 0) {
		error = scan_record(&scan, record);
		if (error)
			return error;
	}
	if (error < 0)
		return error;
	if (build->revoked_count)
		qsort(build->revoked, build->revoked_count, sizeof(*build->revoked), seq_compare);
	if (scan.start)
		build->model->begin = bytes_min(scan.start, build->model->begin);
	catalog_sort(&build->catalog);
	build->badly = ended_badly(build);
	return 0;
}
