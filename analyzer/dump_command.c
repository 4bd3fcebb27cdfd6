/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `dump`. */
#include "commands.h"
#include "dump.h"

#include <getopt.h>
#include <inttypes.h>

static const char usage[] =
	"usage: sparktrace-analyze dump [--units] [--ring RING] run.zst\n"
	"\n"
	"Writes a trace, or a ring alone, as JSON lines, one a record; `pack` reads them back.\n"
	"\n"
	"  --units      sizes and times in words (\"1.5GiB\", \"12.5s\") where that is exact\n"
	"  --ring RING  take the ring of an unfinished trace from this file\n";

static void warn_problems(const char *path, const struct reader_summary *summary)
{
	size_t kept =
		summary->problem_count < READER_PROBLEMS_MAX ? summary->problem_count : READER_PROBLEMS_MAX;

	for (size_t i = 0; i < kept; i++)
		fprintf(stderr, "sparktrace-analyze: %s: %s %" PRIu64 ": %s\n", path,
		        summary->problems[i].in_ring ? "ring position" : "byte", summary->problems[i].offset,
		        summary->problems[i].text);
	if (summary->problem_count > kept)
		fprintf(stderr, "sparktrace-analyze: %s: %" PRIu64 " further problems\n", path,
		        summary->problem_count - kept);
}

static int dump_all(struct reader *reader, const char *path, bool units)
{
	int error = dump_trace(stdout, reader, units);

	warn_problems(path, reader_summary(reader));
	if (error)
		complain(path, reader_strerror(error));
	if (fflush(stdout) || ferror(stdout)) {
		perror("sparktrace-analyze: standard output");
		return COMMAND_BAD;
	}
	return error || reader_summary(reader)->damaged ? COMMAND_BAD : COMMAND_OK;
}

int cmd_dump(int argc, char **argv)
{
	static const struct option options[] = {
		{"units", no_argument, NULL, 'u'},
		{"ring", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *ring = NULL;
	bool units = false;
	struct reader *reader;
	int option, error, status;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'u') {
			units = true;
		} else if (option == 'r') {
			ring = optarg;
		} else {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? COMMAND_OK : COMMAND_BAD;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return COMMAND_BAD;
	}
	error = reader_open_with_ring(argv[optind], ring, &reader);
	if (error)
		return complain(argv[optind], reader_strerror(error));
	status = dump_all(reader, argv[optind], units);
	reader_free(reader);
	return status;
}
