/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of baselines share: reading, checking, writing. */
#ifndef SPARKTRACE_BASELINE_PARTS_H
#define SPARKTRACE_BASELINE_PARTS_H

#include <analyzer/baseline.h>
#include <jansson.h>

#define BASELINE_BYTES_MAX (UINT64_C(1) << 20) /* of the file */
/*
 * Above them a value is written as one without an upper bound: what JSON's integers hold here, and ratios that a double has
 * to the last of their four digits.
 */
#define BASELINE_COUNT_MAX ((uint64_t)INT64_MAX)
#define BASELINE_RATIO_MAX 1e11

/* A baseline file in memory. */
struct baseline_text {
	const char *path, *text;
	size_t size;
};

/*
 * Line of the key `inner` in the object that the root has as `outer`; `inner` NULL: of `outer` itself; both NULL, or a key
 * that is not there: the root's line. The text is valid JSON.
 */
unsigned baseline_line(const struct baseline_text *text, const char *outer, const char *inner);

/* A baseline file that is being taken into a measure. */
struct parse {
	const struct baseline_text *text;
	struct measure *measure;
	json_t *root;
	size_t part_room;
};

/* Where, for complaints: a key in an object of the root, or one of the root. */
struct place {
	const char *outer, *inner;
};

/* A line on stderr, "FILE:LINE: words"; the words may hold text of the file. */
void parse_say(const char *path, unsigned line, const char *words);
/* The same of a key's place. Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int parse_complain(const struct parse *parse, struct place place,
                                                         const char *format, ...);

/* Values of keys: 0, or -EINVAL after a complaint, or -ENOMEM. parse_maybe() takes null as well, for ST_UNKNOWN. */
int parse_count(const struct parse *parse, struct place place, const json_t *value, uint64_t *ret_count);
int parse_maybe(const struct parse *parse, struct place place, const json_t *value, uint64_t *ret_count);
/* A number, or [low, high]; high null: open above. */
int parse_range(const struct parse *parse, struct place place, const json_t *value, enum metric_unit unit,
                struct range *ret_range);
/* To be freed. */
int parse_text(const struct parse *parse, struct place place, const json_t *value, char **ret_text);
/* One of the row's. */
int parse_word(const struct parse *parse, struct place place, const json_t *value,
               const struct fingerprint_row *row, const char **ret_word);

/* Is any value of it known? A baseline of none would let everything pass. */
bool baseline_tells(const struct measure *measure);

/* Fills a zeroed measure. -EINVAL after a line on stderr, or -ENOMEM. */
int baseline_parse(const struct baseline_text *text, struct measure *measure);

/* "scale": a number of struct metric_scale each. */
struct baseline_scale_row {
	const char *name;
	size_t offset;
};
#define BASELINE_SCALES 3
extern const struct baseline_scale_row baseline_scales[BASELINE_SCALES];

#endif
