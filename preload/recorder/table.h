/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tensors of a weight file, whatever its format. A new format is a row in table.c. */
#ifndef SPARKTRACE_RECORDER_TABLE_H
#define SPARKTRACE_RECORDER_TABLE_H

#include "source.h"
#include "tensor.h"

#include <stdbool.h>

struct table;

/* Does a file of this format have a table that is understood? */
bool table_has(enum st_file_format format);

/*
 * The bytes of the file that the program reads before anything else of it, and that we look at first, as a
 * range: once they are in the page cache the program is reading the table itself.
 */
void table_probe(enum st_file_format format, uint64_t file_size, uint64_t *ret_offset, uint64_t *ret_size);

/* Bytes that the table takes of the file's beginning, where the first of them tell; 0: they do not. */
uint64_t table_head(enum st_file_format format, int fd, uint64_t file_size);

/* The descriptor stays the caller's. 0; -EINVAL: no such table; -ENOMEM; read errors. */
int table_open(enum st_file_format format, int fd, uint64_t file_size, const struct source_cache *cache,
               struct table **ret_table);

/* TENSOR_READ, TENSOR_STEP (a bounded piece of work), TENSOR_END; -EINVAL: see table_error; -ENOMEM; a read error. */
int table_next(struct table *table, struct file_tensor *ret_tensor);

/* What is wrong, and at which byte of the file. */
const char *table_error(const struct table *table, uint64_t *ret_offset);

/* At the end: why tensors have no names, NULL where they do. */
const char *table_note(const struct table *table);

/* Bytes that came into the page cache because of us. */
uint64_t table_own(const struct table *table);

void table_free(struct table *table);

#endif
