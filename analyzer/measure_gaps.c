/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace does not hold, and which metrics cannot be compared for it. */
#include <analyzer/measure_parts.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(metric) (1u << METRIC_##metric)
#define SUMS        (BIT(MODELLED) | BIT(FACTOR))
#define GATED       (BIT(DEVICE) | BIT(STAGING) | BIT(ANON) | BIT(HOST) | SUMS | BIT(MAPPED) | BIT(READ))
#define DRIVER      (BIT(DEVICE) | BIT(STAGING) | BIT(ANON) | BIT(HOST) | SUMS)
#define ANON        (BIT(ANON) | SUMS)
#define ALL         (GATED | BIT(POOL))
/* Weights that come unseen are in no known place: what holds them may be H or S, and not all files are known as loaded. */
#define UNSEEN      (BIT(READ) | BIT(STAGING) | BIT(HOST) | SUMS)
#define UNSEEN_LESS (BIT(HOST) | BIT(FACTOR))

/*
 * Every text that recorder and shim write into `coverage` records ("*": anything), the metrics that may be more than they
 * seem where it stands, and those of them that may also be less. scripts/lint/coverage finds a text that has no row here.
 */
static const struct row {
	const char *text;
	unsigned touches, less;
	bool reads; /* it is about how weights are read: nothing to a process whose files were all mapped or read */
} rows[] = {
	/* The driver. A wrapper that is passed over, or an address that is no export, costs no call of the driver's. */
	{.text = "a second driver library, whose calls are not seen: *", .touches = DRIVER, .less = DRIVER},
	{.text = "the driver is loaded, but no way to it led through us (RTLD_DEEPBIND?): *",
         .touches = DRIVER,
         .less = DRIVER},
	{.text = "another library exports driver entries too, and is passed over: *"},
	{.text = "the driver's resolver gives addresses that are no exports, first for *"},
	/* Reads. */
	{.text = "io_uring: what the program reads through it is not seen",
         .touches = UNSEEN,
         .less = UNSEEN_LESS,
         .reads = true},
	{.text = "a second libcufile, whose reads are not seen: *", .touches = BIT(READ), .reads = true},
	{.text = "too many files are registered with cuFile at one time; what is read from the others is not "
                 "seen",
         .touches = BIT(READ),
         .reads = true},
	/* Anonymous copies are counted by looking; the recorder is who looks. */
	{.text = "anonymous pages of weight mappings are unknown: pagemap: *", .touches = ANON},
	{.text = "events were lost: anonymous pages of mappings made before are not looked at",
         .touches = ANON,
         .less = ANON},
	{.text = "there was no recorder: a later one wrote this trace from the ring",
         .touches = ANON | BIT(POOL)},
	{.text = "the recorder died before the program did, a later one finished this trace",
         .touches = ANON | BIT(POOL)},
	{.text = "* bytes of the ring were torn records", .touches = ALL, .less = ALL},
	{.text = "* records of the recorder found no room: the trace could not be written",
         .touches = ALL,
         .less = ALL},
	/* Relief that is off is said by the fingerprint, and what it would have spared is measured all the same. */
	{.text = "relief is off: *"},
	/* Names of tensors and functions, page cache, who sees the recorder: no metric asks. */
	{.text = "no Python frames: *"},
	{.text = "some Python frames could not be read"},
	{.text = "page cache of * is unknown: *"},
	{.text = "file *: no table of tensors that is understood"},
	{.text = "file *: its table of tensors cannot be read: *"},
	{.text = "file *: table is wrong at byte *: *"},
	{.text = "file *: table cannot be read: *"},
	{.text = "file *: tensors have no names: *"},
	{.text = "* names * tensors in files outside its folder"},
	{.text = "*, which the index names, is no file here"},
	{.text = "*.index.*json: *"},
	{.text = "the program adopts orphans: the recorder is a child that its wait() can see"},
};

/* Up to the next '*' of the pattern, or its end. */
static size_t fixed_length(const char *pattern)
{
	return strcspn(pattern, "*");
}

static const char *fixed_find(const char *text, const char *fixed, size_t length)
{
	size_t left = strlen(text);

	return length ? memmem(text, left, fixed, length) : text;
}

/* Each fixed part where it stands first, the last one at the end of the text. */
static bool text_matches(const char *text, const char *pattern)
{
	size_t length = fixed_length(pattern);

	if (strncmp(text, pattern, length) != 0)
		return false;
	text += length;
	pattern += length;
	while (*pattern) {
		size_t left = strlen(text);

		length = fixed_length(++pattern);
		if (!pattern[length])
			return left >= length && !memcmp(text + left - length, pattern, length);
		text = fixed_find(text, pattern, length);
		if (!text)
			return false;
		text += length;
		pattern += length;
	}
	return !*text;
}

/* Of a text that a newer recorder may write nothing is known. */
static const struct row *row_find(const char *text)
{
	static const struct row unknown = {.touches = GATED, .less = GATED};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (text_matches(text, rows[i].text))
			return &rows[i];
	return &unknown;
}

unsigned coverage_touches(const char *text)
{
	return row_find(text)->touches;
}

