/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pack`, and its output file: there when it is whole, else not. */
#include "commands.h"
#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] = "usage: sparktrace-analyze pack scenario.jsonl -o run.zst\n"
			    "\n"
			    "Makes a trace of JSON lines: those of `dump`, or a scenario written by hand. "
			    "`-` is standard input or\n"
			    "output. Lines that begin with # are comments.\n"
			    "\n"
			    "  -o, --output FILE  the trace; an existing one is replaced\n";

/* Where the trace is written: beside `path` until it is whole, or straight to what is no regular file. */
struct output {
	const char *path;
	char *part; /* NULL: straight */
	int fd;
};

static int output_open(struct output *output, const char *path)
{
	struct stat st;

	*output = (struct output){.path = path, .fd = -1};
	if (!strcmp(path, "-")) {
		output->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		output->fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		if (asprintf(&output->part, "%s.%d.part", path, (int)getpid()) < 0) {
			output->part = NULL;
			return -ENOMEM;
		}
		output->fd = open(output->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	return output->fd < 0 ? -errno : 0;
}

/* Puts the whole trace in its place, or takes back what there is of it. */
static int output_finish(struct output *output, bool whole)
{
	int error = 0;

	if (output->part && whole && rename(output->part, output->path))
		error = -errno;
	if (output->part && (error || !whole))
		unlink(output->part);
	free(output->part);
	output->part = NULL;
	return error;
}

static int pack_to(FILE *in, const char *name, const char *path)
{
	char text[PACK_ERROR_MAX];
	struct output output;
	int error = output_open(&output, path);

	if (error) {
		free(output.part);
		return complain(path, strerror(-error));
	}
	error = pack_stream(in, output.fd, text);
	if (error) {
		output_finish(&output, false);
		return complain(name, text);
	}
	error = output_finish(&output, true);
	return error ? complain(path, strerror(-error)) : COMMAND_OK;
}

int cmd_pack(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *path = NULL;
	FILE *in = stdin;
	int option, status;

	while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (option != 'o') {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? COMMAND_OK : COMMAND_BAD;
		}
		path = optarg;
	}
	if (argc - optind != 1 || !path) {
		fputs(usage, stderr);
		return COMMAND_BAD;
	}
	if (strcmp(argv[optind], "-"))
		in = fopen(argv[optind], "re");
	if (!in)
		return complain(argv[optind], strerror(errno));
	status = pack_to(in, argv[optind], path);
	if (in != stdin)
		fclose(in);
	return status;
}
