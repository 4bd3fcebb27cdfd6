/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of sparktrace-analyze, one file each: main.c's table names them. A command gets its own
 * name as argv[0] and returns the exit status (spec 01): 0 fits, 1 does not, 2 usage or unreadable input,
 * 3 cannot tell.
 */
#ifndef SPARKTRACE_COMMANDS_H
#define SPARKTRACE_COMMANDS_H

enum command_status {
	COMMAND_OK = 0,
	COMMAND_OVER = 1,
	COMMAND_BAD = 2,
	COMMAND_CANNOT_TELL = 3,
};

/* A line on stderr, "sparktrace-analyze: NAME: WORDS". Returns COMMAND_BAD. */
int complain(const char *name, const char *words);

int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_pack(int argc, char **argv);

#endif