/*
 * A file that the program opened and neither mapped nor read but for at most `read` of it: if its weights came at all,
 * nobody saw how.
 */
static bool is_unseen(const struct weight_file *file, uint64_t read)
{
	return file->opened && !file->mapping_count && file->read_bytes < read;
}

/* Some of the weights may have come in ways that are not seen, as the trace says that there are. */
static bool reads_may_be_unseen(const struct model *model)
{
	for (size_t i = 0; i < model->file_count; i++) {
		const struct weight_file *file = &model->files[i];

		/* Tied and skipped tensors are no missing ones. */
		if (is_unseen(file, file->payload - file->payload / 50))
			return true;
	}
	return false;
}

static void values_loosen(struct measure *measure, unsigned more, unsigned less)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		measure->values[i].lo = less & 1u << i ? 0 : measure->values[i].lo;
		measure->values[i].hi = more & 1u << i ? UINT64_MAX : measure->values[i].hi;
	}
	measure->unproven |= (less & BIT(MODELLED)) != 0;
}

/* The first reason stays. */
static int gap_add(struct measure *measure, unsigned metrics, const char *why, const char *text)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		if (!(metrics & 1u << i) || measure->gaps[i])
			continue;
		if (asprintf(&measure->gaps[i], "%s%s", why, text) < 0) {
			measure->gaps[i] = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

static int gaps_covered(struct measure *measure, const struct model *model)
{
	int error = 0;

	for (size_t i = 0; !error && i < model->coverage_count; i++) {
		const struct row *row = row_find(model->coverages[i].text);

		if (row->reads && !reads_may_be_unseen(model))
			continue;
		values_loosen(measure, row->touches, row->less);
		error = gap_add(measure, row->touches, "the trace says: ", model->coverages[i].text);
	}
	return error;
}

/* The same without a word in the trace (libaio, a raw system call): copies to the device may have been of that file. */
static int gaps_unseen(struct measure *measure, const struct model *model)
{
	for (size_t i = 0; i < model->file_count; i++) {
		const struct weight_file *file = &model->files[i];

		if (!is_unseen(file, file->payload / 16) || !file->loaded.hi)
			continue;
		values_loosen(measure, UNSEEN, UNSEEN_LESS);
		return gap_add(measure, UNSEEN, "nobody saw how its weights were read: ", file->path);
	}
	return 0;
}

static int gaps_unknown(struct measure *measure)
{
	unsigned unknown = 0;

	for (int i = 0; i < METRIC_COUNT; i++)
		if (!measure->values[i].lo && range_is_open(measure->values[i]))
			unknown |= 1u << i;
	return gap_add(measure, unknown, "nothing in the trace tells it", "");
}

/* --- of no use at all ----------------------------------------------------------------------------- */

/* The first reason stays. */
__attribute__((format(printf, 2, 3))) static int unusable_set(struct measure *measure, const char *format,
                                                              ...)
{
	va_list list;
	int length;

	if (measure->unusable)
		return 0;
	va_start(list, format);
	length = vasprintf(&measure->unusable, format, list);
	va_end(list);
	if (length >= 0)
		return 0;
	measure->unusable = NULL;
	return -ENOMEM;
}

/* More may have been, or come yet. */
static int unusable_open(struct measure *measure, const struct reader_summary *s)
{
	if (!s->alive && (s->has_trailer || s->ring == READER_RING_READ))
		return 0;
	values_loosen(measure, GATED, 0);
	return unusable_set(measure,
	                    s->alive ? "the program still runs: the rest of the run is not in the trace"
	                             : "the trace has no end, and the ring that held it is gone");
}

/* What is missing may have been a release: then nothing is proven but what was sampled. */
static int unusable_damaged(struct measure *measure, const struct reader_summary *s)
{
	if (!s->lost && !s->damaged_blocks && !s->missing_blocks && !s->damaged && !s->torn)
		return 0;
	values_loosen(measure, GATED, GATED);
	if (s->lost)
		return unusable_set(measure, "%" PRIu64 " events found no room in the ring and are lost",
		                    s->lost);
	if (s->damaged_blocks || s->missing_blocks)
		return unusable_set(measure,
		                    "%" PRIu64 " blocks of the trace are damaged and %" PRIu64 " are missing",
		                    s->damaged_blocks, s->missing_blocks);
	if (s->damaged)
		return unusable_set(measure, "the trace is damaged: %s", s->problems[0].text);
	return unusable_set(measure, "%" PRIu64 " records in the ring were never finished", s->torn);
}

int measure_gaps(struct measure *measure, const struct model *whole, const struct measured *processes,
                 size_t count)
{
	int error = 0;

	for (size_t i = 0; !error && i < count; i++)
		error = unusable_damaged(measure, processes[i].summary);
	for (size_t i = 0; !error && i < count; i++)
		error = unusable_open(measure, processes[i].summary);
	for (size_t i = 0; !error && i < count; i++)
		error = gaps_covered(measure, processes[i].model);
	for (size_t i = 0; !error && i < count; i++)
		error = gaps_unseen(measure, processes[i].model);
	if (!error && !whole->load.present)
		error = unusable_set(measure, "no weights were loaded in it");
	if (!error)
		error = gaps_unknown(measure);
	return error;
}
