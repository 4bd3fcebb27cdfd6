/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects names in stacks: each address once, modules with the right bias, the function that holds the
 * call and not the one behind it, and objects that come and go at the same addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/elffile.h"
#include "preload/recorder/symbols.h"
#include "trace_back.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

static char folder[64], path[128];
static struct out out;
static struct symbols symbols;

static int set_up(void **state)
{
	struct st_file_head head = back_head(1, 1);

	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/run.zst", folder);
	out = (struct out){0};
	symbols_init(&symbols, (uint32_t)getpid());
	return trace_create(path, &head, NULL, &out.trace);
}

static int tear_down(void **state)
{
	(void)state;
	symbols_release(&symbols);
	trace_free(out.trace);
	back_remove_folder(folder);
	return 0;
}

static struct trace_back *name_all(void)
{
	symbols_place(&symbols, &out);
	while (symbols_work(&symbols, &out, true))
		continue;
	assert_int_equal(trace_flush(out.trace), 0);
	return back_read(path);
}

static const char *text_of(const struct st_record *record, size_t bytes)
{
	return (const char *)record + bytes;
}

static const char *name_of(const struct trace_back *back, uint64_t address, uint64_t *ret_offset)
{
	size_t i;

	for (i = 0; i < back->number; i++) {
		const struct st_ev_symbol *symbol = (const void *)back->record[i];

		if (symbol->r.kind == ST_KIND_symbol && symbol->address == address) {
			*ret_offset = symbol->offset;
			return text_of(&symbol->r, sizeof(*symbol));
		}
	}
	return "";
}

/* A local function: only .symtab has it. */
static __attribute__((noinline)) uint64_t where_called(void)
{
	uint64_t address = (uintptr_t)__builtin_return_address(0);

	__asm__ volatile("" : "+r"(address));
	return address;
}

static __attribute__((noinline)) uint64_t calling_function(void)
{
	uint64_t address = where_called();

	__asm__ volatile("" : "+r"(address));
	return address;
}

static void test_names(void **state)
{
	uint64_t own = calling_function(), libc = (uintptr_t)dlsym(RTLD_DEFAULT, "hcreate"), offset;
	uint64_t addresses[] = {own, libc + 8, own, 17, 0, UINT64_C(0x100000000)};
	struct trace_back *back;

	(void)state;
	symbols_add(&symbols, addresses, 6);
	symbols_add(&symbols, addresses, 6);
	back = name_all();
	assert_string_equal(name_of(back, own, &offset), "calling_function");
	assert_int_equal(offset, own - (uintptr_t)calling_function);
	assert_string_equal(name_of(back, libc + 8, &offset), "hcreate");
	assert_int_equal(offset, 8);
	assert_int_equal(back_count(back, ST_KIND_symbol),
	                 2); /* nothing twice, nothing for what is no code */
	back_free(back);
}

/* A call at the very end of a function (of one that does not return) has its return address in the next one. */
static void test_end_of_function(void **state)
{
	Dl_info info;
	const ElfW(Sym) * symbol;
	uint64_t end, offset;
	struct trace_back *back;

	(void)state;
	assert_true(dladdr1(dlsym(RTLD_DEFAULT, "lfind"), &info, (void **)&symbol, RTLD_DL_SYMENT));
	end = (uintptr_t)info.dli_saddr + symbol->st_size;
	symbols_add(&symbols, &end, 1);
	back = name_all();
	assert_string_equal(name_of(back, end, &offset), "lfind");
	assert_int_equal(offset, symbol->st_size);
	back_free(back);
}

static int check_bias(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct st_ev_module *module = context;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + head->p_vaddr;

		if (head->p_type != PT_LOAD || module->start > start || start >= module->end)
			continue;
		assert_int_equal(module->bias, info->dlpi_addr);
		return 1;
	}
	return 0;
}

static void test_modules(void **state)
{
	uint64_t address = (uintptr_t)where_called;
	struct trace_back *back;
	size_t i;
	int seen = 0;

	(void)state;
	symbols_add(&symbols, &address, 1);
	back = name_all();
	for (i = 0; i < back->number; i++) {
		const struct st_ev_module *module = (const void *)back->record[i];

		if (module->r.kind != ST_KIND_module)
			continue;
		assert_int_equal(dl_iterate_phdr(check_bias, (void *)module), 1);
		assert_true(module->build_id || !strstr(text_of(&module->r, sizeof(*module)), "libc.so.6"));
		seen++;
	}
	assert_true(seen >= 3); /* program, libc, loader */
	back_free(back);
}

/* After an exec the same addresses are those of another program. */
static void test_after_exec(void **state)
{
	uint64_t address = (uintptr_t)where_called;
	struct trace_back *back;

	(void)state;
	symbols.modules.start_stack++;
	symbols_add(&symbols, &address, 1);
	back = name_all();
	assert_int_equal(back_count(back, ST_KIND_module) + back_count(back, ST_KIND_symbol), 0);
	back_free(back);
}

/* The file was replaced since it was mapped: its names would be wrong. */
static void test_replaced(void **state)
{
	struct elffile_name name = {.address = 1};
	uint64_t bias = 5, build_id = 0;
	struct stat stat_now;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &stat_now), 0);
	assert_int_equal(elffile_look("/proc/self/exe", stat_now.st_ino + 1, 0, 0, &bias, &build_id),
	                 -ESTALE);
	assert_int_equal(elffile_name("/proc/self/exe", stat_now.st_ino + 1, &name, 1), -ESTALE);
	assert_int_equal(bias, 5);
	assert_int_equal(stat("/etc/passwd", &stat_now), 0);
	assert_int_equal(elffile_look("/etc/passwd", stat_now.st_ino, 0, 0, &bias, &build_id), -ENOEXEC);
	assert_int_equal(elffile_look("/none", 1, 0, 0, &bias, &build_id), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end_of_function, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_modules, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
