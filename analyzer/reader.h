/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace: checks and decompresses blocks, steps over damage, and adds what a run without
 * a trailer has left in its ring. Input is untrusted; memory is bounded (some 25 MiB, plus the records in
 * the ring).
 *
 *	struct reader *reader;
 *	const struct st_record *record;
 *	int error = reader_open("run.zst", &reader);
 *	while ((error = reader_next(reader, &record)) > 0)
 *		if (record->kind == ST_KIND_map)
 *			note_map((const struct st_ev_map *)record);
 *	reader_free(reader);
 */
#ifndef SPARKTRACE_READER_H
#define SPARKTRACE_READER_H

#include <sparktrace/format.h>
#include <stdbool.h>

struct reader;

#define READER_PROBLEMS_MAX 32 /* kept in words; further ones are only counted */

/* Something wrong with the input. */
struct reader_problem {
	uint64_t offset; /* bytes from the start of the file; in the ring, the position */
	bool in_ring;
	char text[128];
};

/* What became of the ring. */
enum reader_ring {
	READER_RING_NONE,  /* the head names none, or the trace is whole and needs none */
	READER_RING_GONE,  /* named, but not there or not readable */
	READER_RING_OTHER, /* there, but of another process */
	READER_RING_READ,  /* its records follow those of the file */
};

/* Complete after reader_next() has returned 0; until then, as far as it has come. */
struct reader_summary {
	struct st_file_head head; /* made from the ring when that is read alone; zeros when damaged */
	bool has_trailer;         /* the recorder closed the file */
	bool alive;               /* the program still runs: more will come */
	bool cut;                 /* the file ends without trailer */
	bool damaged;             /* something in it could not be read, see problems */
	enum reader_ring ring;
	uint64_t bytes;            /* of the file */
	uint64_t blocks;           /* good ones */
	uint64_t damaged_blocks;   /* places where a block was unreadable */
	uint64_t missing_blocks;   /* numbers that never came, before the last good block */
	uint64_t records;          /* returned */
	uint64_t repeated;         /* dropped: their seq had been seen */
	uint64_t torn;             /* never committed records in the ring of a dead program */
	uint64_t ring_records;     /* of `records`, those from the ring */
	uint64_t lost, lost_bytes; /* events that found no room in the ring */
	uint64_t last_synced; /* CLOCK_MONOTONIC, ns, of the last fdatasync known to be complete; 0: none */
	uint64_t last_time;   /* largest time of any record, ns */
	uint64_t problem_count;
	struct reader_problem problems[READER_PROBLEMS_MAX];
};

/*
 * Opens a trace, or a ring alone (told by its magic; it has neither `block` nor `process` records). The ring
 * that a trace's head names is read too when it is there, belongs to the same process, and the trace has no
 * trailer. -ENOENT, -EACCES ... from the system; -EBADMSG: neither trace nor ring; -EPROTONOSUPPORT: a larger
 * major version; -ENOMEM. reader_strerror() says it in words.
 */
int reader_open(const char *path, struct reader **ret_reader);
/* The same, but with the ring at `ring`; -EXDEV when it belongs to another process. */
int reader_open_with_ring(const char *path, const char *ring, struct reader **ret_reader);
void reader_free(struct reader *reader);

/* A sentence for a negative result of the functions here. */
const char *reader_strerror(int error);

/*
 * 1 and the next record, 0 at the end, negative errno when reading itself fails (-EIO). Damage is no error:
 * it is in the summary. The record is valid until the next call; it has all fields of this version (so it
 * may be cast to struct st_ev_<kind>), and perhaps more. Kinds that event.h does not know come too.
 */
int reader_next(struct reader *reader, const struct st_record **ret_record);
/* The record last returned, as it stands in the file (fields may be missing at its end). */
const struct st_record *reader_raw(const struct reader *reader);
/* Back to the first record; the input is what it was at open, and no file is opened again. Returns 0. */
int reader_rewind(struct reader *reader);

const struct reader_summary *reader_summary(const struct reader *reader);
/* For a progress line: bytes of the file consumed, of *ret_total. */
uint64_t reader_progress(const struct reader *reader, uint64_t *ret_total);

#endif
