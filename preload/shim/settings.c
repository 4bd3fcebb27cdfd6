/* SPDX-License-Identifier: Apache-2.0 */
#define SHIM_READS_ENVIRONMENT
#include "settings.h"

#include "say.h"
#include "sys.h"
#include "text.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "banned.h"

enum kind { KIND_SIZE, KIND_COUNT, KIND_MS, KIND_FLAG, KIND_SWITCH, KIND_UNWIND, KIND_RELIEF, KIND_PATH };

static const struct row {
	const char *name;
	enum kind kind;
	const char *standard;
	size_t at; /* of its field in struct settings */
} rows[] = {
#define SETTING(id, name, kind, standard, help) {name, KIND_##kind, standard, offsetof(struct settings, id)},
#include "../settings.def"
#undef SETTING
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const flag_words[] = {"0", "1", NULL};
static const char *const switch_words[] = {"off", "on", NULL};
static const char *const relief_words[] = {"readonly", "drop", NULL}; /* bit by bit */
static const char *const unwind_words[] = {"auto", "frame", "libunwind", "off", NULL};

static const struct unit {
	const char *name;
	uint64_t bytes;
} units[] = {
	{"", 1},           {"B", 1},        {"KiB", 1u << 10}, {"K", 1u << 10},
	{"MiB", 1u << 20}, {"M", 1u << 20}, {"GiB", 1u << 30}, {"G", 1u << 30},
};

/* Digits at the front of `value`; false when there are none or too many. */
static bool parse_digits(const char **value, uint64_t *ret_number)
{
	const char *at = *value;
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number))
			return false;
	if (at == *value)
		return false;
	*value = at;
	*ret_number = number;
	return true;
}

static bool parse_count(const char *value, uint64_t *ret_count)
{
	return parse_digits(&value, ret_count) && !*value;
}

/* The bytes that the decimals behind the point stand for; those from the tenth on count for nothing. */
static bool parse_fraction(const char **value, uint64_t unit, uint64_t *ret_bytes)
{
	uint64_t digits = 0, scale = 1;
	const char *at = *value;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (scale == 1000000000)
			continue;
		digits = digits * 10 + (uint64_t)(*at - '0');
		scale *= 10;
	}
	if (at == *value)
		return false;
	*value = at;
	*ret_bytes = digits * unit / scale;
	return true;
}

static bool parse_size(const char *value, uint64_t *ret_bytes)
{
	uint64_t whole, part = 0;
	const char *fraction, *name;

	if (!parse_digits(&value, &whole))
		return false;
	fraction = *value == '.' ? value + 1 : NULL;
	name = fraction ? fraction + strspn(fraction, "0123456789") : value;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(name, units[i].name) != 0)
			continue;
		if (fraction && !parse_fraction(&fraction, units[i].bytes, &part))
			return false;
		return !__builtin_mul_overflow(whole, units[i].bytes, &whole) &&
		       !__builtin_add_overflow(whole, part, ret_bytes);
	}
	return false;
}

