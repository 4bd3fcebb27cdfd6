/* SPDX-License-Identifier: Apache-2.0 */
/* A baseline file: strict, since what is not understood would not be compared. */
#include <analyzer/array.h>
#include <analyzer/baseline_parts.h>
#include <errno.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <string.h>

/* By name, as in the file. */
const struct baseline_scale_row baseline_scales[BASELINE_SCALES] = {
	{"largest_tensor", offsetof(struct metric_scale, largest_tensor)},
	{"mappings", offsetof(struct metric_scale, mappings)},
	{"released", offsetof(struct metric_scale, released)},
};

/* --- the objects of the root -------------------------------------------------------------------------- */

static const struct fingerprint_row *find_row(const char *name)
{
	for (size_t i = 0; i < FINGERPRINT_ROWS; i++)
		if (!strcmp(fingerprint_rows[i].name, name))
			return &fingerprint_rows[i];
	return NULL;
}

static int take_fingerprint(struct parse *parse, const char *key, json_t *value)
{
	const struct fingerprint_row *row = find_row(key);
	struct place place = {"fingerprint", key};
	void *at;

	if (!row)
		return parse_complain(parse, place, "unknown key \"%s\" in \"fingerprint\"", key);
	at = (char *)&parse->measure->fingerprint + row->offset;
	if (row->type == FINGERPRINT_TEXT)
		return parse_text(parse, place, value, at);
	if (row->type == FINGERPRINT_WORD)
		return parse_word(parse, place, value, row, at);
	return parse_maybe(parse, place, value, at);
}

static int take_metric(struct parse *parse, const char *key, json_t *value)
{
	enum metric metric = metric_find(key);
	struct place place = {"metrics", key};

	if (metric == METRIC_COUNT)
		return parse_complain(parse, place,
		                      "unknown metric \"%s\"; `sparktrace-analyze check --help` lists them",
		                      key);
	return parse_range(parse, place, value, metric_rows[metric].unit, &parse->measure->values[metric]);
}

/* "METRIC, KIND NAME" */
static int split_part(const char *key, struct part *part)
{
	const char *comma = strstr(key, ", ");
	char *metric = comma ? strndup(key, (size_t)(comma - key)) : NULL;
	const char *rest = comma ? comma + 2 : "";
	int kind = 0;

	if (comma && !metric)
		return -ENOMEM;
	part->metric = metric ? metric_find(metric) : METRIC_COUNT;
	free(metric);
	for (; kind < PART_KINDS; kind++) {
		size_t length = strlen(part_kind_names[kind]);

		if (!strncmp(rest, part_kind_names[kind], length) && rest[length] == ' ') {
			rest += length + 1;
			break;
		}
	}
	if (part->metric == METRIC_COUNT || kind == PART_KINDS || !*rest)
		return -EINVAL;
	part->kind = (enum part_kind)kind;
	part->name = strdup(rest);
	return part->name ? 0 : -ENOMEM;
}

static int take_part(struct parse *parse, const char *key, json_t *value)
{
	struct breakdown *breakdown = &parse->measure->breakdown;
	struct place place = {"largest", key};
	struct part part = {0};
	int error = parse_range(parse, place, value, METRIC_BYTES, &part.bytes);

	if (error)
		return error;
	error = split_part(key, &part);
	if (error == -EINVAL)
		return parse_complain(parse, place,
		                      "\"%s\" is not METRIC, KIND NAME, of a metric that is known", key);
	if (!error)
		error = array_reserve(&breakdown->parts, sizeof(*breakdown->parts), breakdown->count,
		                      &parse->part_room);
	if (error)
		free(part.name);
	else
		breakdown->parts[breakdown->count++] = part;
	return error;
}

static int take_scale(struct parse *parse, const char *key, json_t *value)
{
	for (size_t i = 0; i < BASELINE_SCALES; i++)
		if (!strcmp(baseline_scales[i].name, key))
			return parse_maybe(
				parse, (struct place){"scale", key}, value,
				(uint64_t *)((char *)&parse->measure->scale + baseline_scales[i].offset));
	return parse_complain(parse, (struct place){"scale", key}, "unknown key \"%s\" in \"scale\"", key);
}

static int take_version(struct parse *parse, const char *key, json_t *value)
{
	struct measure *m = parse->measure;
	struct measure_version version = {0}, *moved;
	int error = parse_text(parse, (struct place){"versions", key}, value, &version.version);

	if (error)
		return error;
	version.name = strdup(key);
	moved = realloc(m->versions, (m->version_count + 1) * sizeof(*moved));
	if (moved)
		m->versions = moved;
	if (!moved || !version.name) {
		free(version.name);
		free(version.version);
		return -ENOMEM;
	}
	m->versions[m->version_count++] = version;
	return 0;
}

/* --- the root ----------------------------------------------------------------------------------------- */

