/* SPDX-License-Identifier: Apache-2.0 */
/* sparktrace-analyze: chooses the command. A new command is a row here and a file of its own. */
#include "commands.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

struct command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv);
};

/* The first one is meant when the first word is no command's name. */
static const struct command commands[] = {
	{"report", "[options] run.zst", "what happened and what to do next (needs not be named)", cmd_report},
	{"diff", "[options] before after", "two runs side by side: what changed, and where", cmd_diff},
	{"check", "[options] run.zst...", "does loading need more memory than before, or than it may?",
         cmd_check},
	{"dump", "[--units] run.zst", "the trace as JSON lines", cmd_dump},
	{"pack", "scenario.jsonl -o run.zst", "JSON lines, or a scenario written by hand, as a trace",
         cmd_pack},
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
		return command->run(argc - 1, argv + 1);
	return commands[0].run(argc, argv);
}
