/* SPDX-License-Identifier: Apache-2.0 */
/* Single values of a baseline file, and complaints about them. */
#include <analyzer/baseline_parts.h>
#include <analyzer/emit.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The words may hold text of the file: control characters are made harmless. */
void parse_say(const char *path, unsigned line, const char *words)
{
	struct emit_field field = emit_word(NULL, words);
	char *clean = emit_value_text(&field);

	fprintf(stderr, "sparktrace-analyze: %s:%u: %s\n", path, line, clean ? clean : strerror(ENOMEM));
	free(clean);
}

int parse_complain(const struct parse *parse, struct place place, const char *format, ...)
{
	va_list arguments;
	char *words = NULL;

	va_start(arguments, format);
	if (vasprintf(&words, format, arguments) < 0)
		words = NULL;
	va_end(arguments);
	parse_say(parse->text->path, baseline_line(parse->text, place.outer, place.inner),
	          words ? words : strerror(ENOMEM));
	free(words);
	return -EINVAL;
}

int parse_count(const struct parse *parse, struct place place, const json_t *value, uint64_t *ret_count)
{
	const char *name = place.inner ? place.inner : place.outer;

	if (!json_is_integer(value))
		return parse_complain(parse, place, "\"%s\" must be a whole number", name);
	if (json_integer_value(value) < 0)
		return parse_complain(parse, place, "\"%s\" must not be negative", name);
	*ret_count = (uint64_t)json_integer_value(value);
	return 0;
}

int parse_maybe(const struct parse *parse, struct place place, const json_t *value, uint64_t *ret_count)
{
	if (!json_is_null(value))
		return parse_count(parse, place, value, ret_count);
	*ret_count = UINT64_MAX;
	return 0;
}

static int take_ratio(const struct parse *parse, struct place place, const json_t *value, uint64_t *ret_ratio)
{
	double ratio = json_number_value(value);

	if (!json_is_number(value))
		return parse_complain(parse, place, "\"%s\" must be a number", place.inner);
	if (!(ratio >= 0 && ratio <= BASELINE_RATIO_MAX))
		return parse_complain(parse, place, "\"%s\" must lie between 0 and %g", place.inner,
		                      BASELINE_RATIO_MAX);
	*ret_ratio = (uint64_t)(ratio * METRIC_RATIO_ONE + 0.5);
	return 0;
}

static int take_end(const struct parse *parse, struct place place, const json_t *value, enum metric_unit unit,
                    uint64_t *ret_end)
{
	return unit == METRIC_RATIO ? take_ratio(parse, place, value, ret_end)
	                            : parse_count(parse, place, value, ret_end);
}

/* A number, or [low, high]; high null: open above. */
int parse_range(const struct parse *parse, struct place place, const json_t *value, enum metric_unit unit,
                struct range *ret_range)
{
	struct range range = {0, UINT64_MAX};
	const json_t *low = value, *high = value;
	int error;

	if (json_is_array(value)) {
		if (json_array_size(value) != 2)
			return parse_complain(parse, place, "\"%s\" must be a number or [low, high]",
			                      place.inner);
		low = json_array_get(value, 0);
		high = json_array_get(value, 1);
	}
	error = take_end(parse, place, low, unit, &range.lo);
	if (!error && !(high != value && json_is_null(high)))
		error = take_end(parse, place, high, unit, &range.hi);
	if (!error && range.lo > range.hi)
		error = parse_complain(parse, place, "\"%s\": the low end is above the high one",
		                       place.inner);
	if (!error)
		*ret_range = range;
	return error;
}

int parse_text(const struct parse *parse, struct place place, const json_t *value, char **ret_text)
{
	if (!json_is_string(value))
		return parse_complain(parse, place, "\"%s\" must be a text", place.inner);
	*ret_text = strdup(json_string_value(value));
	return *ret_text ? 0 : -ENOMEM;
}

int parse_word(const struct parse *parse, struct place place, const json_t *value,
               const struct fingerprint_row *row, const char **ret_word)
{
	const char *const *word = row->words;

	if (!json_is_string(value))
		return parse_complain(parse, place, "\"%s\" must be a text", place.inner);
	while (*word && strcmp(*word, json_string_value(value)) != 0)
		word++;
	if (!*word)
		return parse_complain(parse, place, "\"%s\" is no %s", json_string_value(value), row->label);
	*ret_word = *word;
	return 0;
}
