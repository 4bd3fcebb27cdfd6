/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects whoever writes a scenario: each kind of mistake is named with its line and field, and leaves no file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/commands.h"
#include "analyzer/pack.h"

static char folder[256];

struct wrong {
	const char *line, *message; /* the message begins like this */
};

static const struct wrong wrongs[] = {
	{"{", "line 2: "},
	{"{} {}", "line 2: end of file expected"},
	{"[]", "line 2: not an object"},
	{"{\"event\":\"free\",\"addr\":1,\"addr\":2}", "line 2: duplicate object key"},
	{"{\"event\":\"free\",\"addr\":99999999999999999999}", "line 2: too big integer"},
	{"{\"event\":\"mark\",\"text\":\"\xFF\"}", "line 2: "},
	{"{\"time\":1}", "line 2, field \"event\": missing"},
	{"{\"event\":3}", "line 2, field \"event\": missing"},
	{"{\"event\":\"maps\"}", "line 2, field \"event\": \"maps\" is no kind of record"},
	{"{\"event\":\"kind 65536\"}", "line 2, field \"event\": \"kind 65536\" is no kind"},
	{"{\"event\":\"kind -1\"}", "line 2, field \"event\": "},
	{"{\"event\":\"kind 1x\"}", "line 2, field \"event\": "},
	{"{\"event\":\"map\",\"sise\":1}", "line 2, field \"sise\": map has no such field"},
	{"{\"event\":\"map\",\"text\":\"a\"}", "line 2, field \"text\": map has no such field"},
	{"{\"event\":\"free\",\"path\":\"a\"}", "line 2, field \"path\": free has no such field"},
	{"{\"event\":\"map\",\"size\":-1}", "line 2, field \"size\": -1 is negative"},
	{"{\"event\":\"map\",\"size\":1.5}", "line 2, field \"size\": a size is wanted"},
	{"{\"event\":\"map\",\"size\":true}", "line 2, field \"size\": a size is wanted"},
	{"{\"event\":\"map\",\"size\":\"1.5 Gib\"}", "line 2, field \"size\": \"1.5 Gib\" is not a size"},
	{"{\"event\":\"map\",\"size\":\"99999999TiB\"}",
         "line 2, field \"size\": \"99999999TiB\" is too large"},
	{"{\"event\":\"map\",\"size\":null}", "line 2, field \"size\": null: this value cannot be unknown"},
	{"{\"event\":\"map\",\"time\":\"5 years\"}", "line 2, field \"time\": \"5 years\" is not a time"},
	{"{\"event\":\"map\",\"time\":null}", "line 2, field \"time\": null"},
	{"{\"event\":\"map\",\"thread\":4294967296}", "line 2, field \"thread\": 4294967296 is too large"},
	{"{\"event\":\"map\",\"addr\":\"7f00\"}", "line 2, field \"addr\": \"7f00\" is not a whole number"},
	{"{\"event\":\"map\",\"prot\":\"read|wrote\"}",
         "line 2, field \"prot\": \"wrote\" is none of its words"},
	{"{\"event\":\"map\",\"prot\":\"\"}", "line 2, field \"prot\": \"\" is none of its words"},
	{"{\"event\":\"map\",\"prot\":[\"read\"]}",
         "line 2, field \"prot\": a string like \"read|write\" is wanted"},
	{"{\"event\":\"copy\",\"how\":\"h2h\"}", "line 2, field \"how\": \"h2h\" is none of its words"},
	{"{\"event\":\"copy\",\"how\":-2}", "line 2, field \"how\": -2 is negative"},
	{"{\"event\":\"copy\",\"result\":\"2\"}", "line 2, field \"result\": a whole number is wanted"},
	{"{\"event\":\"map\",\"file\":1,\"path\":\"a\"}", "line 2, field \"path\": given beside \"file\""},
	{"{\"event\":\"map\",\"path\":\"\"}", "line 2, field \"path\": a file's name is wanted"},
	{"{\"event\":\"map\",\"file_size\":1}", "line 2, field \"path\": missing"},
	{"{\"event\":\"map\",\"path\":\"a\",\"format\":\"zip\"}",
         "line 2, field \"format\": \"zip\" is none of"},
	{"{\"event\":\"map\",\"path\":\"w.pt\",\"file_size\":6}",
         "line 2, field \"file_size\": not what an earlier"},
	{"{\"event\":\"map\",\"path\":\"w.pt\",\"format\":\"gguf\"}",
         "line 2, field \"format\": not what an earlier"},
	{"{\"event\":\"map\",\"stack\":[]}", "line 2, field \"stack\": 1 to 1024 functions"},
	{"{\"event\":\"map\",\"stack\":[\"a\",3]}", "line 2, field \"stack\": function 1 is no name"},
	{"{\"event\":\"map\",\"stack\":\"main\"}", "line 2, field \"stack\": \"main\" is not a whole number"},
	{"{\"event\":\"file\",\"path\":\"a\",\"text\":\"a\"}",
         "line 2, field \"path\": given beside \"text\""},
	{"{\"event\":\"mark\",\"text\":\"a\",\"text_hex\":\"61\"}",
         "line 2, field \"text_hex\": given beside"},
	{"{\"event\":\"mark\",\"text\":1}", "line 2, field \"text\": a text is wanted"},
	{"{\"event\":\"mark\",\"text_hex\":\"610062\"}", "line 2, field \"text_hex\": a NUL in a text"},
	{"{\"event\":\"mark\",\"text_hex\":\"6\"}",
         "line 2, field \"text_hex\": bytes in lower-case hexadecimal"},
	{"{\"event\":\"mark\",\"text_hex\":\"6G\"}",
         "line 2, field \"text_hex\": bytes in lower-case hexadecimal"},
	{"{\"event\":\"stack\",\"words\":\"0x1\"}", "line 2, field \"words\": a list is wanted"},
	{"{\"event\":\"stack\",\"words\":[\"x\"]}", "line 2, field \"words\": \"x\" is not a whole number"},
	{"{\"event\":\"kind 250\"}", "line 2, field \"raw\": missing"},
	{"{\"event\":\"kind 250\",\"raw\":\"0102\"}", "line 2, field \"raw\": 2 bytes are not whole words"},
	{"{\"event\":\"kind 250\",\"raw\":7}", "line 2, field \"raw\": bytes in lower-case"},
	{"{\"event\":\"kind 250\",\"raw\":\"\",\"size\":1}",
         "line 2, field \"size\": this kind has no such field"},
	{"{\"event\":\"kind 1\",\"raw\":\"0000000000000000\"}", "line 2: too short for a record of its kind"},
	{"{\"event\":\"free\",\"seq\":40}", "line 2, field \"seq\": not above the one before"},
	{"{\"event\":\"free\",\"seq\":281474976710656}",
         "line 2, field \"seq\": 281474976710656 is too large"},
	{"{\"event\":\"free\",\"seq\":41,\"seq_raw\":3}", "line 2, field \"seq_raw\": given beside \"seq\""},
	{"{\"event\":\"process\"}", "line 2, field \"event\": the process record comes first, and once"},
	{"{\"event\":\"head\"}", "line 2, field \"event\": the head comes first"},
};

