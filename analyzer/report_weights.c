/* SPDX-License-Identifier: Apache-2.0 */
/* The weight files and their tensors: where their bytes were. */
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 4

static const char *const dtype_words[] = {
#define W(n, t) [ST_DTYPE_##n] = t,
	ST_DTYPE(W)
#undef W
};

static const char *const format_words[] = {
#define W(n, t) [ST_FILE_##n] = t,
	ST_FILE_FORMAT(W)
#undef W
};

static const struct emit_column columns[] = {
	{"at the load's peak", false}, {"size", true},    {"loaded", true}, {"device", true},
	{"anonymous", true},           {"staging", true}, {"cached", true},
};

static struct range cached_of(const struct weight_file *file, const struct residency_at *at)
{
	return file->cache_error || !file->cache_seen ? RANGE_UNKNOWN : at->cached;
}

static void emit_state(struct emitter *e, const char *key, const struct weight_file *file,
                       const struct residency_at *at)
{
	emit_open(e, key, NULL);
	emit_only(e, report_range("device", at->on_device), report_range("anon", at->anon),
	          emit_bytes("staging", at->staging), report_range("cached", cached_of(file, at)),
	          report_range("reclaimable_double", at->reclaimable));
	emit_close(e);
}

static void emit_mappings(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_list(e, "mappings", NULL);
	for (size_t i = 0; i < file->mapping_count; i++) {
		const struct file_mapping *mapping = &file->mappings[i];

		emit_open(e, NULL, NULL);
		emit_only(e, emit_word("kind", report_mapping(mapping)), emit_count("prot", mapping->prot),
		          emit_count("flags", mapping->flags), emit_count("count", mapping->count),
		          emit_bytes("longest", mapping->bytes), emit_bytes("copied", mapping->copied),
		          emit_flag("kept", mapping->kept));
		if (e->format == EMIT_JSON)
			report_stack(e, r, "stack", "", mapping->stack);
		emit_close(e);
	}
	emit_close(e);
}

static void emit_file(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_open(e, NULL, NULL);
	emit_only(e, emit_path("path", file->path), emit_word("format", format_words[file->format]),
	          emit_bytes("size", file->size), emit_bytes("payload", file->payload),
	          report_range("loaded", file->loaded), report_range("would_load", file->would_load),
	          emit_bytes("mapped", file->mapped), emit_bytes("read", file->read_bytes),
	          emit_bytes("copied", file->copied_bytes), emit_flag("exact", file->exact),
	          emit_bytes("anon_peak", file->anon_peak), emit_flag("cache_seen", file->cache_seen),
	          emit_word("cache_error", file->cache_error ? strerrorname_np(file->cache_error) : NULL),
	          emit_flag("direct_io", file->open_flags & O_DIRECT));
	emit_state(e, "at_peak", file, &file->at_peak);
	emit_state(e, "settled", file, &file->at_settled);
	emit_state(e, "at_end", file, &file->at_end);
	emit_mappings(e, r, file);
	emit_close(e);
}

static void emit_tensors(struct emitter *e, const struct report *r)
{
	static const struct emit_column none[9] = {{NULL, false}};

	emit_table(e, "tensors", none, 9);
	for (size_t i = 0; e->format == EMIT_JSON && i < r->model->tensor_count; i++) {
		const struct tensor *t = &r->model->tensors[i];

		emit_row(e, false,
		         (struct emit_field[]){
				 emit_word("name", t->name),
				 emit_path("file", report_file(r, t->file)),
				 emit_word("dtype", dtype_words[t->dtype]),
				 emit_bytes("offset", t->offset),
				 emit_bytes("size", t->size),
				 report_range("device", t->at_settled.on_device),
				 report_range("device_at_peak", t->at_peak.on_device),
				 report_range("anon_at_peak", t->at_peak.anon),
				 emit_bytes("staging_at_peak", t->at_peak.staging),
			 });
	}
	emit_table_end(e);
}

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
	const char *slash = strrchr(file->path, '/');

	emit_row(e, true,
	         (struct emit_field[]){
			 emit_word(NULL, slash ? slash + 1 : file->path),
			 emit_bytes(NULL, file->size),
			 report_range(NULL, file->loaded),
			 report_range(NULL, file->at_peak.on_device),
			 report_range(NULL, file->at_peak.anon),
			 emit_bytes(NULL, file->at_peak.staging),
			 report_range(NULL, cached_of(file, &file->at_peak)),
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

void report_weights(struct emitter *e, const struct report *r)
{
	if (e->format == EMIT_TEXT && !r->model->file_count)
		return;
	emit_list(e, "files", "Where were the weights?");
	for (size_t i = 0; e->format == EMIT_JSON && i < r->model->file_count; i++)
		emit_file(e, r, &r->model->files[i]);
	emit_close(e);
	if (e->format == EMIT_TEXT)
		emit_text_table(e, r);
	emit_tensors(e, r);
}
