/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the way from a trace to JSON lines and back: the same records byte for byte, whatever they hold; and
 * what a scenario written by hand becomes.
 */
#include "trace_file.h"

#include "analyzer/dump.h"
#include "analyzer/event.h"
#include "analyzer/pack.h"

#include <inttypes.h>

static uint64_t random_state = 1;

static uint64_t random_word(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 16 ^ random_state << 40;
}

/* Values that numbers, words, flags and "unknown" must all survive. */
static uint64_t odd_value(void)
{
	static const uint64_t values[] = {0,          1,        3,           INT64_MAX,  (uint64_t)INT64_MIN,
	                                  UINT64_MAX, 1u << 30, 1536u << 20, 1000000000, 0x300,
	                                  4,          15};
	uint64_t choice = random_word();

	return choice % 3 ? values[(choice >> 8) % (sizeof(values) / sizeof(*values))] : random_word();
}

static void append_odd(struct trace *trace, uint64_t *words, unsigned kind, size_t count)
{
	struct st_record *record = (struct st_record *)words;

	*record = (struct st_record){.time = odd_value(),
	                             .thread = (uint32_t)random_word(),
	                             .kind = (uint16_t)kind,
	                             .words = (uint16_t)count};
	if (random_word() % 4 == 0)
		record->seq = odd_value() & ~(UINT64_C(1) << 48); /* no seq of ours */
	assert_int_equal(trace_append(trace, record), 0);
}

/* One record of every kind, with fields and tails of all sorts, and with too few and too many words. */
static void append_all_kinds(struct trace *trace)
{
	static uint64_t words[2000];

	for (size_t k = 0; k < event_kind_count; k++) {
		const struct event_kind *kind = &event_kinds[k];

		if (kind->number == ST_KIND_block || kind->number == ST_KIND_trailer)
			continue;
		for (size_t i = 3; i < 2000; i++)
			words[i] = odd_value();
		append_odd(trace, words, kind->number, kind->words);
		append_odd(trace, words, kind->number, kind->words + random_word() % 30);
		append_odd(trace, words, kind->number, 3 + random_word() % (kind->words - 2u));
	}
	append_odd(trace, words, 0, 3);
	append_odd(trace, words, 250, 4);
	append_odd(trace, words, UINT16_MAX, 2000);
}

static void append_text_bytes(struct trace *trace, const char *text, size_t length, size_t room)
{
	struct {
		struct st_ev_file file;
		char text[64];
	} record = {.file = {.id = 1}};

	record.file.r = (struct st_record){.kind = ST_KIND_file,
	                                   .words = (uint16_t)((sizeof(record.file) + room) / 8)};
	memcpy(record.text, text, length);
	assert_int_equal(trace_append(trace, &record.file.r), 0);
}

static void append_texts(struct trace *trace)
{
	static const char *const texts[] = {"w.safetensors",
	                                    "",
	                                    "12345678",
	                                    "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
	                                    "\"quoted\"\\",
	                                    "tab\there\n\x01\x7F",
	                                    "\xFF\xFE",
	                                    "\xC0\x80",
	                                    "\xED\xA0\x80",
	                                    "\xF4\x90\x80\x80",
	                                    "cut \xE2\x82",
	                                    "\xE0\x80\x80",
	                                    "\xF8\x88\x80\x80\x80"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		size_t length = strlen(texts[i]);

		append_text_bytes(trace, texts[i], length, (length + 7) / 8 * 8);
		append_text_bytes(trace, texts[i], length, (length + 7) / 8 * 8 + 16);
	}
	append_text_bytes(trace, "a\0b", 3, 8);
}

static void dump_to(const char *path, bool units, const char *lines)
{
	struct reader *reader;
	FILE *out = fopen(lines, "w");

	assert_int_equal(reader_open(path, &reader), 0);
	assert_int_equal(dump_trace(out, reader, units), 0);
	fclose(out);
	reader_free(reader);
}

static int pack_from(const char *lines, const char *path, char *error)
{
	FILE *in = fopen(lines, "r");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), result;

	assert_non_null(in);
	error[0] = '\0';
	result = pack_stream(in, fd, error);
	fclose(in);
	return result;
}

static void assert_same_traces(const char *one, const char *two)
{
	struct reader *a, *b;
	const struct st_record *record;
	int more;

	assert_int_equal(reader_open(one, &a), 0);
	assert_int_equal(reader_open(two, &b), 0);
	assert_memory_equal(&reader_summary(a)->head, &reader_summary(b)->head, sizeof(struct st_file_head));
	do {
		more = reader_next(a, &record);
		assert_int_equal(reader_next(b, &record), more);
		if (more) {
			assert_int_equal(reader_raw(a)->words, reader_raw(b)->words);
			assert_memory_equal(reader_raw(a), reader_raw(b), (size_t)reader_raw(a)->words * 8);
		}
	} while (more);
	assert_int_equal(reader_summary(a)->blocks, reader_summary(b)->blocks);
	assert_int_equal(reader_summary(a)->has_trailer, reader_summary(b)->has_trailer);
	reader_free(a);
	reader_free(b);
}