/* The first line is good; the second is `line`. */
static int pack_second(const char *first, const char *line, char *error)
{
	char text[1024];
	FILE *in;
	int result;

	snprintf(text, sizeof(text), "%s\n%s\n{\"event\":\"mark\"}\n", first, line);
	in = fmemopen(text, strlen(text), "r");
	assert_non_null(in);
	result = pack_stream(in, open("/dev/null", O_WRONLY), error);
	fclose(in);
	return result;
}

static void mistakes_are_named(void **state)
{
	static const char first[] = "{\"event\":\"read\",\"seq\":40,\"path\":\"w.pt\",\"file_size\":5}";
	char error[PACK_ERROR_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		assert_int_not_equal(pack_second(first, wrongs[i].line, error), 0);
		if (strncmp(error, wrongs[i].message, strlen(wrongs[i].message)))
			fail_msg("%s\nsays      %s\nin place of %s", wrongs[i].line, error,
			         wrongs[i].message);
	}
}

static void heads_are_checked(void **state)
{
	static const struct wrong heads[] = {
		{"{\"event\":\"head\",\"pid\":4294967296}", "line 2, field \"pid\": 4294967296 is too large"},
		{"{\"event\":\"head\",\"minor\":65536}", "line 2, field \"minor\": 65536 is too large"},
		{"{\"event\":\"head\",\"major\":1}", "line 2, field \"major\": head has no such field"},
		{"{\"event\":\"head\",\"boot_id\":\"0123456789012345678901234567890123456789\"}",
	         "line 2, field \"boot_id\": a text of less than 40 bytes"},
		{"{\"event\":\"head\",\"ring\":5}", "line 2, field \"ring\": a text of less than 256 bytes"},
		{"{\"event\":\"head\",\"ring_hex\":\"zz\"}",
	         "line 2, field \"ring_hex\": bytes in lower-case"},
	};
	char error[PACK_ERROR_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		assert_int_not_equal(pack_second("# nothing", heads[i].line, error), 0);
		if (strncmp(error, heads[i].message, strlen(heads[i].message)))
			fail_msg("%s\nsays      %s\nin place of %s", heads[i].line, error, heads[i].message);
	}
}

