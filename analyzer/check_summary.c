/* SPDX-License-Identifier: Apache-2.0 */
/* The job summary in GitHub's Markdown: the verdict, a row a metric, what grew, and the rest folded away. */
#include <analyzer/check_words.h>
#include <analyzer/commands.h>

/* However long names are, all stays far below what GitHub takes. */
#define SENTENCES_MAX 20
#define GROWN_MAX     10

static const char *icon_of(const struct check_result *result)
{
	return result->status == COMMAND_OK     ? "\xe2\x9c\x85"
	       : result->status == COMMAND_OVER ? "\xe2\x9d\x8c"
	                                        : "\xe2\x9d\x94";
}

static void print_cell(FILE *out, const char *text)
{
	escape_text(out, ESCAPE_MARKDOWN, text);
	fputs(" | ", out);
}

/* An empty cell where nothing is known because there is nothing to know. */
static void print_value(FILE *out, const struct check_line *line, struct range value, bool there)
{
	char text[METRIC_TEXT];

	print_cell(out, there ? check_value_text(line, value, text) : "");
}

static void print_limit(FILE *out, const struct check_line *line)
{
	char text[METRIC_TEXT];

	if (line->limit != ST_UNKNOWN)
		escape_text(out, ESCAPE_MARKDOWN, check_value_text(line, range_of(line->limit), text));
	if (line->given) {
		fputs(" (", out);
		escape_text(out, ESCAPE_MARKDOWN, line->given);
		fputc(')', out);
	}
	fputs(" | ", out);
}

static void print_lines(FILE *out, const struct check_result *result)
{
	if (!result->line_count)
		return;
	fputs("| metric | value | baseline | limit | state | spread |\n"
	      "| --- | ---: | ---: | ---: | --- | ---: |\n",
	      out);
	for (size_t i = 0; i < result->line_count; i++) {
		const struct check_line *line = &result->lines[i];

		fprintf(out, "| `%s` | ", check_line_name(line));
		print_value(out, line, line->value, true);
		print_value(out, line, line->before, line->against == AGAINST_BASELINE);
		print_limit(out, line);
		print_cell(out, check_state_names[line->state]);
		print_value(out, line, line->spread, check_has_spread(result, line));
		fputc('\n', out);
	}
	fputc('\n', out);
}

/* Without a baseline nothing has grown: the parts are what there is. */
static const char *heading_of(const struct growth *growth)
{
	return range_is_open(growth->before) ? "What it consists of:\n\n" : "What grew:\n\n";
}

static void print_grown(FILE *out, const struct check_result *result)
{
	size_t count = 0;

	for (size_t i = 0; i < result->line_count; i++) {
		const struct check_line *line = &result->lines[i];

		for (size_t j = 0;
		     check_grown_is_new(result, i) && j < line->grown_count && count < GROWN_MAX; j++) {
			fprintf(out, "%s- `%s`, ", count++ ? "" : heading_of(line->grown),
			        check_line_name(line));
			check_print_growth(out, ESCAPE_MARKDOWN, &line->grown[j]);
			fputc('\n', out);
		}
	}
	if (count)
		fputc('\n', out);
}

/* HTML until the next empty line, of which there is none: nothing in it is Markdown. */
static void print_sentences(FILE *out, const char *title, char *const *sentences, size_t count)
{
	if (!count)
		return;
	fprintf(out, "<p>%s</p>\n<ul>\n", title);
	for (size_t i = 0; i < count && i < SENTENCES_MAX; i++) {
		fputs("<li>", out);
		escape_text(out, ESCAPE_XML, sentences[i]);
		fputs("</li>\n", out);
	}
	if (count > SENTENCES_MAX)
		fprintf(out, "<li>and %zu more in the log</li>\n", count - SENTENCES_MAX);
	fputs("</ul>\n", out);
}

int check_write_summary(FILE *out, const struct check_result *result)
{
	fprintf(out, "### %s ", icon_of(result));
	escape_text(out, ESCAPE_MARKDOWN, result->verdict);
	fputs("\n\n", out);
	print_lines(out, result);
	print_grown(out, result);
	if (result->reason_count || result->note_count) {
		/* Why there is no answer is no detail. */
		fprintf(out, "<details%s>\n<summary>Reasons and notes</summary>\n",
		        result->reason_count ? " open" : "");
		print_sentences(out, "Not comparable:", result->reasons, result->reason_count);
		print_sentences(out, "Notes:", result->notes, result->note_count);
		fputs("</details>\n", out);
	}
	return check_stream_error(out);
}
