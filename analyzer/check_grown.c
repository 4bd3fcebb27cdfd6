/* SPDX-License-Identifier: Apache-2.0 */
/* What grew: the parts of a value beside those of the baseline, each said once. */
#include <analyzer/baseline.h>
#include <analyzer/check_parts.h>
#include <stdlib.h>
#include <string.h>

#define BIT(metric) (1u << METRIC_##metric)

/* Parts that a metric consists of; sums have none of their own. */
static unsigned metrics_of(enum metric metric)
{
	if (metric == METRIC_MODELLED || metric == METRIC_FACTOR)
		return BIT(DEVICE) | BIT(STAGING) | BIT(ANON);
	return metric < METRIC_COUNT ? 1u << metric : 0;
}

/*
 * A baseline file names the largest parts: of another one only a bound is known. A stack that was found under the name
 * that it had before (breakdown_compare()) is known as well.
 */
static struct range before_of(const struct measure *baseline, const struct growth *growth)
{
	if (!baseline_is_file(baseline) || growth->before.hi ||
	    breakdown_find(&baseline->breakdown, growth->metric, growth->kind, growth->name))
		return growth->before;
	return baseline_unnamed(baseline, growth->metric, growth->name);
}

/* Without a baseline it is all growth. */
static uint64_t growth_of(const struct growth *growth)
{
	bool known = growth->before.lo || !range_is_open(growth->before);

	return bytes_sub(growth->after.hi, known ? growth->before.hi : 0);
}

/* Most growth first. */
static int compare_growths(const void *left, const void *right)
{
	const struct growth *a = left, *b = right;
	uint64_t x = growth_of(a), y = growth_of(b);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->name, b->name);
}

/*
 * Five lines have room for the largest files, a tensor and a stack of each metric, and then for more of them. Tensors of a
 * file say nearly the same: of further ones only the number is said.
 */
enum turn { TURN_FILES, TURN_TENSOR, TURN_STACK, TURN_MORE_FILES, TURN_MORE_STACKS, TURNS };

#define FIRST_FILES 3

struct choice {
	const struct growth *growths[TURNS][CHECK_GROWN];
	size_t counts[TURNS];
	size_t seen[METRIC_COUNT][PART_KINDS];
};

/* TURNS: never. `nth` of its metric and kind. */
static enum turn turn_of(enum part_kind kind, size_t nth)
{
	if (kind == PART_FILE)
		return nth < FIRST_FILES ? TURN_FILES : TURN_MORE_FILES;
	if (kind == PART_STACK)
		return nth ? TURN_MORE_STACKS : TURN_STACK;
	return nth ? TURNS : TURN_TENSOR;
}

static void choose(struct choice *choice, const struct growth *growths, size_t count)
{
	for (size_t i = 0; i < count && growth_of(&growths[i]); i++) {
		const struct growth *growth = &growths[i];
		enum turn turn = turn_of(growth->kind, choice->seen[growth->metric][growth->kind]++);

		if (turn < TURNS && choice->counts[turn] < CHECK_GROWN)
			choice->growths[turn][choice->counts[turn]++] = growth;
	}
}

static bool is_equal(struct range a, struct range b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

/* Does `detail` name the innermost function of a stack? */
static bool names_function(const char *detail, const char *stack)
{
	size_t length = strcspn(stack, " ");
	char *function = strndup(stack, length);
	bool names = function && strstr(detail, function);

	free(function);
	return names;
}

/* Does the line of a file say it already? */
static bool says_already(const struct growth *file, const struct growth *growth)
{
	if (file->kind != PART_FILE || file->metric != growth->metric || growth->kind == PART_FILE)
		return false;
	if (growth->kind == PART_TENSOR || !file->detail)
		return is_equal(file->after, growth->after);
	return names_function(file->detail, growth->name);
}

/* The same bytes were said by file; a file of which nothing else is known gets the other name as its detail. */
static bool said_by_file(struct check_line *line, const struct growth *growth)
{
	for (size_t i = 0; i < line->grown_count; i++) {
		struct growth *file = &line->grown[i];

		if (!says_already(file, growth))
			continue;
		if (!file->detail)
			file->detail = growth->name;
		return true;
	}
	return false;
}

/* "of model.safetensors; 6 more tensors" */
static const char *tensor_detail(struct check *check, struct check_line *line, const struct growth *growth,
                                 size_t more)
{
	const char *detail = growth->detail ? growth->detail : "";
	char *text;

	if (!more)
		return growth->detail;
	text = check_format(check, "%s%s%zu more tensor%s", detail, *detail ? "; " : "", more,
	                    more > 1 ? "s" : "");
	line->details[line->grown_count] = text;
	return text;
}

static void take_growths(struct check *check, struct check_line *line, const struct growth *growths,
                         size_t count)
{
	struct choice choice = {.counts = {0}};

	choose(&choice, growths, count);
	for (int turn = 0; turn < TURNS; turn++)
		for (size_t i = 0; i < choice.counts[turn] && line->grown_count < CHECK_GROWN; i++) {
			struct growth growth = *choice.growths[turn][i];

			if (said_by_file(line, &growth))
				continue;
			if (turn == TURN_TENSOR)
				growth.detail = tensor_detail(check, line, &growth,
				                              choice.seen[growth.metric][PART_TENSOR] - 1);
			line->grown[line->grown_count++] = growth;
		}
}

/* `baseline` NULL: what there is. */
static void grow(struct check *check, struct check_line *line, const struct measure *baseline)
{
	const struct breakdown none = {0}, *after = &check->sums[line->metric].run->breakdown;
	struct growth *growths = NULL;
	size_t count = 0, kept = 0;
	int error = breakdown_compare(baseline ? &baseline->breakdown : &none, after, &growths, &count);

	if (error) {
		check->error = check->error ? check->error : error;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct growth growth = growths[i];

		if (!(metrics_of(line->metric) & 1u << growth.metric))
			continue;
		growth.before = baseline ? before_of(baseline, &growth) : RANGE_UNKNOWN;
		growths[kept++] = growth;
	}
	if (kept)
		qsort(growths, kept, sizeof(*growths), compare_growths);
	take_growths(check, line, growths, kept);
	free(growths);
}

void check_grown(struct check *check, struct check_line *line)
{
	if (check->baseline && !check->apart)
		grow(check, line, check->baseline);
	if (!line->grown_count)
		grow(check, line, NULL);
}