static void records_too_large_are_refused(void **state)
{
	static char line[3u << 20];
	char error[PACK_ERROR_MAX], *end;
	FILE *in;

	(void)state;
	strcpy(line, "{\"event\":\"kind 250\",\"raw\":\"");
	end = line + strlen(line);
	memset(end, '0', 65536 * 16);
	strcpy(end + 65536 * 16, "\"}\n");
	in = fmemopen(line, strlen(line), "r");
	assert_int_not_equal(pack_stream(in, open("/dev/null", O_WRONLY), error), 0);
	assert_string_equal(error, "line 1, field \"raw\": 524288 bytes are more than a record can hold");
	fclose(in);
	strcpy(line, "{\"event\":\"mark\",\"text\":\"");
	end = line + strlen(line);
	memset(end, 'a', 65536 * 8);
	strcpy(end + 65536 * 8, "\"}\n");
	in = fmemopen(line, strlen(line), "r");
	assert_int_not_equal(pack_stream(in, open("/dev/null", O_WRONLY), error), 0);
	assert_string_equal(error, "line 1, field \"text\": 524288 bytes are more than a record can hold");
	fclose(in);
}

/* --- the command --------------------------------------------------------------------------------- */

static unsigned files_in(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static int run_pack(const char *scenario, const char *output)
{
	char *argv[] = {"pack", (char *)(uintptr_t)scenario, "-o", (char *)(uintptr_t)output, NULL};
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY), status;

	dup2(null, STDERR_FILENO);
	optind = 0;
	status = cmd_pack(4, argv);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return status;
}

static void wrong_input_leaves_no_output(void **state)
{
	char scenario[300], output[300];
	struct stat st;
	FILE *out;

	(void)state;
	snprintf(scenario, sizeof(scenario), "%s/scenario.jsonl", folder);
	snprintf(output, sizeof(output), "%s/run.zst", folder);
	assert_int_equal(run_pack(scenario, output), COMMAND_BAD); /* no input at all */
	assert_int_equal(files_in(folder), 0);
	out = fopen(scenario, "w");
	fputs("{\"event\":\"mark\"}\n{\"event\":\"mork\"}\n", out);
	fclose(out);
	assert_int_equal(run_pack(scenario, output), COMMAND_BAD);
	assert_int_equal(files_in(folder), 1);
	out = fopen(scenario, "w");
	fputs("{\"event\":\"mark\"}\n", out);
	fclose(out);
	assert_int_equal(run_pack(scenario, "/no/such/folder/run.zst"), COMMAND_BAD);
	assert_int_equal(run_pack(scenario, output), COMMAND_OK);
	assert_int_equal(files_in(folder), 2);
	assert_int_equal(stat(output, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	unlink(scenario);
	unlink(output);
}

static int make_folder(void **state)
{
	const char *base = getenv("T");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/pack.XXXXXX", base ? base : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(heads_are_checked),
		cmocka_unit_test(records_too_large_are_refused),
		cmocka_unit_test(wrong_input_leaves_no_output),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