static void check_round_trip(const char *path, const char *lines, const char *again)
{
	char error[PACK_ERROR_MAX];

	for (int units = 0; units < 2; units++) {
		dump_to(path, units, lines);
		if (pack_from(lines, again, error))
			print_error("%s\n", error);
		assert_string_equal(error, "");
		assert_same_traces(path, again);
		unlink(lines);
		unlink(again);
	}
}

static void every_record_comes_back(void **state)
{
	const char *path = test_path("roundtrip"), *lines = test_path("lines"), *again = test_path("again");
	struct st_file_head head = test_head("/dev/shm/no such ring \xFF\"");

	(void)state;
	for (unsigned round = 0; round < 30; round++) {
		struct trace *trace = start_trace(path, &head);

		put_block(trace, 3); /* earlier ones are missing */
		append_texts(trace);
		put_block(trace, 7);
		append_all_kinds(trace);
		put_frees(trace, 0, 5);
		assert_int_equal(round % 2 ? trace_finish(trace, 9) : trace_flush(trace), 0);
		trace_free(trace);
		check_round_trip(path, lines, again);
	}
	unlink(path);
}

/* --- scenarios ----------------------------------------------------------------------------------- */

static void write_lines(const char *path, const char *text)
{
	store(path, text, strlen(text));
}

static struct reader *pack_text(const char *path, const char *text)
{
	const char *lines = test_path("scenario");
	struct reader *reader;
	char error[PACK_ERROR_MAX];

	write_lines(lines, text);
	if (pack_from(lines, path, error))
		print_error("%s\n", error);
	assert_string_equal(error, "");
	unlink(lines);
	assert_int_equal(reader_open(path, &reader), 0);
	return reader;
}

static const void *next_of(struct reader *reader, unsigned kind)
{
	const struct st_record *record;

	assert_int_equal(reader_next(reader, &record), 1);
	assert_int_equal(record->kind, kind);
	return record;
}

static void assert_text(const void *record, const char *expected)
{
	const char *text;
	size_t length = record_text(record, &text);

	assert_int_equal(length, strlen(expected));
	assert_memory_equal(text, expected, length);
}

static void assert_end(struct reader *reader)
{
	const struct st_record *record;
	const struct st_ev_trailer *trailer = next_of(reader, ST_KIND_trailer);
	uint64_t records = trailer->records;

	assert_int_equal(trailer->blocks, 1);
	assert_int_equal(reader_next(reader, &record), 0);
	assert_int_equal(reader_summary(reader)->records, records);
	assert_int_equal(reader_summary(reader)->problem_count, 0);
	reader_free(reader);
}

static void a_scenario_gives_only_facts(void **state)
{
	const char *path = test_path("facts");
	struct reader *reader =
		pack_text(path, "# a comment\n"
	                        "\n"
	                        "  # another\n"
	                        "{\"event\":\"sample\",\"time\":\"1.5s\",\"mem_free\":\"40GiB\","
	                        "\"mem_available\":\"110GiB\"}\n"
	                        "{\"event\":\"lost\",\"count\":4}");
	const struct st_ev_block *block = next_of(reader, ST_KIND_block);
	const struct st_ev_process *process;
	const struct st_ev_sample *sample;
	const struct st_ev_lost *lost;

	(void)state;
	assert_int_equal(block->number, 0);
	assert_int_equal(block->monotonic, 1500000000);
	process = next_of(reader, ST_KIND_process);
	assert_int_equal(process->page_size, 4096);
	assert_int_equal(process->pool, ST_POOL_UMA);
	assert_true(process->rank == ST_UNKNOWN);
	sample = next_of(reader, ST_KIND_sample);
	assert_int_equal(sample->r.time, 1500000000);
	assert_int_equal(sample->r.seq, 0);
	assert_int_equal(sample->mem_free, UINT64_C(40) << 30);
	assert_true(sample->mem_total == ST_UNKNOWN);
	lost = next_of(reader, ST_KIND_lost);
	assert_int_equal(lost->r.time, 1500000000);
	assert_int_equal(lost->count, 4);
	assert_end(reader);
	unlink(path);
}

