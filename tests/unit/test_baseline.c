/* SPDX-License-Identifier: Apache-2.0 */
/* Baselines live in other people's repositories: what is written comes back, and what is wrong is named with its line. */
#include <errno.h>
#include <sys/stat.h>

#include "analyzer/baseline_parts.h"
#include "baseline_file.h"
#include "measures.h"

static void write_text(const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* Never freed: one a test. */
static char *read_text(void)
{
	FILE *in = fopen(path, "r");
	char *text = calloc(1, 1 << 16);

	assert_non_null(in);
	assert_true(fread(text, 1, (1 << 16) - 1, in) > 0);
	fclose(in);
	return text;
}

/* What baseline_read() says on stderr, and its result. */
static int read_saying(struct measures *ret_baseline, char *ret_words, size_t size)
{
	FILE *words = tmpfile();
	int saved = dup(STDERR_FILENO), result;
	size_t got;

	assert_non_null(words);
	fflush(stderr);
	dup2(fileno(words), STDERR_FILENO);
	result = baseline_read(path, ret_baseline);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(words);
	got = fread(ret_words, 1, size - 1, words);
	ret_words[got] = 0;
	fclose(words);
	return result;
}

static struct part part(enum metric metric, enum part_kind kind, const char *name, uint64_t bytes)
{
	return (struct part){
		.metric = metric, .kind = kind, .name = (char *)(uintptr_t)name, .bytes = range_of(bytes)};
}

static void what_is_written_comes_back(void **state)
{
	char name[] = "safetensors \"x\"", version[] = "0.8.0";
	struct measure_version v = {name, version};
	struct part parts[] = {
		part(METRIC_DEVICE, PART_FILE, "model \xc3\xa4 \"a\" \\.safetensors", GIB),
		part(METRIC_DEVICE, PART_STACK, "f < g, h", GIB / 2),
		part(METRIC_DEVICE, PART_STACK, "too small", MIB),
	};
	struct measure m = measure_example();
	struct measures back = {0};
	const struct measure *b;

	(void)state;
	m.values[METRIC_ANON] = (struct range){5, 4000000000000};
	m.values[METRIC_FACTOR] = (struct range){20012, 20013};
	m.values[METRIC_POOL] = RANGE_UNKNOWN;
	m.fingerprint.heap_threshold = ST_UNKNOWN;
	m.versions = &v;
	m.version_count = 1;
	m.breakdown = (struct breakdown){parts, 3};
	assert_int_equal(baseline_write(path, &m), 0);
	assert_int_equal(baseline_read(path, &back), 0);
	assert_int_equal(back.count, 1);
	b = &back.runs[0];
	assert_memory_equal(b->values, m.values, sizeof(m.values));
	for (size_t i = 0; i < FINGERPRINT_ROWS; i++)
		assert_true(fingerprint_equal(&fingerprint_rows[i], &b->fingerprint, &m.fingerprint));
	measure_scale(&m);
	assert_memory_equal(&b->scale, &m.scale, sizeof(m.scale));
	assert_string_equal(b->versions[0].name, name);
	assert_string_equal(b->versions[0].version, version);
	assert_int_equal(b->weights, m.weights);
	assert_true(b->finished && baseline_is_file(b));
	assert_int_equal(b->breakdown.count, 2);
	for (int i = 0; i < 2; i++) {
		const struct part *p =
			breakdown_find(&b->breakdown, parts[i].metric, parts[i].kind, parts[i].name);

		assert_non_null(p);
		assert_int_equal(p->bytes.hi, parts[i].bytes.hi);
	}
	measures_release(&back);
}

/* A name can be anything. */
static void what_is_no_text_is_made_one(void **state)
{
	struct part parts[] = {part(METRIC_DEVICE, PART_FILE, "a\xff\n\x1b", GIB)};
	struct measure m = measure_example();
	struct measures back = {0};

	(void)state;
	m.breakdown = (struct breakdown){parts, 1};
	assert_int_equal(baseline_write(path, &m), 0);
	assert_int_equal(baseline_read(path, &back), 0);
	assert_non_null(
		breakdown_find(&back.runs[0].breakdown, METRIC_DEVICE, PART_FILE, "a\\xff\\x0a\\x1b"));
	measures_release(&back);
}

/* It takes no other part's place. */
static void a_name_too_long_is_left_out(void **state)
{
	static char name[BASELINE_NAME_MAX + 2];
	static const char names[BASELINE_PARTS][2] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct part parts[BASELINE_PARTS + 1];
	struct measure m = measure_example();
	struct measures back = {0};

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	for (int i = 0; i < BASELINE_PARTS; i++)
		parts[i] = part(METRIC_DEVICE, PART_FILE, names[i], GIB / 16);
	parts[BASELINE_PARTS] = part(METRIC_DEVICE, PART_FILE, name, GIB / 2);
	m.breakdown = (struct breakdown){parts, BASELINE_PARTS + 1};
	assert_int_equal(baseline_write(path, &m), 0);
	assert_int_equal(baseline_read(path, &back), 0);
	assert_int_equal(back.runs[0].breakdown.count, BASELINE_PARTS);
	for (int i = 0; i < BASELINE_PARTS; i++)
		assert_string_equal(back.runs[0].breakdown.parts[i].name, names[i]);
	measures_release(&back);
}

static size_t lines_that_differ(char *a, char *b)
{
	char *saved_a, *saved_b, *x = strtok_r(a, "\n", &saved_a), *y = strtok_r(b, "\n", &saved_b);
	size_t count = 0;

	for (; x && y; x = strtok_r(NULL, "\n", &saved_a), y = strtok_r(NULL, "\n", &saved_b))
		count += strcmp(x, y) != 0;
	assert_true(!x && !y);
	return count;
}

static void a_number_that_moves_is_one_line_that_moves(void **state)
{
	struct measure m = measure_example();
	char *first, *second, *third;

	(void)state;
	m.values[METRIC_ANON] = range_of(5);
	assert_int_equal(baseline_write(path, &m), 0);
	first = read_text();
	assert_int_equal(baseline_write(path, &m), 0);
	second = read_text();
	assert_string_equal(first, second);
	assert_int_equal(first[strlen(first) - 1], '\n');
	m.values[METRIC_ANON] = (struct range){1, GIB};
	assert_int_equal(baseline_write(path, &m), 0);
	third = read_text();
	assert_non_null(strstr(third, "\"load_anonymous_copy_peak\": [1, 1073741824]"));
	assert_int_equal(lines_that_differ(first, third), 1);
	free(first);
	free(second);
	free(third);
}

static void mode_and_link_stay(void **state)
{
	struct measure m = measure_example();
	char link[320];
	struct stat st;

	(void)state;
	write_text("");
	assert_int_equal(chmod(path, 0600), 0);
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(baseline_write(link, &m), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_size > 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	unlink(link);
}

/* --- what is wrong ------------------------------------------------------------------------------------ */

#define FINGERPRINT                                                                                \
	"  \"fingerprint\": {\n    \"allocator\": \"block\",\n    \"device\": \"simulated\",\n"    \
	"    \"heap_threshold\": 1048576,\n    \"loader_threads\": 1,\n    \"page_size\": 4096,\n" \
	"    \"processes\": 1,\n    \"relief\": \"off\"\n  },\n"
#define LARGEST "  \"largest\": {},\n"
#define METRICS "  \"metrics\": {\n    \"load_device_peak\": 1\n  },\n"
#define SCALE   "  \"scale\": {\n    \"largest_tensor\": 1,\n    \"mappings\": 1,\n    \"released\": 0\n  },\n"
#define SCHEMA  "  \"schema\": 1,\n"
#define REST    "  \"versions\": {},\n  \"weights\": 1\n}\n"

/* Lines: 1 {, 2 fingerprint to 10, 11 largest, 12 to 14 metrics, 15 to 19 scale, 20 schema, 21 versions, 22 weights. */
static const struct {
	const char *text;
	unsigned line;
	const char *words;
} wrong[] = {
	{"", 1, ""},
	{"[]", 1, "no baseline"},
	{"{}", 1, "no \"schema\""},
	{"nonsense", 1, ""},
	{"{\n\"schema\": 1,\n\"schema\": 1\n}", 3, "duplicate"},
	{"{\n  \"schema\": 1,\n  \"weights\" 1\n}", 3, ""},
	{"{\n  \"schema\": 99999999999999999999\n}", 2, ""},
	{"{\n  \"later\": {},\n  \"schema\": 2\n}", 3, "newer"},
	{"{\n  \"schema\": 0\n}", 2, "no schema 0"},
	{"{\n  \"schema\": \"1\"\n}", 2, "whole number"},
	{"{\n  \"frob\": 1,\n  \"schema\": 1\n}", 2, "unknown key \"frob\""},
	{"{\n  \"schema\": 1,\n  \"a\\u001b[31m\": 1\n}", 3, "\\x1b"},
	{"{\n" FINGERPRINT LARGEST METRICS SCALE SCHEMA "  \"versions\": {}\n}", 1, "\"weights\" is missing"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {},\n" SCALE SCHEMA REST, 12, "0 of at least 1"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": 1,\n" SCALE SCHEMA REST, 12, "must be an object"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {\n\n    \"load_frob_peak\": 1\n  },\n" SCALE SCHEMA REST,
         14, "unknown metric \"load_frob_peak\""},
	{"{\n" FINGERPRINT LARGEST
         "  \"metrics\": {\n    \"load_device_peak\": 1.5\n  },\n" SCALE SCHEMA REST,
         13, "whole number"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {\n    \"load_device_peak\": -1\n  },\n" SCALE SCHEMA REST,
         13, "negative"},
	{"{\n" FINGERPRINT LARGEST
         "  \"metrics\": {\n    \"load_device_peak\": null\n  },\n" SCALE SCHEMA REST,
         13, "whole number"},
	{"{\n" FINGERPRINT LARGEST
         "  \"metrics\": {\n    \"load_device_peak\": [1, 2, 3]\n  },\n" SCALE SCHEMA REST,
         13, "[low, high]"},
	{"{\n" FINGERPRINT LARGEST
         "  \"metrics\": {\n    \"load_device_peak\": [2, 1]\n  },\n" SCALE SCHEMA REST,
         13, "above the high one"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {\n    \"load_factor\": -0.5\n  },\n" SCALE SCHEMA REST,
         13, "between 0 and"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {\n    \"load_factor\": 1e300\n  },\n" SCALE SCHEMA REST,
         13, "between 0 and"},
	{"{\n" FINGERPRINT LARGEST "  \"metrics\": {\n    \"load_factor\": \"2\"\n  },\n" SCALE SCHEMA REST,
         13, "must be a number"},
	{"{\n" FINGERPRINT "  \"largest\": {\"load_device_peak file a\": 1},\n" METRICS SCALE SCHEMA REST, 11,
         "METRIC, KIND NAME"},
	{"{\n" FINGERPRINT "  \"largest\": {\"load_device_peak, file \": 1},\n" METRICS SCALE SCHEMA REST, 11,
         "METRIC, KIND NAME"},
	{"{\n" FINGERPRINT "  \"largest\": {\"load_frob_peak, file a\": 1},\n" METRICS SCALE SCHEMA REST, 11,
         "METRIC, KIND NAME"},
	{"{\n" FINGERPRINT "  \"largest\": {\"load_device_peak, shape a\": 1},\n" METRICS SCALE SCHEMA REST,
         11, "METRIC, KIND NAME"},
	{"{\n  \"fingerprint\": {},\n" LARGEST METRICS SCALE SCHEMA REST, 2, "0 of at least 7"},
	{"{\n  \"fingerprint\": {\n    \"device\": \"toaster\"\n  },\n" LARGEST METRICS SCALE SCHEMA REST, 3,
         "\"toaster\" is no kind of device"},
	{"{\n  \"fingerprint\": {\n    \"threads\": 1\n  },\n" LARGEST METRICS SCALE SCHEMA REST, 3,
         "unknown key \"threads\""},
	{"{\n" FINGERPRINT LARGEST METRICS "  \"scale\": {\n    \"mappings\": 1\n  },\n" SCHEMA REST, 15,
         "1 of at least 3"},
	{"{\n" FINGERPRINT LARGEST METRICS SCALE SCHEMA
         "  \"versions\": {\n    \"x\": 1\n  },\n  \"weights\": 1\n}",
         22, "must be a text"},
};

static void what_is_wrong_is_named_with_its_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct measures back = {0};
		char words[1000], place[400];

		write_text(wrong[i].text);
		snprintf(place, sizeof(place), "sparktrace-analyze: %s:%u: ", path, wrong[i].line);
		assert_int_equal(read_saying(&back, words, sizeof(words)), -EINVAL);
		assert_int_equal(back.count, 0);
		if (strncmp(words, place, strlen(place)) != 0 || !strstr(words, wrong[i].words))
			fail_msg("%zu: %s", i, words);
		assert_ptr_equal(strchr(words, '\n'), words + strlen(words) - 1);
		assert_null(strchr(words, '\x1b'));
	}
}

/* The table above is wrong in one thing each: without it the text is right. */
static void the_smallest_baseline_is_read(void **state)
{
	struct measures back = {0};

	(void)state;
	write_text("{\n" FINGERPRINT LARGEST METRICS SCALE SCHEMA REST);
	assert_int_equal(baseline_read(path, &back), 0);
	assert_int_equal(back.runs[0].values[METRIC_DEVICE].hi, 1);
	assert_true(range_is_open(back.runs[0].values[METRIC_ANON]));
	measures_release(&back);
}

/* A key's name may stand elsewhere: as a value, in a deeper object, or written otherwise. */
static void keys_are_found_where_they_are(void **state)
{
	static const char json[] =
		"\n{\n\"a\": \"b\",\n\"c\": {\"b\": 1,\n\"x\": {\"z\": 1}},\n\"\\u0062\":\n{\n"
		"\"q\": [{\"z\":\n2}],\n\"z\": \"\\\"\"}}\n";
	const struct baseline_text text = {path, json, sizeof(json) - 1};

	(void)state;
	assert_int_equal(baseline_line(&text, NULL, NULL), 2);
	assert_int_equal(baseline_line(&text, "a", NULL), 3);
	assert_int_equal(baseline_line(&text, "a", "b"), 3);
	assert_int_equal(baseline_line(&text, "c", "x"), 5);
	assert_int_equal(baseline_line(&text, "c", "z"), 4);
	assert_int_equal(baseline_line(&text, "b", NULL), 6);
	assert_int_equal(baseline_line(&text, "b", "z"), 10);
	assert_int_equal(baseline_line(&text, "missing", "z"), 2);
}

static void nested_beyond_reason_is_refused(void **state)
{
	char *text = calloc(1, 1 << 16), words[1000];
	struct measures back = {0};

	(void)state;
	memset(text, '[', (1 << 16) - 1);
	write_text(text);
	assert_int_equal(read_saying(&back, words, sizeof(words)), -EINVAL);
	free(text);
}

static void what_is_too_large_is_refused(void **state)
{
	struct measures back = {0};
	char words[1000];

	(void)state;
	write_text(" ");
	assert_int_equal(truncate(path, 1 << 30), 0);
	assert_int_equal(read_saying(&back, words, sizeof(words)), -EINVAL);
	assert_non_null(strstr(words, "too large"));
}

static void what_is_not_there_is_the_callers_matter(void **state)
{
	struct measures back = {0};
	char words[1000];

	(void)state;
	assert_int_equal(read_saying(&back, words, sizeof(words)), -ENOENT);
	assert_string_equal(words, "");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, folder_up, folder_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_comes_back),
		TEST(what_is_no_text_is_made_one),
		TEST(a_name_too_long_is_left_out),
		TEST(a_number_that_moves_is_one_line_that_moves),
		TEST(mode_and_link_stay),
		TEST(what_is_wrong_is_named_with_its_line),
		TEST(the_smallest_baseline_is_read),
		TEST(keys_are_found_where_they_are),
		TEST(nested_beyond_reason_is_refused),
		TEST(what_is_too_large_is_refused),
		TEST(what_is_not_there_is_the_callers_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
