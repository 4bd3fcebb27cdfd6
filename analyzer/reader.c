/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"
#include "event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_WORDS (sizeof(struct st_record) / 8)

/* Room for a record of any kind with all its fields and no tail. */
union any_event {
#define E(number, name, tail, meaning) struct st_ev_##name e_##name;
	ST_EVENTS(E)
#undef E
	uint64_t words[1];
};

enum source {
	SOURCE_FILE,
	SOURCE_RING,
	SOURCE_END,
};

struct reader {
	enum source source;
	const uint64_t *at, *end, *begin; /* of the block, or of the ring's records */
	uint64_t last_seq;
	const struct st_record *raw;
	bool after_trailer; /* a record followed it, and that was said */
	union any_event complete;

	bool has_file, has_ring;
	enum reader_ring missing_ring; /* why there is none */
	struct frames frames;
	struct ring_copy ring;
	struct reader_summary fresh, summary; /* `fresh` is where each pass begins */
};

/* --- open ---------------------------------------------------------------------------------------- */

static int open_input(const char *path, int *ret_fd)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		error = -errno;
	else if (S_ISDIR(st.st_mode))
		error = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		error = -EBADMSG;
	if (error) {
		close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

static bool is_ring(int fd)
{
	char magic[8];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "SPARKRNG", sizeof(magic));
}

/* A file whose head is damaged is still a trace when it has a good block early on. */
static int probe_headless(struct frames *frames)
{
	struct reader_summary *scratch = calloc(1, sizeof(*scratch));
	size_t words;
	int got;

	if (!scratch)
		return -ENOMEM;
	if (frames->search_end > 2 * FRAME_MAX)
		frames->search_end = 2 * FRAME_MAX;
	got = frames_next(frames, scratch, &words);
	frames_rewind(frames);
	free(scratch);
	return got > 0 ? 0 : got ? got : -EBADMSG;
}

/* The ring that the head names, or the one told. Only an explicit one has to be there. */
static int add_ring(struct reader *reader, const char *path)
{
	const struct st_file_head *head = &reader->fresh.head;
	bool asked = path;
	int error;

	if (!path)
		path = head->ring;
	if (!*path)
		return 0;
	error = ring_copy_init(&reader->ring, path, head->magic[0] ? head : NULL);
	reader->has_ring = !error;
	if (!error || asked || error == -ENOMEM)
		return error;
	reader->missing_ring = error == -EXDEV ? READER_RING_OTHER : READER_RING_GONE;
	return 0;
}

/*
 * The ring is copied before frames_init takes the file's size: what the recorder moves in between is then in
 * the file as well, and dropped as repeated, where the other order would lose it.
 */
static int open_trace(struct reader *reader, int fd, const char *ring)
{
	int head = frames_head(fd, &reader->fresh.head);
	int error = head == -EBADMSG ? 0 : head;

	if (!error)
		error = add_ring(reader, ring);
	if (!error)
		error = frames_init(&reader->frames, fd);
	if (error) {
		close(fd);
		return error;
	}
	reader->has_file = true;
	reader->fresh.bytes = reader->frames.size;
	if (!head)
		return 0;
	reader->fresh.damaged = true;
	problem_add(&reader->fresh, 0, false, "the head is damaged: process and ring are unknown");
	return probe_headless(&reader->frames);
}

static int open_any(struct reader *reader, const char *path, const char *ring)
{
	int fd = -1, error = open_input(path, &fd);

	if (error)
		return error;
	if (!is_ring(fd))
		return open_trace(reader, fd, ring);
	close(fd);
	return ring ? -EBADMSG : add_ring(reader, path);
}

/* A ring alone stands for a file without blocks. */
int reader_open_with_ring(const char *path, const char *ring, struct reader **ret_reader)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return -ENOMEM;
	error = open_any(reader, path, ring);
	if (error) {
		reader_free(reader);
		return error;
	}
	if (!reader->has_file)
		reader->fresh.head = reader->ring.head;
	reader->fresh.alive = reader->has_ring && reader->ring.alive;
	reader_rewind(reader);
	*ret_reader = reader;
	return 0;
}

int reader_open(const char *path, struct reader **ret_reader)
{
	return reader_open_with_ring(path, NULL, ret_reader);
}

void reader_free(struct reader *reader)
{
	if (!reader)
		return;
	if (reader->has_file)
		frames_release(&reader->frames);
	if (reader->has_ring)
		ring_copy_release(&reader->ring);
	free(reader);
}

static void begin_words(struct reader *reader, const uint64_t *words, size_t count)
{
	reader->begin = reader->at = words;
	reader->end = count ? words + count : words;
}

int reader_rewind(struct reader *reader)
{
	reader->source = SOURCE_FILE;
	begin_words(reader, NULL, 0);
	reader->raw = NULL;
	reader->last_seq = 0;
	reader->after_trailer = false;
	reader->summary = reader->fresh;
	if (reader->has_file)
		frames_rewind(&reader->frames);
	return 0;
}

/* --- records ------------------------------------------------------------------------------------- */

/* The next block of the file. */
static int more_from_file(struct reader *reader)
{
	size_t words;
	int got = reader->has_file ? frames_next(&reader->frames, &reader->summary, &words) : 0;

	if (got > 0) {
		reader->summary.blocks++;
		begin_words(reader, reader->frames.block, words);
	}
	return got;
}