static bool parse_word(const char *value, const char *const *words, uint64_t *ret_index)
{
	for (uint64_t i = 0; words[i]; i++) {
		if (strcmp(value, words[i]) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

/* Words with commas between, each a bit; `off` stands alone. */
static bool parse_relief(const char *value, uint64_t *ret_bits)
{
	uint64_t bits = 0, bit;
	char word[16];

	if (strcmp(value, "off") == 0) {
		*ret_bits = 0;
		return true;
	}
	for (const char *at = value;; at++) {
		size_t length = strcspn(at, ",");

		if (length >= sizeof(word))
			return false;
		memcpy(word, at, length);
		word[length] = '\0';
		if (!parse_word(word, relief_words, &bit))
			return false;
		bits |= UINT64_C(1) << bit;
		at += length;
		if (!*at)
			break;
	}
	*ret_bits = bits;
	return true;
}

static bool parse_number(enum kind kind, const char *value, uint64_t *ret_number)
{
	switch (kind) {
	case KIND_SIZE:
		return parse_size(value, ret_number);
	case KIND_COUNT:
		return parse_count(value, ret_number);
	case KIND_MS:
		return parse_count(value, ret_number) && *ret_number > 0;
	case KIND_FLAG:
		return parse_word(value, flag_words, ret_number);
	case KIND_SWITCH:
		return parse_word(value, switch_words, ret_number);
	case KIND_UNWIND:
		return parse_word(value, unwind_words, ret_number);
	case KIND_RELIEF:
		return parse_relief(value, ret_number);
	case KIND_PATH:
		break;
	}
	return false;
}

/* Puts one value into its field, and its text into `text`: what setenv moves later does not concern us. */
static bool row_set(const struct row *row, const char *value, struct settings *settings, char *text)
{
	void *field = (char *)settings + row->at;
	size_t length = strlen(value);
	uint64_t number;

	if (length >= SETTING_TEXT || strchr(value, '\n'))
		return false;
	if (row->kind == KIND_PATH)
		*(const char **)field = text;
	else if (parse_number(row->kind, value, &number))
		*(uint64_t *)field = number;
	else
		return false;
	memcpy(text, value, length + 1);
	return true;
}

/* The value of `name` in an environment, NULL when not set. */
static const char *variable_value(char **variables, const char *name)
{
	size_t length = strlen(name);

	for (; variables && *variables; variables++)
		if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
			return *variables + length + 1;
	return NULL;
}

size_t settings_parse(char **variables, struct settings *ret_settings, char (*ret_text)[SETTING_TEXT],
                      const char **ret_wrong)
{
	size_t wrong = 0;

	for (size_t i = 0; i < ROWS; i++) {
		const char *value = variable_value(variables, rows[i].name);

		row_set(&rows[i], rows[i].standard, ret_settings, ret_text[i]);
		if (value && !row_set(&rows[i], value, ret_settings, ret_text[i]))
			ret_wrong[wrong++] = rows[i].name;
	}
	return wrong;
}

static struct settings current;
static char current_text[ROWS][SETTING_TEXT];
static const char *current_wrong[ROWS];
static size_t current_wrongs;
static _Atomic int current_state; /* 0: not read, 1: being read, 2: read */

/* The environment; before libc knows it (in a preinit function) from where libc will take it. */
static char **environment(void)
{
	char **first = __libc_stack_end;

	if (environ)
		return environ;
	return first ? first + 1 + (uintptr_t)first[0] + 1 : NULL;
}

/*
 * Before the loader has started, and for a thread that meets another one reading it. Several threads may write
 * here at once: the same values.
 */
static const struct settings *settings_standard(void)
{
	static struct settings standard;
	static char text[ROWS][SETTING_TEXT];
	const char *wrong[ROWS];

	settings_parse(NULL, &standard, text, wrong);
	return &standard;
}

const struct settings *settings_get(void)
{
	int none = 0;

	if (atomic_load_explicit(&current_state, memory_order_acquire) == 2)
		return &current;
	if (!environment() || !atomic_compare_exchange_strong(&current_state, &none, 1))
		return settings_standard();
	current_wrongs = settings_parse(environment(), &current, current_text, current_wrong);
	atomic_store_explicit(&current_state, 2, memory_order_release);
	return &current;
}

void settings_say_wrong(void)
{
	char names[400];
	struct text text = text_in(names, sizeof(names));

	if (settings_get() != &current || !current_wrongs)
		return;
	for (size_t i = 0; i < current_wrongs; i++) {
		text_add(&text, i ? ", " : "");
		text_add(&text, current_wrong[i]);
	}
	say("wrong value, the default is used:", names, 0);
}

/* Adds NAME=value\n, or nothing when it would be cut. */
static void line_add(struct text *text, const char *name, const char *value)
{
	size_t before = text_length(text);

	text_add(text, name);
	text_byte(text, '=');
	text_add(text, value);
	text_byte(text, '\n');
	if (text->cut)
		text_back(text, before);
}

size_t settings_write(char *buffer, size_t size)
{
	struct text text = text_in(buffer, size);

	for (size_t i = 0; i < ROWS; i++)
		line_add(&text, rows[i].name, current_text[i]);
	return text_length(&text);
}

static const char *const allowed[] = {
#define ALLOWED(name) name,
#include "allowed.def"
#undef ALLOWED
};

size_t settings_environment(char *buffer, size_t size)
{
	struct text text = text_in(buffer, size);

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		const char *value = variable_value(environment(), allowed[i]);

		if (value && !strchr(value, '\n'))
			line_add(&text, allowed[i], value);
	}
	return text_length(&text);
}

size_t settings_library_path(char *buffer, size_t size)
{
	struct text text = text_in(buffer, size);
	const char *value = variable_value(environment(), "LD_LIBRARY_PATH");

	if (value)
		text_add(&text, value);
	if (text.cut)
		text_back(&text, 0);
	return text_length(&text);
}
