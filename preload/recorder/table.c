/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"
#include "gguf.h"
#include "safetensors.h"
#include "torchzip.h"

#include <errno.h>
#include <stdlib.h>

#define PROBE 4096u

/* Every row's functions take its own reader as a void pointer; NULL: the format has none of it. */
struct row {
	int (*open)(int fd, uint64_t file_size, const struct source_cache *cache, void **ret_reader);
	int (*next)(void *reader, struct file_tensor *ret_tensor);
	const char *(*error)(const void *reader, uint64_t *ret_offset);
	const char *(*note)(const void *reader);
	uint64_t (*own)(const void *reader);
	void (*free)(void *reader);
	bool at_end; /* the table stands at the end of the file */
};

struct table {
	const struct row *row;
	void *reader;
};

/* --- safetensors ----------------------------------------------------------------------------- */

static int header_open(int fd, uint64_t file_size, const struct source_cache *cache, void **ret_reader)
{
	struct safetensors *reader;
	int err = safetensors_open(fd, file_size, cache, &reader);

	if (!err)
		*ret_reader = reader;
	return err;
}

static int header_next(void *reader, struct file_tensor *ret_tensor)
{
	return safetensors_next(reader, ret_tensor);
}

static const char *header_error(const void *reader, uint64_t *ret_offset)
{
	return safetensors_error(reader, ret_offset);
}

static uint64_t header_own(const void *reader)
{
	return safetensors_own(reader);
}

static void header_free(void *reader)
{
	safetensors_free(reader);
}

/* --- GGUF ------------------------------------------------------------------------------------ */

static int infos_open(int fd, uint64_t file_size, const struct source_cache *cache, void **ret_reader)
{
	struct gguf *reader;
	int err = gguf_open(fd, file_size, cache, &reader);

	if (!err)
		*ret_reader = reader;
	return err;
}

static int infos_next(void *reader, struct file_tensor *ret_tensor)
{
	return gguf_next(reader, ret_tensor);
}

static const char *source_error(const struct source *source, uint64_t *ret_offset)
{
	*ret_offset = source->at;
	return source->error ? source->error : "";
}

static const char *infos_error(const void *reader, uint64_t *ret_offset)
{
	return source_error(gguf_source(reader), ret_offset);
}

static uint64_t infos_own(const void *reader)
{
	return gguf_source(reader)->own;
}

static void infos_free(void *reader)
{
	gguf_free(reader);
}

/* --- torch ----------------------------------------------------------------------------------- */

static int archive_open(int fd, uint64_t file_size, const struct source_cache *cache, void **ret_reader)
{
	struct torchzip *reader;
	int err = torchzip_open(fd, file_size, cache, &reader);

	if (!err)
		*ret_reader = reader;
	return err;
}

static int archive_next(void *reader, struct file_tensor *ret_tensor)
{
	return torchzip_next(reader, ret_tensor);
}

static const char *archive_error(const void *reader, uint64_t *ret_offset)
{
	return source_error(torchzip_source(reader), ret_offset);
}

static const char *archive_note(const void *reader)
{
	return torchzip_nameless(reader);
}

static uint64_t archive_own(const void *reader)
{
	return torchzip_own(reader);
}

static void archive_free(void *reader)
{
	torchzip_free(reader);
}

/* --- all ------------------------------------------------------------------------------------- */

static const struct row rows[] = {
	[ST_FILE_SAFETENSORS] = {header_open, header_next, header_error, NULL, header_own, header_free,
                                 false},
	[ST_FILE_GGUF] = {infos_open, infos_next, infos_error, NULL, infos_own, infos_free, false},
	[ST_FILE_TORCH] = {archive_open, archive_next, archive_error, archive_note, archive_own, archive_free,
                           true},
};

bool table_has(enum st_file_format format)
{
	return format < sizeof(rows) / sizeof(rows[0]) && rows[format].open;
}

void table_probe(enum st_file_format format, uint64_t file_size, uint64_t *ret_offset, uint64_t *ret_size)
{
	*ret_size = file_size < PROBE ? file_size : PROBE;
	*ret_offset = rows[format].at_end ? file_size - *ret_size : 0;
}

uint64_t table_head(enum st_file_format format, int fd, uint64_t file_size)
{
	return format == ST_FILE_SAFETENSORS ? safetensors_header(fd, file_size) : 0;
}

int table_open(enum st_file_format format, int fd, uint64_t file_size, const struct source_cache *cache,
               struct table **ret_table)
{
	struct table *table = malloc(sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	table->row = &rows[format];
	err = table->row->open(fd, file_size, cache, &table->reader);
	if (err)
		free(table);
	else
		*ret_table = table;
	return err;
}

int table_next(struct table *table, struct file_tensor *ret_tensor)
{
	return table->row->next(table->reader, ret_tensor);
}

const char *table_error(const struct table *table, uint64_t *ret_offset)
{
	return table->row->error(table->reader, ret_offset);
}

const char *table_note(const struct table *table)
{
	return table->row->note ? table->row->note(table->reader) : NULL;
}

uint64_t table_own(const struct table *table)
{
	return table->row->own(table->reader);
}

void table_free(struct table *table)
{
	if (!table)
		return;
	table->row->free(table->reader);
	free(table);
}
