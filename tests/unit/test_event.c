/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the table that dump, pack and reader go by: that it says what format.h says, and that no name in it
 * could be mistaken for another in a JSON line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "analyzer/event.h"

static void kinds_have_the_size_of_their_structs(void **state)
{
	(void)state;
#define E(number, name, tail, meaning) \
	assert_int_equal(event_kind_find(number)->words * 8, sizeof(struct st_ev_##name));
	ST_EVENTS(E)
#undef E
}

static void kinds_are_found_by_number_and_name(void **state)
{
	(void)state;
#define E(id, title, end, what)                                              \
	assert_string_equal(event_kind_find(id)->name, #title);              \
	assert_ptr_equal(event_kind_find_name(#title), event_kind_find(id)); \
	assert_int_equal(event_kind_find(id)->tail, EVENT_TAIL_##end);
	ST_EVENTS(E)
#undef E
	assert_null(event_kind_find(0));
	assert_null(event_kind_find(13));
	assert_null(event_kind_find(UINT16_MAX));
	assert_null(event_kind_find_name("maps"));
	assert_null(event_kind_find_name(""));
}

static void fields_stand_where_the_struct_has_them(void **state)
{
	struct st_ev_map map = {.r = {.kind = ST_KIND_map, .words = sizeof(map) / 8}};
	const struct event_kind *kind = event_kind_find(ST_KIND_map);

	(void)state;
	map.offset = 77;
	map.stack = 78;
	assert_int_equal(record_field(&map.r, (size_t)(event_field_find(kind, "offset") - kind->fields)), 77);
	assert_int_equal(record_field(&map.r, (size_t)(event_field_find(kind, "stack") - kind->fields)), 78);
	assert_null(event_field_find(kind, "how"));
}

static void no_name_means_two_things(void **state)
{
	static const char *const reserved[] = {"event",    "seq",   "seq_raw", "time", "thread",   "text",
	                                       "text_hex", "words", "more",    "raw",  "file_size"};

	(void)state;
	for (size_t k = 0; k < event_kind_count; k++)
		for (size_t f = 0; f < event_kinds[k].field_count; f++) {
			const char *name = event_kinds[k].fields[f].name;

			assert_ptr_equal(event_field_find(&event_kinds[k], name), &event_kinds[k].fields[f]);
			for (size_t r = 0; r < sizeof(reserved) / sizeof(*reserved); r++)
				assert_string_not_equal(name, reserved[r]);
		}
}

static void words_lead_back_to_their_values(void **state)
{
	(void)state;
	for (size_t k = 0; k < event_kind_count; k++)
		for (size_t f = 0; f < event_kinds[k].field_count; f++) {
			const struct event_type *type = event_kinds[k].fields[f].type;

			for (uint64_t value = 0; value < type->word_count; value++) {
				const char *word = event_word_name(type, value);
				uint64_t back = UINT64_MAX;

				if (!word)
					continue;
				assert_int_equal(event_word_value(type, word, strlen(word), &back), 0);
				assert_int_equal(back, value);
				assert_null(strchr(word, '|'));
			}
		}
}

static void words_are_those_of_the_enums(void **state)
{
	const struct event_kind *alloc = event_kind_find(ST_KIND_device_alloc);
	const struct event_type *how = event_field_find(alloc, "how")->type;
	const struct event_type *flags = event_field_find(alloc, "flags")->type;
	const struct event_type *call = event_field_find(event_kind_find(ST_KIND_enter), "call")->type;
	uint64_t value = 99;

	(void)state;
	assert_string_equal(event_word_name(how, ST_DEVICE_MANAGED), "managed");
	assert_string_equal(event_word_name(flags, ST_CALL_CAPTURING), "capturing");
	assert_string_equal(event_word_name(call, ST_KIND_copy), "copy");
	assert_null(event_word_name(call, 0));
	assert_null(event_word_name(how, 1000));
	assert_int_equal(event_word_value(how, "manage", 6, &value), -ENOENT);
	assert_int_equal(event_word_value(how, "managed|x", 9, &value), -ENOENT);
	assert_int_equal(value, 99);
}

/* "none" stands for no flag at all, so no flag may be called that. */
static void no_flag_is_called_none(void **state)
{
	(void)state;
	for (size_t k = 0; k < event_kind_count; k++)
		for (size_t f = 0; f < event_kinds[k].field_count; f++) {
			const struct event_type *type = event_kinds[k].fields[f].type;
			uint64_t value;

			if (type->form == EVENT_FORM_FLAGS)
				assert_int_equal(event_word_value(type, "none", 4, &value), -ENOENT);
		}
}

static void missing_values_are_those_of_the_types(void **state)
{
	const struct event_kind *sample = event_kind_find(ST_KIND_sample);
	const struct event_kind *map = event_kind_find(ST_KIND_map);

	(void)state;
	assert_true(event_type_optional(event_field_find(sample, "mem_free")->type));
	assert_true(event_type_optional(event_field_find(sample, "refaults")->type));
	assert_false(event_type_optional(event_field_find(map, "size")->type));
	assert_int_equal(event_field_find(map, "size")->type->missing, 0);
}

static void tails_end_where_the_text_ends(void **state)
{
	struct {
		struct st_ev_file file;
		char text[16];
	} file = {.file = {.r = {.kind = ST_KIND_file, .words = sizeof(file) / 8}}};
	const char *text;

	(void)state;
	memcpy(file.text, "12345678", 8);
	assert_int_equal(record_text(&file.file.r, &text), 8);
	assert_memory_equal(text, "12345678", 8);
	memcpy(file.text, "123456789abcdefg", 16); /* full to the brim: no NUL behind it */
	assert_int_equal(record_text(&file.file.r, &text), 16);
	file.file.r.words = sizeof(file.file) / 8;
	assert_int_equal(record_text(&file.file.r, &text), 0);
	assert_string_equal(text, "");
}

static void words_behind_other_kinds_are_no_tail(void **state)
{
	struct {
		struct st_ev_stack stack;
		uint64_t words[2];
	} stack = {.stack = {.r = {.kind = ST_KIND_stack, .words = sizeof(stack) / 8}}, .words = {7, 8}};
	const uint64_t *words;
	const char *text;

	(void)state;
	assert_int_equal(record_words(&stack.stack.r, &words), 2);
	assert_int_equal(words[1], 8);
	assert_int_equal(record_text(&stack.stack.r, &text), 0);
	stack.stack.r.kind = 250;
	assert_int_equal(record_words(&stack.stack.r, &words), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_have_the_size_of_their_structs),
		cmocka_unit_test(kinds_are_found_by_number_and_name),
		cmocka_unit_test(fields_stand_where_the_struct_has_them),
		cmocka_unit_test(no_name_means_two_things),
		cmocka_unit_test(words_lead_back_to_their_values),
		cmocka_unit_test(words_are_those_of_the_enums),
		cmocka_unit_test(no_flag_is_called_none),
		cmocka_unit_test(missing_values_are_those_of_the_types),
		cmocka_unit_test(tails_end_where_the_text_ends),
		cmocka_unit_test(words_behind_other_kinds_are_no_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
