/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the passes of the analyzer take, an event each: replay TRACE
 *
 *	read		frames, checks, records: nothing is done with them
 *	replay		read, and what lives where (analyzer/replay.h)
 *	report		the whole model: a scan, and two replays with residency, phases, peaks
 *
 * Prints the least of three rounds, in ns an event: CPU time of all threads, and wall time, which is less where another
 * core is free to decompress ahead.
 */
#include "analyzer/model.h"
#include "analyzer/reader.h"
#include "analyzer/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 3

static void die(const char *what, int error)
{
	fprintf(stderr, "replay: %s: %s\n", what, strerror(-error));
	exit(2);
}

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t pass_read(struct reader *reader)
{
	const struct st_record *record;
	uint64_t count = 0;
	int more;

	while ((more = reader_next(reader, &record)) > 0)
		count++;
	if (more)
		die("read", more);
	return count;
}

/* Files are defined before they are mapped, so the catalog can grow along the way. */
static uint64_t pass_replay(struct reader *reader)
{
	const struct st_record *record;
	struct catalog catalog = {0};
	struct replay replay;
	uint64_t count = 0;
	int more;

	replay_init(&replay, &catalog, NULL);
	while ((more = reader_next(reader, &record)) > 0) {
		more = catalog_record(&catalog, record);
		if (!more)
			more = replay_record(&replay, record);
		if (more)
			break;
		count++;
	}
	if (more)
		die("replay", more);
	replay_finish(&replay);
	replay_release(&replay);
	catalog_release(&catalog);
	return count;
}

static uint64_t pass_report(struct reader *reader)
{
	struct model_options options = {0};
	struct model *model;
	uint64_t count;
	int error = model_build(reader, &options, &model);

	if (error)
		die("report", error);
	count = model->records;
	model_free(model);
	return count;
}

/* Opens, passes through all, closes. Returns the number of records. */
static uint64_t round_once(const char *path, uint64_t (*pass)(struct reader *))
{
	struct reader *reader;
	uint64_t count;
	int error = reader_open(path, &reader);

	if (error)
		die(path, error);
	count = pass(reader);
	reader_free(reader);
	return count;
}

static void measure(const char *name, const char *path, uint64_t (*pass)(struct reader *))
{
	double cpu = 1e30, wall = 1e30;

	for (int i = 0; i < ROUNDS; i++) {
		double cpu_then = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall_then = now_ns(CLOCK_MONOTONIC), took;
		double count = (double)round_once(path, pass);

		took = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_then) / count;
		cpu = took < cpu ? took : cpu;
		took = (now_ns(CLOCK_MONOTONIC) - wall_then) / count;
		wall = took < wall ? took : wall;
	}
	printf("%s_cpu_ns=%.2f %s_wall_ns=%.2f\n", name, cpu, name, wall);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: replay TRACE\n");
		return 2;
	}
	measure("read", argv[1], pass_read);
	measure("replay", argv[1], pass_replay);
	measure("report", argv[1], pass_report);
	return 0;
}