static int take_schema(struct parse *parse, json_t *value)
{
	uint64_t schema = 0;
	int error = parse_count(parse, (struct place){"schema", NULL}, value, &schema);

	if (error)
		return error;
	if (schema > BASELINE_SCHEMA)
		return parse_complain(parse, (struct place){"schema", NULL},
		                      "written by a newer sparktrace-analyze (schema %" PRIu64
		                      ", this one knows %d)",
		                      schema, BASELINE_SCHEMA);
	return schema == BASELINE_SCHEMA ? 0
	                                 : parse_complain(parse, (struct place){"schema", NULL},
	                                                  "there is no schema %" PRIu64, schema);
}

static int take_weights(struct parse *parse, json_t *value)
{
	return parse_maybe(parse, (struct place){"weights", NULL}, value, &parse->measure->weights);
}

/* `member`: of an object, called for each of its members in the order of names; else `value`. */
static const struct root_row {
	const char *name;
	int (*member)(struct parse *parse, const char *key, json_t *value);
	int (*value)(struct parse *parse, json_t *value);
	size_t least; /* members */
} root_rows[] = {
	{"fingerprint", take_fingerprint, NULL, FINGERPRINT_ROWS},
	{"largest", take_part, NULL, 0},
	{"metrics", take_metric, NULL, 1},
	{"scale", take_scale, NULL, BASELINE_SCALES},
	{"schema", NULL, take_schema, 0},
	{"versions", take_version, NULL, 0},
	{"weights", NULL, take_weights, 0},
};
#define ROOT_ROWS (sizeof(root_rows) / sizeof(root_rows[0]))

static int take_object(struct parse *parse, const struct root_row *row, json_t *object)
{
	struct place place = {row->name, NULL};
	const char *key;
	json_t *value;
	void *entry;

	if (!json_is_object(object))
		return parse_complain(parse, place, "\"%s\" must be an object", row->name);
	for (entry = json_object_iter(object); entry; entry = json_object_iter_next(object, entry)) {
		int error;

		key = json_object_iter_key(entry);
		value = json_object_iter_value(entry);
		error = row->member(parse, key, value);
		if (error)
			return error;
	}
	if (json_object_size(object) < row->least)
		return parse_complain(parse, place, "\"%s\" has %zu of at least %zu entries", row->name,
		                      json_object_size(object), row->least);
	return 0;
}

static int check_keys(const struct parse *parse)
{
	void *entry;

	for (entry = json_object_iter(parse->root); entry;
	     entry = json_object_iter_next(parse->root, entry)) {
		const char *key = json_object_iter_key(entry);
		size_t i = 0;

		while (i < ROOT_ROWS && strcmp(root_rows[i].name, key) != 0)
			i++;
		if (i == ROOT_ROWS)
			return parse_complain(parse, (struct place){key, NULL}, "unknown key \"%s\"", key);
	}
	return 0;
}

/* What a newer one wrote may have any key: the schema comes first. */
static int take_root(struct parse *parse)
{
	json_t *schema = json_object_get(parse->root, "schema");
	int error;

	if (!json_is_object(parse->root) || !schema)
		return parse_complain(
			parse, (struct place){NULL, NULL},
			"this is no baseline: it has no \"schema\"; `check --update` writes one");
	error = take_schema(parse, schema);
	if (!error)
		error = check_keys(parse);
	for (size_t i = 0; !error && i < ROOT_ROWS; i++) {
		json_t *value = json_object_get(parse->root, root_rows[i].name);

		if (!value)
			error = parse_complain(parse, (struct place){NULL, NULL}, "\"%s\" is missing",
			                       root_rows[i].name);
		else if (root_rows[i].member)
			error = take_object(parse, &root_rows[i], value);
		else
			error = root_rows[i].value(parse, value);
	}
	return error;
}

/* The breakdown's order, for its look-ups. */
static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->name, b->name);
}

bool baseline_tells(const struct measure *measure)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (measure->values[i].lo || !range_is_open(measure->values[i]))
			return true;
	return false;
}

int baseline_parse(const struct baseline_text *text, struct measure *measure)
{
	struct parse parse = {.text = text, .measure = measure};
	json_error_t json_error;
	int error;

	for (int i = 0; i < METRIC_COUNT; i++)
		measure->values[i] = RANGE_UNKNOWN;
	measure->path = text->path;
	measure->finished = true;
	parse.root = json_loadb(text->text, text->size, JSON_REJECT_DUPLICATES, &json_error);
	if (!parse.root) {
		parse_say(text->path, json_error.line > 0 ? (unsigned)json_error.line : 1, json_error.text);
		return -EINVAL;
	}
	error = take_root(&parse);
	if (!error && !baseline_tells(measure))
		error = parse_complain(&parse, (struct place){"metrics", NULL}, "\"metrics\" tells no value");
	json_decref(parse.root);
	if (measure->breakdown.count)
		qsort(measure->breakdown.parts, measure->breakdown.count, sizeof(*measure->breakdown.parts),
		      compare_parts);
	measure->scale.threads = measure->fingerprint.threads;
	measure->scale.page_size = measure->fingerprint.page_size;
	measure->scale.weights = measure->weights;
	measure_scale(measure);
	return error;
}
