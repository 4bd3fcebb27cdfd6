/* SPDX-License-Identifier: Apache-2.0 */
/* The weight files: where their bytes were. */
#include "report.h"

#include "names.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 4

static const struct emit_column columns[] = {
	{"at the load's peak", false}, {"size", true},    {"loaded", true}, {"device", true},
	{"anonymous", true},           {"staging", true}, {"cached", true},
};

static int compare_files(const void *a, const void *b)
{
	const struct weight_file *const *x = a, *const *y = b;
	uint64_t left = bytes_add((*x)->anon_peak, (*x)->at_peak.staging);
	uint64_t right = bytes_add((*y)->anon_peak, (*y)->at_peak.staging);

	if (left != right)
		return left > right ? -1 : 1;
	return (*x)->size != (*y)->size ? ((*x)->size > (*y)->size ? -1 : 1) : strcmp((*x)->path, (*y)->path);
}

static void text_row(struct emitter *e, const struct weight_file *file)
{
	emit_row(e, true,
	         (struct emit_field[]){
			 emit_word(NULL, names_base(file->path)),
			 emit_bytes(NULL, file->size),
			 report_range(NULL, file->loaded),
			 report_range(NULL, file->at_peak.on_device),
			 report_range(NULL, file->at_peak.anon),
			 emit_bytes(NULL, file->at_peak.staging),
			 report_range(NULL, report_cached(file, &file->at_peak)),
		 });
}

/* "cached: unknown (EPERM)": a file that is neither ours nor writable tells nobody how much of it is cached. */
static void say_unknown_cache(struct emitter *e, const struct report *r)
{
	const struct weight_file *file = NULL;
	size_t count = 0;

	for (size_t i = 0; i < r->model->file_count; i++) {
		if (!r->model->files[i].cache_error)
			continue;
		file = file ? file : &r->model->files[i];
		count++;
	}
	if (file)
		emit_say(e,
		         count > 1 ? "cached: unknown ({error}) for {path} and {others} others"
		                   : "cached: unknown ({error}) for {path}",
		         emit_word("error", strerrorname_np(file->cache_error)),
		         emit_path("path", file->path), emit_count("others", count - 1));
}

/* Where D is an interval, why. */
static void say_inexact(struct emitter *e, const struct report *r)
{
	size_t inexact = 0;

	for (size_t i = 0; i < r->model->file_count; i++)
		inexact += !range_is_exact(r->model->files[i].at_peak.on_device);
	if (inexact)
		emit_say(e,
		         inexact == 1
		                 ? "In one file the device bytes are an interval: not every copy could be "
		                   "followed."
		                 : "In {inexact} files the device bytes are an interval: not every copy "
		                   "could be followed.",
		         emit_count("inexact", inexact));
}

static void emit_text_table(struct emitter *e, const struct report *r)
{
	size_t count = r->model->file_count;
	const struct weight_file **sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted)
		return;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &r->model->files[i];
	qsort(sorted, count, sizeof(*sorted), compare_files);
	emit_table(e, "", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < count && i < SHOWN; i++)
		text_row(e, sorted[i]);
	emit_table_end(e);
	if (count > SHOWN)
		emit_say(e, "and {more} more files", emit_count("more", count - SHOWN));
	say_inexact(e, r);
	say_unknown_cache(e, r);
	free(sorted);
}

/* What there is of single files and tensors is in sections of its own (report_files.c, report_tensors.c). */
void report_weights(struct emitter *e, const struct report *r)
{
	if (e->format == EMIT_JSON) {
		report_loaders(e, r);
		return;
	}
	if (!r->model->file_count)
		return;
	emit_open(e, "weights", "Where were the weights?");
	emit_close(e);
	report_loaders(e, r);
	emit_text_table(e, r);
}
