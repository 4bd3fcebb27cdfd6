/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a baseline: keys sorted, a value a line, so that a diff of two shows what moved. */
#include <analyzer/array.h>
#include <analyzer/baseline_parts.h>
#include <analyzer/check_output.h>
#include <analyzer/escape.h>
#include <errno.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <string.h>

/* Members of an object, each as it is printed. */
struct member {
	char *key, *value;
};

struct object {
	struct member *members;
	size_t count, room;
	int error; /* first; what comes after it is dropped */
};

/* Text with what is no UTF-8 in it as \xNN. */
static json_t *clean_string(const char *text)
{
	char *clean = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&clean, &size);
	json_t *string = NULL;

	if (out) {
		escape_text(out, ESCAPE_LOG, text);
		if (!fclose(out))
			string = json_string(clean);
	}
	free(clean);
	return string;
}

/* As a JSON string, to be freed. */
static char *quote(const char *text)
{
	json_t *string = json_string(text);
	char *quoted;

	if (!string)
		string = clean_string(text);
	quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
	json_decref(string);
	return quoted;
}

/* Takes both texts. */
static void add(struct object *object, char *key, char *value)
{
	if (!key || !value ||
	    array_reserve(&object->members, sizeof(*object->members), object->count, &object->room)) {
		object->error = -ENOMEM;
		free(key);
		free(value);
		return;
	}
	object->members[object->count++] = (struct member){key, value};
}

static void add_text(struct object *object, const char *key, const char *text)
{
	add(object, quote(key), quote(text));
}

static char *count_text(uint64_t count)
{
	char *text;

	if (count > BASELINE_COUNT_MAX)
		return strdup("null");
	return asprintf(&text, "%" PRIu64, count) < 0 ? NULL : text;
}

static void add_count(struct object *object, const char *key, uint64_t count)
{
	add(object, quote(key), count_text(count));
}

static char *end_text(enum metric_unit unit, uint64_t end)
{
	char *text;

	if (unit == METRIC_BYTES || end == UINT64_MAX)
		return count_text(end);
	if (asprintf(&text, "%" PRIu64 ".%04" PRIu64, end / METRIC_RATIO_ONE, end % METRIC_RATIO_ONE) < 0)
		return NULL;
	return text;
}

/* What is above all that the reader takes is at least that. */
static char *range_text(enum metric_unit unit, struct range range)
{
	uint64_t most =
		unit == METRIC_BYTES ? BASELINE_COUNT_MAX : (uint64_t)(BASELINE_RATIO_MAX * METRIC_RATIO_ONE);
	char *low = end_text(unit, bytes_min(range.lo, most));
	char *high = end_text(unit, range.hi > most ? UINT64_MAX : range.hi), *text = NULL;

	if (range_is_exact(range) && range.hi <= most) {
		free(high);
		return low;
	}
	if (!low || !high || asprintf(&text, "[%s, %s]", low, high) < 0)
		text = NULL;
	free(low);
	free(high);
	return text;
}

static int compare_members(const void *left, const void *right)
{
	return strcmp(((const struct member *)left)->key, ((const struct member *)right)->key);
}

/* Prints an object at that depth. Of names that came out alike one is printed. */
static void print_object(FILE *out, const struct object *object, const char *indent)
{
	const char *comma = "";

	if (object->count)
		qsort(object->members, object->count, sizeof(*object->members), compare_members);
	fputc('{', out);
	for (size_t i = 0; i < object->count; i++) {
		const struct member *member = &object->members[i];

		if (i + 1 < object->count && !strcmp(member->key, member[1].key))
			continue;
		fprintf(out, "%s\n%s  %s: %s", comma, indent, member->key, member->value);
		comma = ",";
	}
	if (object->count)
		fprintf(out, "\n%s", indent);
	fputc('}', out);
}

static void object_release(struct object *object)
{
	for (size_t i = 0; i < object->count; i++) {
		free(object->members[i].key);
		free(object->members[i].value);
	}
	free(object->members);
	*object = (struct object){0};
}

/* An object as the value of a member of the root; it is released. */
static void add_object(struct object *root, const char *key, struct object *object)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out)
		print_object(out, object, "  ");
	if (!out || fclose(out))
		root->error = -ENOMEM;
	if (object->error)
		root->error = object->error;
	object_release(object);
	add(root, quote(key), text);
}

/* --- the objects -------------------------------------------------------------------------------------- */

