/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GitHub shows: annotations, which are lines of a log that its runner takes for commands, and the job summary.
 * The runner shows ten annotations of a level for a step and drops the rest without a word: ours are few, worst first.
 */
#include <analyzer/check_output.h>
#include <analyzer/check_words.h>
#include <analyzer/commands.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ANNOTATIONS_MAX 5

struct annotation {
	const char *level, *message;
	const struct check_line *line; /* NULL: of the whole result */
};

struct annotations {
	struct annotation list[ANNOTATIONS_MAX];
	size_t count, all; /* of the list; with those that found no place */
};

/* An exit status of 3 stops a job as well. NULL: none. */
static const char *level_of(enum check_state state, int status)
{
	const char *const levels[CHECK_STATES] = {
		[CHECK_IMPROVED] = "notice",
		[CHECK_WARNED] = "warning",
		[CHECK_CANNOT_TELL] = status == COMMAND_CANNOT_TELL ? "error" : "warning",
		[CHECK_OVER] = "error",
	};

	return levels[state];
}

static void annotate(struct annotations *annotations, const char *level, const char *message,
                     const struct check_line *line)
{
	if (annotations->count < ANNOTATIONS_MAX)
		annotations->list[annotations->count++] = (struct annotation){level, message, line};
	annotations->all++;
}

static void annotate_lines(struct annotations *annotations, const struct check_result *result,
                           enum check_state worst, enum check_state best)
{
	for (size_t i = 0; i < result->line_count; i++) {
		const struct check_line *line = &result->lines[i];
		const char *level = level_of(line->state, result->status);

		if (level && line->state <= worst && line->state >= best)
			annotate(annotations, level, line->sentence, line);
	}
}

/*
 * What is over, then why things cannot be compared (which the lines that it befell only repeat), then the rest. A status
 * that says no has one at least.
 */
static void annotate_result(struct annotations *annotations, const struct check_result *result)
{
	annotate_lines(annotations, result, CHECK_OVER, CHECK_OVER);
	for (size_t i = 0; i < result->reason_count; i++)
		annotate(annotations, level_of(CHECK_CANNOT_TELL, result->status), result->reasons[i], NULL);
	if (!result->reason_count)
		annotate_lines(annotations, result, CHECK_CANNOT_TELL, CHECK_CANNOT_TELL);
	annotate_lines(annotations, result, CHECK_WARNED, CHECK_IMPROVED);
	if (result->status && !annotations->all)
		annotate(annotations, "error", result->verdict, NULL);
}

/*
 * Path of the baseline in the repository: relative to the workspace, NULL where it lies outside. To be freed.
 */
static char *path_in_workspace(const char *path)
{
	const char *workspace = getenv("GITHUB_WORKSPACE");
	char *root = workspace && *workspace ? realpath(workspace, NULL) : NULL;
	char *file = path ? realpath(path, NULL) : NULL;
	size_t length = root ? strlen(root) : 0;
	char *inside = NULL;

	if (root && file && !strncmp(file, root, length) && file[length] == '/')
		inside = strdup(file + length + 1);
	free(root);
	free(file);
	return inside;
}

#define BASELINE_LINE  4096
#define BASELINE_LINES 100000

/* Line of a metric in a baseline written by us, 0: none. */
static unsigned line_in_baseline(const char *path, const char *metric)
{
	char text[BASELINE_LINE];
	unsigned number = 0, found = 0;
	size_t length = strlen(metric);
	FILE *in = fopen(path, "re");

	while (in && !found && number < BASELINE_LINES && fgets(text, sizeof(text), in)) {
		const char *key = text + strspn(text, " \t");

		number++;
		if (key[0] == '"' && !strncmp(key + 1, metric, length) &&
		    !strncmp(key + 1 + length, "\":", 2))
			found = number;
	}
	if (in)
		fclose(in);
	return found;
}

static void print_place(FILE *out, const struct annotation *annotation, const char *path, const char *inside)
{
	const struct check_line *line = annotation->line;
	unsigned number = 0;

	if (!inside)
		return;
	fputs(",file=", out);
	escape_text(out, ESCAPE_PROPERTY, inside);
	if (line && line->against == AGAINST_BASELINE)
		number = line_in_baseline(path, check_line_name(line));
	if (number)
		fprintf(out, ",line=%u", number);
}

static void print_annotation(FILE *out, const struct annotation *annotation,
                             const struct check_result *result, const char *inside)
{
	const struct check_line *line = annotation->line;

	fprintf(out, "::%s title=sparktrace%%3A ", annotation->level);
	if (line)
		fprintf(out, "%s ", check_line_name(line));
	escape_text(out, ESCAPE_PROPERTY, line ? check_state_names[line->state] : "cannot compare");
	print_place(out, annotation, result->baseline, inside);
	fputs("::", out);
	escape_text(out, ESCAPE_MESSAGE, annotation->message);
	if (!line || !check_grown_is_new(result, (size_t)(line - result->lines)))
		return;
	for (size_t i = 0; i < line->grown_count; i++) {
		fputs("%0A", out);
		check_print_growth(out, ESCAPE_MESSAGE, &line->grown[i]);
	}
}

int check_write_annotations(FILE *out, const struct check_result *result)
{
	struct annotations annotations = {.count = 0};
	char *inside = path_in_workspace(result->baseline);

	annotate_result(&annotations, result);
	for (size_t i = 0; i < annotations.count; i++) {
		print_annotation(out, &annotations.list[i], result, inside);
		if (i + 1 == annotations.count && annotations.all > annotations.count)
			fprintf(out, "%%0Aand %zu more in the log", annotations.all - annotations.count);
		fputc('\n', out);
	}
	free(inside);
	return check_stream_error(out);
}

/* The runner trims blanks of all alphabets, and where it compares by culture it overlooks signs without a width. */
static bool is_foreign(char c)
{
	return (unsigned char)c >= 0x80;
}

void github_guard(FILE *out, const char *text, bool json)
{
	bool fresh = true;

	for (; *text; text++) {
		if (fresh && *text == ':' && !json)
			fputs("\\x3a", out);
		else if (*text == '#' && (text[1] == '#' || is_foreign(text[1])))
			fputs(json ? "\\u0023" : "\\x23", out);
		else
			fputc(*text, out);
		fresh = *text == '\n' || (fresh && (isspace((unsigned char)*text) || is_foreign(*text)));
	}
}
