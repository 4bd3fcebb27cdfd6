/* SPDX-License-Identifier: Apache-2.0 */
/* The result for people and, with the same words, for scripts. */
#include <analyzer/check_words.h>
#include <analyzer/emit.h>
#include <errno.h>
#include <math.h>
#include <sparktrace/format.h>
#include <stdlib.h>
#include <string.h>

static const char *const against_names[] = {
	[AGAINST_NOTHING] = NULL,    [AGAINST_BASELINE] = "baseline", [AGAINST_LIMIT] = "limit",
	[AGAINST_BUDGET] = "budget", [AGAINST_FIT] = "fit",
};

/* A number of a metric; the key gets "_bytes" where it is one of bytes. */
static struct emit_field number(const struct check_line *line, const char *key, uint64_t value)
{
	if (line->metric == METRIC_COUNT || metric_rows[line->metric].unit == METRIC_BYTES)
		return emit_bytes(key, value);
	return emit_ratio(key, value == ST_UNKNOWN ? NAN : (double)value / METRIC_RATIO_ONE);
}

static bool is_known(struct range range)
{
	return range.lo || !range_is_open(range);
}

static struct emit_field low_end(const struct check_line *line, const char *key, struct range range)
{
	return number(line, key, is_known(range) ? range.lo : ST_UNKNOWN);
}

/* For a cell; empty where there is nothing. */
static const char *cell(const struct check_line *line, struct range range, char text[METRIC_TEXT])
{
	return is_known(range) ? check_value_text(line, range, text) : NULL;
}

static const char *state_cell(const struct check_result *result, const struct check_line *line)
{
	bool same = line->value.lo == line->before.lo && line->value.hi == line->before.hi;

	if (!result->update || line->state != CHECK_SHOWN)
		return check_state_names[line->state];
	return is_known(line->before) && !same ? "changed" : NULL;
}

static void emit_check_line(struct emitter *e, const struct check_result *result,
                            const struct check_line *line)
{
	char value[METRIC_TEXT], before[METRIC_TEXT], limit[METRIC_TEXT], spread[METRIC_TEXT];
	struct range most = line->limit == ST_UNKNOWN ? RANGE_UNKNOWN : range_of(line->limit);
	struct range several = check_has_spread(result, line) ? line->spread : RANGE_UNKNOWN;
	const struct emit_field fields[] = {
		emit_word("metric", check_line_name(line)),
		emit_word(NULL, check_value_text(line, line->value, value)),
		emit_word(NULL, cell(line, line->before, before)),
		emit_word(NULL, cell(line, most, limit)),
		emit_word(NULL, cell(line, several, spread)),
		emit_word(NULL, state_cell(result, line)),
		emit_word("state", check_state_names[line->state]),
		emit_word("against", against_names[line->against]),
		low_end(line, "value_low", line->value),
		number(line, "value_high", line->value.hi),
		low_end(line, "baseline_low", line->before),
		number(line, "baseline_high", line->before.hi),
		number(line, "limit", line->limit),
		emit_word("given", line->given),
		low_end(line, "spread_low", several),
		number(line, "spread_high", several.hi),
		emit_word("sentence", line->sentence),
	};

	emit_row(e, true, fields);
}

static void emit_lines(struct emitter *e, const struct check_result *result)
{
	const struct emit_column columns[] = {
		{"metric", false},
		{"value", true},
		{result->update ? "before" : "baseline", true},
		{result->update ? NULL : "at most", true},
		{result->measures->count > 1 ? "in the runs" : NULL, true},
		{"", false},
		[16] = {NULL, false},
	};

	if (e->format == EMIT_TEXT)
		emit_open(e, NULL, "Metrics");
	emit_table(e, "lines", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < result->line_count; i++)
		emit_check_line(e, result, &result->lines[i]);
	emit_table_end(e);
}

/* --- what grew ---------------------------------------------------------------------------------------- */

static bool is_same(const struct growth *a, const struct growth *b)
{
	return a->metric == b->metric && a->kind == b->kind && !strcmp(a->name, b->name);
}

/* Lines before this one said it already: sums consist of what is over by itself, too. */
static bool said_before(const struct check_result *result, size_t line, const struct growth *growth)
{
	for (size_t i = 0; i < line; i++)
		for (size_t j = 0; j < result->lines[i].grown_count; j++)
			if (is_same(&result->lines[i].grown[j], growth))
				return true;
	return false;
}

