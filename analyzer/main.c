/* SPDX-License-Identifier: Apache-2.0 */
/* sparktrace-analyze: chooses the command. A new command is a row here and a file of its own. */
#include "check_output.h"
#include "commands.h"
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv);
	bool guarded; /* its output is for a build log, and does not care for itself there */
};

/* The first one is meant when the first word is no command's name. */
static const struct command commands[] = {
	{"report", "[options] run.zst", "what happened and what to do next (needs not be named)", cmd_report,
         true},
	{"diff", "[options] before after", "two runs side by side: what changed, and where", cmd_diff, true},
	{"check", "[options] run.zst...", "does loading need more memory than before, or than it may?",
         cmd_check, false},
	{"dump", "[--units] run.zst", "the trace as JSON lines", cmd_dump, false},
	{"pack", "scenario.jsonl -o run.zst", "JSON lines, or a scenario written by hand, as a trace",
         cmd_pack, false},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(*commands))

static int print_usage(FILE *out)
{
	fputs("usage: sparktrace-analyze [command] ...\n\n", out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-7s %-26s %s\n", commands[i].name, commands[i].arguments,
		        commands[i].summary);
	fputs("\n`sparktrace-analyze COMMAND --help` says more about one.\n"
	      "Exit status: 0 fits, within limits; 1 does not fit; 2 usage or unreadable input; 3 cannot "
	      "tell.\n",
	      out);
	if (out == stdout) {
		fputs("\nOptions of the report:\n\n", out);
		options_print(out);
	}
	return out == stdout ? COMMAND_OK : COMMAND_BAD;
}

/* GitHub's runner obeys what looks like a command in a log, and names in a trace may be made to. */
static int run_guarded(const struct command *command, int argc, char **argv)
{
	FILE *log = stdout;
	char *text = NULL;
	size_t size;
	int status;

	stdout = open_memstream(&text, &size);
	status = stdout ? command->run(argc, argv) : COMMAND_BAD;
	if (!stdout || fclose(stdout)) {
		stdout = log;
		free(text);
		return complain("standard output", strerror(ENOMEM));
	}
	stdout = log;
	github_guard(stdout, text, *text == '{');
	free(text);
	return fflush(stdout) || ferror(stdout) ? complain("standard output", strerror(EIO)) : status;
}

static int run(const struct command *command, int argc, char **argv)
{
	return command->guarded && github_runs() ? run_guarded(command, argc, argv)
	                                         : command->run(argc, argv);
}

/* A command that was misspelt is no trace. */
static int say_unknown(const char *name)
{
	fprintf(stderr, "sparktrace-analyze: there is no command or file of that name: %s (commands:", name);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fputs(")\n", stderr);
	return COMMAND_BAD;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2)
		return print_usage(stderr);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_usage(stdout);
	if (!strcmp(argv[1], "--version")) {
		puts("sparktrace-analyze " ST_VERSION);
		return COMMAND_OK;
	}
	command = find_command(argv[1]);
	if (command)
		return run(command, argc - 1, argv + 1);
	if (*argv[1] != '-' && access(argv[1], F_OK) && errno == ENOENT)
		return say_unknown(argv[1]);
	return run(&commands[0], argc, argv);
}
