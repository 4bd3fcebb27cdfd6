/* SPDX-License-Identifier: Apache-2.0 */
/* A result of `check`, built by hand, for the tests of its forms; and a folder for their files. After cmocka.h. */
#ifndef SPARKTRACE_TEST_CHECK_SCENE_H
#define SPARKTRACE_TEST_CHECK_SCENE_H

#include <analyzer/check_output.h>
#include <analyzer/check_words.h>
#include <analyzer/commands.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Whatever a format reads as a sign, a line's end, an escape of a terminal, no UTF-8, and no character of XML. */
#define HOSTILE "a]]>b<c>&\"'|`d\n::error::e##[error]f\x1b[0m\xff%0A,\xef\xbf\xbf"

/* One run, and a result about it that every test changes as it needs. */
struct scene {
	struct measure run;
	struct measures measures;
	struct check_line lines[16];
	char *reasons[64], *notes[4];
	struct check_result result;
};

static inline void scene_begin(struct scene *s)
{
	*s = (struct scene){.measures = {.runs = &s->run, .count = 1}};
	s->run.path = "run.zst";
	s->result = (struct check_result){
		.measures = &s->measures,
		.verdict = (char *)"the verdict",
		.lines = s->lines,
		.reasons = s->reasons,
		.notes = s->notes,
	};
}

static inline struct check_line *scene_line(struct scene *s, enum metric metric, enum check_state state)
{
	struct check_line *line = &s->lines[s->result.line_count++];

	*line = (struct check_line){
		.metric = metric,
		.against = AGAINST_BASELINE,
		.state = state,
		.value = range_of(GIB),
		.before = range_of(MIB),
		.limit = 65 * MIB,
		.spread = range_of(GIB),
		.sentence = (char *)"a sentence",
	};
	return line;
}

typedef int result_writer(FILE *out, const struct check_result *result);

static inline char *written(result_writer *write, const struct scene *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(write(out, &s->result), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static inline unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static const struct growth hostile_growth = {
	.metric = METRIC_ANON,
	.kind = PART_FILE,
	.name = HOSTILE,
	.detail = HOSTILE,
	.before = {0, 0},
	.after = {GIB, GIB},
};

static inline void scene_hostile(struct scene *s)
{
	struct check_line *line;

	scene_begin(s);
	s->result.status = COMMAND_OVER;
	s->result.verdict = (char *)HOSTILE;
	s->run.path = HOSTILE;
	s->result.baseline = HOSTILE;
	s->reasons[s->result.reason_count++] = (char *)HOSTILE;
	s->notes[s->result.note_count++] = (char *)HOSTILE;
	line = scene_line(s, METRIC_ANON, CHECK_OVER);
	line->sentence = (char *)HOSTILE;
	line->given = HOSTILE;
	line->grown[line->grown_count++] = hostile_growth;
}

/* --- files ------------------------------------------------------------------------------------------ */

static char folder[64];

static inline const char *path_of(const char *name)
{
	static char path[2][128];
	static unsigned turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static inline void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static inline char *got(const char *path)
{
	char *text = calloc(1, MIB);
	FILE *in = fopen(path, "r");

	assert_non_null(text);
	assert_non_null(in);
	assert_true(fread(text, 1, MIB - 1, in) < MIB - 1);
	fclose(in);
	return text;
}

static inline void assert_file(const char *path, const char *expected)
{
	char *text = got(path);

	assert_string_equal(text, expected);
	free(text);
}

static inline unsigned files_in_folder(void)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static inline int folder_begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/check_outputs.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	unsetenv("GITHUB_WORKSPACE");
	unsetenv("GITHUB_STEP_SUMMARY");
	unsetenv("GITHUB_ACTIONS");
	return system(command);
}

#endif
