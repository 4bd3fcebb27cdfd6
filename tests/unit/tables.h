/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory, and their tables read to the end. */
#ifndef SPARKTRACE_TEST_TABLES_H
#define SPARKTRACE_TEST_TABLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/table.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct file_tensor tensor;

static inline int memory_file(const void *bytes, size_t size)
{
	int fd = memfd_create("table", 0);

	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

/* Steps until the end or an error; every tensor lies in the file. `note`, NULL: of no interest. */
static inline int read_through(enum st_file_format format, int fd, uint64_t size, int *ret_tensors,
                               const char **note)
{
	struct table *table;
	int rc = table_open(format, fd, size, NULL, &table), steps = 0;

	*ret_tensors = 0;
	if (rc)
		return rc;
	while ((rc = table_next(table, &tensor)) > 0) {
		assert_true(++steps < 1000000);
		if (rc == TENSOR_STEP)
			continue;
		++*ret_tensors;
		assert_true(tensor.offset <= size && tensor.size <= size - tensor.offset);
		assert_true(strlen(tensor.name) < TENSOR_NAME);
	}
	if (note)
		*note = table_note(table);
	table_free(table);
	return rc;
}

#endif