static void paths_become_files_once(void **state)
{
	const char *path = test_path("paths");
	struct reader *reader =
		pack_text(path, "{\"event\":\"process\",\"pid\":7,\"pool\":\"discrete\"}\n"
	                        "{\"event\":\"map\",\"path\":\"a.gguf\",\"file_size\":\"1KiB\","
	                        "\"prot\":\"read|write\",\"flags\":\"private|0x100000\"}\n"
	                        "{\"event\":\"file\",\"path\":\"b.bin\",\"id\":9}\n"
	                        "{\"event\":\"read\",\"path\":\"a.gguf\",\"file_size\":1024}\n"
	                        "{\"event\":\"read\",\"path\":\"b.bin\"}\n"
	                        "{\"event\":\"tensor\",\"path\":\"c\",\"format\":\"weights\","
	                        "\"text\":\"layer.0\",\"dtype\":\"BF16\"}\n");
	const struct st_ev_file *file;
	const struct st_ev_map *map;
	const struct st_ev_process *process;
	const struct st_ev_tensor *tensor;

	(void)state;
	next_of(reader, ST_KIND_block);
	process = next_of(reader, ST_KIND_process);
	assert_int_equal(process->pid, 7);
	assert_int_equal(process->page_size, 4096);
	file = next_of(reader, ST_KIND_file);
	assert_int_equal(file->id, 1);
	assert_int_equal(file->size, 1024);
	assert_int_equal(file->format, ST_FILE_GGUF);
	assert_text(file, "a.gguf");
	map = next_of(reader, ST_KIND_map);
	assert_int_equal(map->file, 1);
	assert_int_equal(map->prot, 3);
	assert_int_equal(map->flags, 0x100002);
	file = next_of(reader, ST_KIND_file);
	assert_int_equal(file->id, 9);
	assert_int_equal(file->ino, 9);
	assert_int_equal(file->format, ST_FILE_TORCH);
	assert_text(file, "b.bin");
	assert_int_equal(((const struct st_ev_read *)next_of(reader, ST_KIND_read))->file, 1);
	assert_int_equal(((const struct st_ev_read *)next_of(reader, ST_KIND_read))->file, 9);
	file = next_of(reader, ST_KIND_file);
	assert_int_equal(file->id, 10);
	assert_int_equal(file->format, ST_FILE_WEIGHTS);
	tensor = next_of(reader, ST_KIND_tensor);
	assert_int_equal(tensor->file, 10);
	assert_int_equal(tensor->dtype, ST_DTYPE_BF16);
	assert_text(tensor, "layer.0");
	assert_end(reader);
	unlink(path);
}

static void functions_become_stacks_once(void **state)
{
	const char *path = test_path("stacks");
	struct reader *reader = pack_text(path, "{\"event\":\"unmap\",\"stack\":[\"munmap\",\"main\"]}\n"
	                                        "{\"event\":\"unmap\",\"stack\":[\"main\"]}\n"
	                                        "{\"event\":\"unmap\",\"stack\":[\"munmap\",\"main\"]}\n");
	const struct st_ev_stack *stack;
	const uint64_t *words;
	uint64_t inner, outer;

	(void)state;
	next_of(reader, ST_KIND_block);
	next_of(reader, ST_KIND_process);
	inner = ((const struct st_ev_symbol *)next_of(reader, ST_KIND_symbol))->address;
	outer = ((const struct st_ev_symbol *)next_of(reader, ST_KIND_symbol))->address;
	assert_int_not_equal(inner, outer);
	stack = next_of(reader, ST_KIND_stack);
	assert_int_equal(record_words(&stack->r, &words), 2);
	assert_int_equal(words[0], inner);
	assert_int_equal(words[1], outer);
	assert_int_equal(((const struct st_ev_unmap *)next_of(reader, ST_KIND_unmap))->stack, 1);
	stack = next_of(reader, ST_KIND_stack);
	assert_int_equal(record_words(&stack->r, &words), 1);
	assert_int_equal(words[0], outer);
	assert_int_equal(((const struct st_ev_unmap *)next_of(reader, ST_KIND_unmap))->stack, 2);
	assert_int_equal(((const struct st_ev_unmap *)next_of(reader, ST_KIND_unmap))->stack, 1);
	assert_end(reader);
	unlink(path);
}

/* A scenario larger than a block is several, whose clocks go on. */
static void long_scenarios_are_several_blocks(void **state)
{
	const char *lines = test_path("longlines"), *path = test_path("longtrace");
	FILE *out = fopen(lines, "w");
	char error[PACK_ERROR_MAX];

	(void)state;
	for (unsigned i = 0; i < 40000; i++)
		fprintf(out, "{\"event\":\"free\",\"time\":\"%us\",\"addr\":\"0x%x\",\"seq\":%u}\n", i, i,
		        32 * i);
	fclose(out);
	assert_int_equal(pack_from(lines, path, error), 0);
	static struct got got;
	read_trace(path, NULL, &got);
	assert_int_equal(got.count, GOT_MAX);
	assert_int_equal(got.summary.blocks, 2);
	assert_int_equal(got.summary.records, 40000 + 2 + 2);
	assert_int_equal(got.summary.problem_count, 0);
	assert_int_equal(got.summary.last_time, UINT64_C(39999000000000));
	unlink(lines);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_record_comes_back),
		cmocka_unit_test(a_scenario_gives_only_facts),
		cmocka_unit_test(paths_become_files_once),
		cmocka_unit_test(functions_become_stacks_once),
		cmocka_unit_test(long_scenarios_are_several_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