static void add_fingerprint(struct object *root, const struct fingerprint *fingerprint)
{
	struct object object = {0};

	for (size_t i = 0; i < FINGERPRINT_ROWS; i++) {
		const struct fingerprint_row *row = &fingerprint_rows[i];
		const void *at = (const char *)fingerprint + row->offset;

		if (row->type == FINGERPRINT_TEXT || row->type == FINGERPRINT_WORD)
			add_text(&object, row->name, *(char *const *)at ? *(char *const *)at : "unknown");
		else
			add_count(&object, row->name, *(const uint64_t *)at);
	}
	add_object(root, "fingerprint", &object);
}

static int compare_bytes(const void *left, const void *right)
{
	const struct part *a = *(const struct part *const *)left, *b = *(const struct part *const *)right;

	if (a->bytes.hi != b->bytes.hi)
		return a->bytes.hi > b->bytes.hi ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void add_part(struct object *object, const struct part *part)
{
	char *key;

	if (asprintf(&key, "%s, %s %s", metric_rows[part->metric].name, part_kind_names[part->kind],
	             part->name) < 0) {
		object->error = -ENOMEM;
		return;
	}
	add(object, quote(key), range_text(METRIC_BYTES, part->bytes));
	free(key);
}

/* Parts of one metric, which stand together; `sorted` has room for all. */
static void add_largest_of(struct object *object, const struct part *parts, size_t count, uint64_t total,
                           const struct part **sorted)
{
	uint64_t least = bytes_max(BASELINE_PART_LEAST, total / 100);

	for (size_t i = 0; i < count; i++)
		sorted[i] = &parts[i];
	qsort(sorted, count, sizeof(*sorted), compare_bytes);
	for (size_t i = 0, added = 0; i < count && added < BASELINE_PARTS && sorted[i]->bytes.hi >= least;
	     i++) {
		if (strlen(sorted[i]->name) > BASELINE_NAME_MAX)
			continue;
		add_part(object, sorted[i]);
		added++;
	}
}

static uint64_t total_bytes(const struct measure *measure, enum metric metric)
{
	uint64_t value = measure->values[metric].hi;

	if (metric_rows[metric].unit == METRIC_BYTES)
		return value;
	return __builtin_mul_overflow(value, measure->weights / METRIC_RATIO_ONE, &value) ? UINT64_MAX
	                                                                                  : value;
}

static void add_largest(struct object *root, const struct measure *measure)
{
	const struct breakdown *breakdown = &measure->breakdown;
	const struct part **sorted = calloc(breakdown->count + 1, sizeof(*sorted));
	struct object object = {.error = sorted ? 0 : -ENOMEM};

	for (size_t i = 0, end; sorted && i < breakdown->count; i = end) {
		enum metric metric = breakdown->parts[i].metric;

		for (end = i; end < breakdown->count && breakdown->parts[end].metric == metric;)
			end++;
		add_largest_of(&object, breakdown->parts + i, end - i, total_bytes(measure, metric), sorted);
	}
	free(sorted);
	add_object(root, "largest", &object);
}

static void add_metrics(struct object *root, const struct measure *measure)
{
	struct object object = {0};

	for (int i = 0; i < METRIC_COUNT; i++) {
		struct range value = measure->values[i];

		if (value.lo || !range_is_open(value))
			add(&object, quote(metric_rows[i].name), range_text(metric_rows[i].unit, value));
	}
	add_object(root, "metrics", &object);
}

static void add_scale(struct object *root, const struct metric_scale *scale)
{
	struct object object = {0};

	for (size_t i = 0; i < BASELINE_SCALES; i++)
		add_count(&object, baseline_scales[i].name,
		          *(const uint64_t *)((const char *)scale + baseline_scales[i].offset));
	add_object(root, "scale", &object);
}

static void add_versions(struct object *root, const struct measure *measure)
{
	struct object object = {0};

	for (size_t i = 0; i < measure->version_count; i++)
		add_text(&object, measure->versions[i].name, measure->versions[i].version);
	add_object(root, "versions", &object);
}

static int print_baseline(FILE *out, const void *content)
{
	const struct measure *measure = content;
	struct object root = {0};
	int error;

	add_fingerprint(&root, &measure->fingerprint);
	add_largest(&root, measure);
	add_metrics(&root, measure);
	add_scale(&root, &measure->scale);
	add_count(&root, "schema", BASELINE_SCHEMA);
	add_versions(&root, measure);
	add_count(&root, "weights", measure->weights);
	print_object(out, &root, "");
	fputc('\n', out);
	error = root.error;
	object_release(&root);
	if (!error && ftello(out) > (off_t)BASELINE_BYTES_MAX)
		error = -EFBIG;
	return error;
}

int baseline_write(const char *path, const struct measure *measure)
{
	if (!baseline_tells(measure))
		return -ENODATA;
	return output_replace(path, print_baseline, measure);
}
