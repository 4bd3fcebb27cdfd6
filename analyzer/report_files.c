/* SPDX-License-Identifier: Apache-2.0 */
/* Every weight file: its bytes at the moments that matter, who touched it when, mappings, advice (--files). */
#include "report.h"

#include "event.h"
#include "names.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const format_words[] = {
#define W(n, t) [ST_FILE_##n] = t,
	ST_FILE_FORMAT(W)
#undef W
};

struct range report_cached(const struct weight_file *file, const struct residency_at *at)
{
	return file->cache_error || !file->cache_seen ? RANGE_UNKNOWN : at->cached;
}

static uint64_t since_touch(const struct report *r, uint64_t time)
{
	return time ? report_since(r, time) : ST_UNKNOWN;
}

/* --- one moment of a file -------------------------------------------------------------------- */

static const struct {
	const char *key, *name;
	size_t offset;
} moments[] = {
	{"at_peak", "at the load's peak", offsetof(struct weight_file, at_peak)},
	{"settled", "settled", offsetof(struct weight_file, at_settled)},
	{"at_end", "at the end", offsetof(struct weight_file, at_end)},
};

#define MOMENTS (sizeof(moments) / sizeof(moments[0]))

static const struct residency_at *moment_of(const struct weight_file *file, size_t i)
{
	return (const void *)((const char *)file + moments[i].offset);
}

static void emit_state(struct emitter *e, const char *key, const struct weight_file *file,
                       const struct residency_at *at)
{
	emit_open(e, key, NULL);
	emit_only(e, report_range("device", at->on_device), report_range("anon", at->anon),
	          emit_bytes("staging", at->staging), report_range("cached", report_cached(file, at)),
	          report_range("reclaimable_double", at->reclaimable));
	emit_close(e);
}

static void text_states(struct emitter *e, const struct weight_file *file)
{
	static const struct emit_column columns[] = {
		{"", false},       {"device", true}, {"anonymous", true},
		{"staging", true}, {"cached", true}, {"both cached and on the device", true},
	};

	emit_table(e, "", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < MOMENTS; i++) {
		const struct residency_at *at = moment_of(file, i);

		emit_row(e, true,
		         (struct emit_field[]){emit_word(NULL, moments[i].name),
		                               report_range(NULL, at->on_device),
		                               report_range(NULL, at->anon), emit_bytes(NULL, at->staging),
		                               report_range(NULL, report_cached(file, at)),
		                               report_range(NULL, at->reclaimable)});
	}
	emit_table_end(e);
}

static void emit_states(struct emitter *e, const struct weight_file *file)
{
	for (size_t i = 0; e->format == EMIT_JSON && i < MOMENTS; i++)
		emit_state(e, moments[i].key, file, moment_of(file, i));
	if (e->format == EMIT_TEXT && file->first_touch)
		text_states(e, file);
}

/* --- who, when ------------------------------------------------------------------------------- */

static void emit_threads(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_list(e, "threads", NULL);
	for (uint32_t i = 0; i < file->thread_count; i++) {
		const char *name = names_thread(r->model->names, file->threads[i]);

		emit_open(e, NULL, NULL);
		emit_say(e, name ? "by thread {thread} ({name})" : "by thread {thread}",
		         emit_count("thread", file->threads[i]), emit_word("name", name));
		emit_close(e);
	}
	emit_close(e);
	if (file->threads_more)
		emit_line(e, "and by others");
}

static const char *touch_sentence(const struct weight_file *file)
{
	if (!file->opened)
		return "{size}, never opened: the index names it";
	if (!file->first_touch)
		return "{size} ({format}), opened and not touched";
	return "{size} ({format}), touched from {first_touch} to {last_touch} as number {order} of the files";
}

static void say_touch(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_say(e, touch_sentence(file), emit_bytes("size", file->size),
	         emit_word("format", format_words[file->format]), emit_flag("opened", file->opened),
	         emit_time("first_touch", since_touch(r, file->first_touch)),
	         emit_time("last_touch", since_touch(r, file->last_touch)),
	         emit_count("order", file->order ? file->order : ST_UNKNOWN),
	         emit_flag("direct_io", file->open_flags & EVENT_O_DIRECT));
}

/* What the file's weights took of the pool at the load's peak, over what they are. */
static struct range held_at_peak(const struct weight_file *file)
{
	return range_add(range_add(file->at_peak.on_device, file->at_peak.anon),
	                 range_of(file->at_peak.staging));
}

static void say_bytes(struct emitter *e, const struct weight_file *file)
{
	struct range held = held_at_peak(file);
	double low = report_share(held.lo, file->payload), high = report_share(held.hi, file->payload);
	bool one = held.hi - held.lo < file->payload / 200;
	const char *sentence =
		one ? "{payload} of weights: mapped {mapped}, read {read}, copied {copied}; factor "
		      "{factor_high}"
		    : "{payload} of weights: mapped {mapped}, read {read}, copied {copied}; factor "
		      "{factor_low} "
		      "to {factor_high}";

	emit_say(e, file->first_touch ? sentence : NULL, emit_bytes("payload", file->payload),
	         report_range("loaded", file->loaded), report_range("would_load", file->would_load),
	         emit_bytes("mapped", file->mapped), emit_bytes("read", file->read_bytes),
	         emit_bytes("copied", file->copied_bytes), emit_flag("exact", file->exact),
	         emit_ratio("factor_low", low), emit_ratio("factor_high", high),
	         emit_bytes("anon_peak", file->anon_peak), emit_flag("cache_seen", file->cache_seen),
	         emit_word("cache_error", file->cache_error ? strerrorname_np(file->cache_error) : NULL));
	if (file->first_touch && !file->exact)
		emit_line(e, "not every copy could be followed: of copied bytes this is what is known");
}

