/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the claim who owns a file: only what the metadata says, and no metadata costs more than its bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/recorder/package_site.h"
#include "preload/recorder/packages.h"
#include "trace_back.h"

static char folder[] = "/tmp/test_packages.XXXXXX";

static void make_file(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* What owns a file of the site, as "name version", with '*' where its folder is shared. */
static const char *owner_of(struct site *site, const char *path)
{
	static char text[128];
	const struct distribution *owner;
	size_t top;
	bool shared;

	while (site_step(site))
		;
	owner = site_owner(site, path, &top, &shared);
	snprintf(text, sizeof(text), "%s%s %s", owner && shared ? "*" : "", owner ? owner->name : "-",
	         owner ? owner->version : "-");
	return text;
}

static int make_all(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	make_file("s/a-1.dist-info/METADATA",
	          "Metadata-Version: 2.1\r\nName: A\r\nVersion: 1.0\r\n\r\nName: B\n");
	make_file("s/a-1.dist-info/RECORD",
	          "a/__init__.py,,\n\"a,b.py\",,\n../../bin/tool,,\n/etc/x,,\nshared/a.py,,\n");
	make_file("s/b-2.dist-info/METADATA", "Version: 2+cu130\nName: b\n");
	make_file("s/b-2.dist-info/RECORD",
	          "shared/b.py,sha256=,7\r\nb.py,,\n__pycache__/b.pyc,,\nb.libs/x.so,,");
	make_file("s/none-3.dist-info/RECORD", "none/x.py,,\n"); /* no METADATA */
	make_file("s/odd-4.dist-info/METADATA", "Name: two words\nVersion: 1\n");
	make_file("s/odd-4.dist-info/RECORD", "odd/x.py,,\n");
	make_file("empty/file.py", "");
	return 0;
}

static int remove_all(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void only_metadata_tells(void **state)
{
	char path[64];
	struct site site;

	(void)state;
	snprintf(path, sizeof(path), "%s/empty", folder);
	assert_int_equal(site_open(path, &site), -ENOENT);
	snprintf(path, sizeof(path), "%s/nothing", folder);
	assert_int_equal(site_open(path, &site), -ENOENT);
	snprintf(path, sizeof(path), "%s/s", folder);
	assert_int_equal(site_open(path, &site), 0);
	assert_string_equal(owner_of(&site, "a/deep/file.py"), "A 1.0");
	assert_string_equal(owner_of(&site, "a,b.py"), "A 1.0");
	assert_string_equal(owner_of(&site, "b.py"), "b 2+cu130");
	assert_string_equal(owner_of(&site, "b.libs/x.so"), "b 2+cu130");
	assert_string_equal(owner_of(&site, "shared/a.py"), "*A 1.0");
	assert_string_equal(owner_of(&site, "shared/b.py"), "*b 2+cu130");
	assert_string_equal(owner_of(&site, "shared/c.py"), "- -");
	assert_string_equal(owner_of(&site, "none/x.py"), "- -");
	assert_string_equal(owner_of(&site, "odd/x.py"), "- -");
	assert_string_equal(owner_of(&site, "__pycache__/b.pyc"), "- -");
	assert_string_equal(owner_of(&site, "../../bin/tool"), "- -");
	assert_string_equal(owner_of(&site, ""), "- -");
	site_release(&site);
}

static void hostile_metadata_is_bounded(void **state)
{
	char name[64], *long_text = malloc(1 << 20);
	struct site site;

	(void)state;
	memset(long_text, 'x', 1 << 20);
	long_text[(1 << 20) - 1] = 0;
	make_file("h/long-1.dist-info/METADATA", long_text);
	make_file("h/long-2.dist-info/METADATA", "Name: long\nVersion: 2\n");
	make_file("h/long-2.dist-info/RECORD", long_text);
	make_file("h/quote-3.dist-info/METADATA", "Name: quote\nVersion: 3\n");
	make_file("h/quote-3.dist-info/RECORD", "\"\n\"\"\n\"\"\"\n,,,\n\n/\n\"q/x.py");
	snprintf(name, sizeof(name), "%s/h/pipe-4.dist-info", folder);
	mkdir(name, 0700);
	strcat(name, "/METADATA");
	assert_int_equal(mkfifo(name, 0600), 0); /* whoever reads it would wait for ever */
	snprintf(name, sizeof(name), "%s/h", folder);
	assert_int_equal(site_open(name, &site), 0);
	assert_string_equal(owner_of(&site, "q/x.py"), "quote 3");
	assert_string_equal(owner_of(&site, "xxxxxxxx"), "- -");
	assert_string_equal(owner_of(&site, long_text), "- -");
	site_release(&site);
	free(long_text);
}

static unsigned records_of(const struct trace_back *back, const char *text)
{
	unsigned count = 0;

	for (size_t i = 0; i < back->number; i++) {
		const struct st_record *record = back->record[i];
		size_t room = record->words * 8u - sizeof(*record);

		count += record->kind == ST_KIND_package &&
		         strnlen((const char *)(record + 1), room) == strlen(text) &&
		         !strncmp((const char *)(record + 1), text, strlen(text));
	}
	return count;
}

static void add(struct packages *packages, const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", *file == '/' ? folder : "", file);
	packages_add(packages, path, strlen(path));
}

static void each_folder_is_said_once(void **state)
{
	static const char *const files[] = {"/s/a/x.py",
	                                    "/s/a/deep/y.py",
	                                    "/s/b.py",
	                                    "/s/shared/b.py",
	                                    "/s/shared/c.py",
	                                    "/s/none/x.py",
	                                    "/empty/file.py",
	                                    "/s/a/x.py",
	                                    "relative/a/x.py",
	                                    "<string>",
	                                    ""};
	static const char *const said[] = {"A 1.0 %s/s/a", "b 2+cu130 %s/s/b.py",
	                                   "b 2+cu130 %s/s/shared/b.py"};
	struct packages packages = {0};
	struct st_file_head head = {.magic = ST_FILE_MAGIC, .major = ST_FORMAT_MAJOR};
	struct trace_back *back;
	struct out out = {0};
	char path[64], text[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/run.zst", folder);
	assert_int_equal(trace_create(path, &head, NULL, &out.trace), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		add(&packages, files[i]);
	for (int i = 0; packages_work(&packages, &out); i++)
		assert_true(i < 100);
	assert_int_equal(trace_finish(out.trace, 0), 0);
	trace_free(out.trace);
	packages_release(&packages);
	back = back_read(path);
	assert_int_equal(back_count(back, ST_KIND_package), 3);
	for (size_t i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), said[i], folder);
		assert_int_equal(records_of(back, text), 1);
	}
	back_free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_metadata_tells),
		cmocka_unit_test(hostile_metadata_is_bounded),
		cmocka_unit_test(each_folder_is_said_once),
	};

	return cmocka_run_group_tests(tests, make_all, remove_all);
}