/* Behind the last block: the ring, where the recorder did not come to its end. */
static int more_from_ring(struct reader *reader)
{
	struct reader_summary *summary = &reader->summary;

	if (summary->has_trailer)
		return 0;
	summary->cut = reader->has_file;
	summary->ring = reader->has_ring ? READER_RING_READ : reader->missing_ring;
	if (!reader->has_ring)
		return 0;
	summary->torn = reader->ring.torn;
	if (reader->ring.lost > summary->lost) {
		summary->lost = reader->ring.lost;
		summary->lost_bytes = reader->ring.lost_bytes;
	}
	begin_words(reader, reader->ring.words, reader->ring.count);
	return 1;
}

static int more_words(struct reader *reader)
{
	int got = 0;

	while (!got && reader->source != SOURCE_END) {
		got = reader->source == SOURCE_FILE ? more_from_file(reader) : more_from_ring(reader);
		if (!got || reader->source == SOURCE_RING)
			reader->source++;
	}
	return got;
}

/* The record at hand has an impossible length: the rest of its block cannot be told apart. */
static void give_up_block(struct reader *reader)
{
	bool in_ring = reader->source != SOURCE_FILE;

	reader->summary.damaged = true;
	problem_add(&reader->summary, in_ring ? reader->ring.position : reader->frames.block_offset, in_ring,
	            "a record of %u words at byte %zu of this %s: its last %zu bytes are unreadable",
	            ((const struct st_record *)reader->at)->words, (size_t)(reader->at - reader->begin) * 8,
	            in_ring ? "ring" : "block", (size_t)(reader->end - reader->at) * 8);
	if (!in_ring)
		frames_blame(&reader->frames);
	reader->at = reader->end;
}

/* What the summary learns from single records. */
static void note_special(struct reader *reader, const struct st_record *record)
{
	struct reader_summary *summary = &reader->summary;

	if (record->kind == ST_KIND_block) {
		summary->last_synced = ((const struct st_ev_block *)record)->synced;
	} else if (record->kind == ST_KIND_lost) {
		summary->lost += ((const struct st_ev_lost *)record)->count;
		summary->lost_bytes += ((const struct st_ev_lost *)record)->bytes;
	} else if (record->kind == ST_KIND_trailer) {
		uint64_t lost = ((const struct st_ev_trailer *)record)->lost;

		if (lost > summary->lost)
			summary->lost = lost;
	}
}

static void note_record(struct reader *reader, const struct st_record *record)
{
	struct reader_summary *summary = &reader->summary;

	if (summary->has_trailer && !reader->after_trailer) {
		reader->after_trailer = true;
		summary->damaged = true;
		problem_add(summary, reader->frames.block_offset, false, "records follow the trailer");
	}
	summary->has_trailer = record->kind == ST_KIND_trailer;
	summary->records++;
	summary->ring_records += reader->source != SOURCE_FILE;
	if (record->time > summary->last_time)
		summary->last_time = record->time;
	if (record->kind <= ST_KIND_lost)
		note_special(reader, record);
}

/* A record with all fields of its kind: itself, or a copy in which the missing ones have their defaults. */
static const struct st_record *complete_record(struct reader *reader, const struct st_record *record)
{
	const struct event_kind *kind = event_kind_find(record->kind);
	uint64_t *words = reader->complete.words;

	if (!kind || record->words >= kind->words)
		return record;
	memcpy(words, record, (size_t)record->words * 8);
	for (size_t i = record->words; i < kind->words; i++)
		words[i] = kind->fields[i - RECORD_WORDS].type->missing;
	((struct st_record *)words)->words = kind->words;
	return (const struct st_record *)words;
}

/* A record whose seq is not above the last one was written twice. */
static bool repeated(struct reader *reader, const struct st_record *record)
{
	if ((record->seq & ~ST_SEQ_MASK) != ST_SEQ_MAGIC)
		return false;
	if (record->seq <= reader->last_seq) {
		reader->summary.repeated++;
		return true;
	}
	reader->last_seq = record->seq;
	return false;
}

int reader_next(struct reader *reader, const struct st_record **ret_record)
{
	for (;;) {
		const struct st_record *record = (const struct st_record *)reader->at;
		size_t left = (size_t)(reader->end - reader->at);

		if (!left) {
			int got = more_words(reader);

			if (got <= 0)
				return got;
			continue;
		}
		if (left < RECORD_WORDS || record->words < RECORD_WORDS || record->words > left) {
			give_up_block(reader);
			continue;
		}
		reader->at += record->words;
		if (repeated(reader, record))
			continue;
		reader->raw = record;
		*ret_record = complete_record(reader, record);
		note_record(reader, *ret_record);
		return 1;
	}
}

const struct st_record *reader_raw(const struct reader *reader)
{
	return reader->raw;
}

const struct reader_summary *reader_summary(const struct reader *reader)
{
	return &reader->summary;
}

uint64_t reader_progress(const struct reader *reader, uint64_t *ret_total)
{
	*ret_total = reader->fresh.bytes;
	return reader->has_file ? reader->frames.offset : 0;
}
