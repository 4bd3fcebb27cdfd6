/* SPDX-License-Identifier: Apache-2.0 */
/* Records as the reader returns them, for the tests of the analyzer's inside. Sizes in MiB where named so. */
#ifndef SPARKTRACE_TEST_RECORDS_H
#define SPARKTRACE_TEST_RECORDS_H

#include <sparktrace/format.h>
#include <string.h>

#define MIB UINT64_C(1048576)
#define GIB (UINT64_C(1024) * MIB)

#define PROT_R    1u
#define PROT_RW   3u
#define MAP_SHARE 1u
#define MAP_PRIV  2u
#define MAP_FIX   0x10u

/* Everything that is not said about the next record. */
static struct st_record record_now = {.thread = 1};

/* A complete record of a kind, for the length of the enclosing block. */
#define RECORD(kind_, ...)                                                          \
	(&((struct st_ev_##kind_){.r = {.seq = record_seq(),                        \
	                                .time = record_now.time,                    \
	                                .thread = record_now.thread,                \
	                                .kind = ST_KIND_##kind_,                    \
	                                .words = sizeof(struct st_ev_##kind_) / 8}, \
	                          __VA_ARGS__})                                     \
	          .r)

static inline uint64_t record_seq(void)
{
	static uint64_t position;

	position += 128;
	return ST_SEQ_MAGIC | position;
}

/* The same with bytes or words behind it. */
static inline const struct st_record *record_tail(const struct st_record *record, const void *tail,
                                                  size_t bytes)
{
	static union {
		struct st_record record;
		unsigned char bytes[8192];
	} all;
	size_t size = (size_t)record->words * 8, padded = (bytes + 7) / 8 * 8;

	memset(all.bytes + size, 0, padded);
	memcpy(all.bytes, record, size);
	if (bytes)
		memcpy(all.bytes + size, tail, bytes);
	all.record.words = (uint16_t)((size + padded) / 8);
	return &all.record;
}

#define RECORD_FILE(id_, path_, size_)                                                                       \
	record_tail(RECORD(file, .id = (id_), .ino = (id_), .size = (size_), .format = ST_FILE_SAFETENSORS), \
	            path_, strlen(path_))
#define RECORD_TENSOR(file_, name_, offset_, size_)                                       \
	record_tail(RECORD(tensor, .file = (file_), .offset = (offset_), .size = (size_), \
	                   .dtype = ST_DTYPE_BF16, .elements = (size_) / 2),              \
	            name_, strlen(name_))

#endif