static void emit_growth(struct emitter *e, const struct check_line *line, const struct growth *growth,
                        bool shown)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		check_print_growth(out, ESCAPE_LOG, growth);
	if (!out || fclose(out)) {
		e->error = e->error ? e->error : -ENOMEM;
	} else {
		const bool known = is_known(growth->before);
		const struct emit_field fields[] = {
			emit_word("metric", metric_rows[growth->metric].name),
			emit_word(NULL, text),
			emit_word("line", check_line_name(line)),
			emit_word("kind", part_kind_names[growth->kind]),
			emit_word("name", growth->name),
			emit_interval("before", known ? growth->before.lo : ST_UNKNOWN, growth->before.hi),
			emit_interval("after", growth->after.lo, growth->after.hi),
			emit_word("detail", growth->detail),
		};

		emit_row(e, shown, fields);
	}
	free(text);
}

/* Five lines, whatever is over: the first line's parts first. */
static void emit_grown(struct emitter *e, const struct check_result *result)
{
	static const struct emit_column columns[] = {
		{"", false},   {"", false},   {NULL, false}, {NULL, false},
		{NULL, false}, {NULL, false}, {NULL, false}, {NULL, false},
	};
	size_t shown = 0;

	if (e->format == EMIT_TEXT && result->line_count && result->lines[0].grown_count)
		emit_open(e, NULL, is_known(result->lines[0].grown[0].before) ? "What grew" : "What it is");
	emit_table(e, "grown", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < result->line_count; i++) {
		const struct check_line *line = &result->lines[i];

		for (size_t j = 0; j < line->grown_count; j++) {
			bool show = shown < CHECK_GROWN && !said_before(result, i, &line->grown[j]);

			emit_growth(e, line, &line->grown[j], show);
			shown += show;
		}
	}
	emit_table_end(e);
}

/* --- the rest ------------------------------------------------------------------------------------------- */

static void emit_texts(struct emitter *e, const char *key, const char *title, char *const *texts,
                       size_t count)
{
	static const struct emit_column columns[] = {{"", false}};

	if (e->format == EMIT_TEXT && count)
		emit_open(e, NULL, title);
	emit_table(e, key, columns, 1);
	for (size_t i = 0; i < count; i++) {
		const struct emit_field field = emit_word("text", texts[i]);

		emit_row(e, true, &field);
	}
	emit_table_end(e);
}

/* Which runs: for scripts, and where there are several. */
static void emit_runs(struct emitter *e, const struct check_result *result)
{
	static const struct emit_column columns[] = {{NULL, false}, {NULL, false}, {NULL, false}};

	emit_table(e, "runs", columns, 3);
	for (size_t i = 0; i < result->measures->count; i++) {
		const struct measure *run = &result->measures->runs[i];
		const struct emit_field fields[] = {
			emit_word("path", run->path),
			emit_bytes("weights", run->weights),
			emit_flag("finished", run->finished),
		};

		emit_row(e, false, fields);
	}
	emit_table_end(e);
}

/* On one line of its own, however long it is: that line is what people look for in a log. */
static void emit_verdict(struct emitter *e, const struct check_result *result)
{
	if (e->format == EMIT_JSON) {
		emit_only(e, emit_word("version", ST_VERSION), emit_word("verdict", result->verdict),
		          emit_count("status", (uint64_t)result->status),
		          emit_word("baseline", result->baseline));
		return;
	}
	escape_text(e->out, ESCAPE_LOG, result->verdict);
	fputc('\n', e->out);
	e->filled[0] = true;
}

static int check_write(FILE *out, const struct check_result *result, enum emit_format format)
{
	struct emitter e;

	emit_begin(&e, out, format);
	emit_verdict(&e, result);
	emit_grown(&e, result);
	emit_texts(&e, "reasons", "Why that cannot be told", result->reasons, result->reason_count);
	emit_lines(&e, result);
	emit_texts(&e, "notes", "Notes", result->notes, result->note_count);
	emit_runs(&e, result);
	return emit_end(&e);
}

int check_write_text(FILE *out, const struct check_result *result)
{
	return check_write(out, result, EMIT_TEXT);
}

int check_write_json(FILE *out, const struct check_result *result)
{
	return check_write(out, result, EMIT_JSON);
}