/* --- mappings and advice --------------------------------------------------------------------- */

static void emit_mappings(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_list(e, "mappings", NULL);
	for (size_t i = 0; i < file->mapping_count; i++) {
		const struct file_mapping *mapping = &file->mappings[i];

		emit_open(e, NULL, NULL);
		emit_say(e,
		         mapping->kept ? "{kind} x {count}, the longest {longest}, copied from it {copied}, "
		                         "still there when the load had settled"
		                       : "{kind} x {count}, the longest {longest}, copied from it {copied}",
		         emit_word("kind", report_mapping(mapping)), emit_count("prot", mapping->prot),
		         emit_count("flags", mapping->flags), emit_count("count", mapping->count),
		         emit_bytes("longest", mapping->bytes), emit_bytes("copied", mapping->copied),
		         emit_flag("kept", mapping->kept));
		report_stack(e, r, "stack", "  called from ", mapping->stack);
		emit_close(e);
	}
	emit_close(e);
}

struct advice_word {
	uint32_t advice;
	const char *word;
};

static const struct advice_word mapping_words[] = {
	{MADV_NORMAL, "normal"},
	{MADV_RANDOM, "random"},
	{MADV_SEQUENTIAL, "sequential"},
	{MADV_WILLNEED, "willneed"},
	{MADV_DONTNEED, "dontneed"},
	{MADV_FREE, "free"},
	{MADV_HUGEPAGE, "hugepage"},
	{MADV_NOHUGEPAGE, "nohugepage"},
	{MADV_DONTFORK, "dontfork"},
	{MADV_DONTDUMP, "dontdump"},
	{20, "cold"},
	{21, "pageout"},
	{22, "populate_read"},
	{23, "populate_write"},
};

static const struct advice_word file_words[] = {
	{POSIX_FADV_NORMAL, "normal"},         {POSIX_FADV_RANDOM, "random"},
	{POSIX_FADV_SEQUENTIAL, "sequential"}, {POSIX_FADV_WILLNEED, "willneed"},
	{POSIX_FADV_DONTNEED, "dontneed"},     {POSIX_FADV_NOREUSE, "noreuse"},
};

static const char *advice_word(const struct file_advice *advice)
{
	const struct advice_word *words = advice->mapping ? mapping_words : file_words;
	size_t count = advice->mapping ? sizeof(mapping_words) / sizeof(mapping_words[0])
	                               : sizeof(file_words) / sizeof(file_words[0]);

	for (size_t i = 0; i < count; i++)
		if (words[i].advice == advice->advice)
			return words[i].word;
	return NULL;
}

static void emit_advices(struct emitter *e, const struct weight_file *file)
{
	emit_list(e, "advice", NULL);
	for (uint32_t i = 0; i < file->advice_count; i++) {
		const struct file_advice *advice = &file->advices[i];
		const char *word = advice_word(advice);

		emit_open(e, NULL, NULL);
		emit_say(e,
		         word ? "{call}: {advice} x {count}, for {length} in all"
		              : "{call}: advice {number} x {count}, for {length} in all",
		         emit_word("call", advice->mapping ? "madvise" : "posix_fadvise"),
		         emit_word("advice", word), emit_count("number", advice->advice),
		         emit_count("count", advice->count), emit_bytes("length", advice->bytes));
		emit_close(e);
	}
	emit_close(e);
}

/* --- all ------------------------------------------------------------------------------------- */

static void emit_file(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	emit_open(e, NULL, NULL);
	emit_say(e, "{path}", emit_path("path", file->path),
	         emit_path("index",
	                   file->index < r->model->index_count ? r->model->indexes[file->index].path : NULL));
	say_touch(e, r, file);
	say_bytes(e, file);
	emit_threads(e, r, file);
	emit_states(e, file);
	emit_mappings(e, r, file);
	emit_advices(e, file);
	emit_close(e);
}

static void emit_indexes(struct emitter *e, const struct report *r)
{
	emit_list(e, "indexes", NULL);
	for (size_t i = 0; i < r->model->index_count; i++) {
		const struct checkpoint_index *index = &r->model->indexes[i];

		emit_open(e, NULL, NULL);
		emit_say(e, "{path}: {tensors} tensors of {total} in {shards} files",
		         emit_path("path", index->path), emit_bytes("total", index->total_size),
		         emit_count("shards", index->shards), emit_count("tensors", index->tensors));
		emit_close(e);
	}
	emit_close(e);
}

/* JSON has all of it always. */
void report_weight_files(struct emitter *e, const struct report *r)
{
	if (e->format == EMIT_TEXT && !r->options->files)
		return;
	emit_list(e, "files", "The weight files, one by one");
	for (size_t i = 0; i < r->model->file_count; i++)
		emit_file(e, r, &r->model->files[i]);
	if (!r->model->file_count)
		emit_line(e, "No weight file was opened.");
	emit_close(e);
	emit_indexes(e, r);
}
