/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from a trace, made safe for the files that `check` writes for other programs: control characters and bytes that
 * are not UTF-8 come out as \xNN, as the emitter does it, and what the format itself reads as a sign is written as the
 * format has it.
 */
#ifndef SPARKTRACE_ESCAPE_H
#define SPARKTRACE_ESCAPE_H

#include <stdio.h>

enum escape {
	ESCAPE_LOG,      /* a line of a log, as it is */
	ESCAPE_XML,      /* XML 1.0: text and attributes between double quotes; also HTML */
	ESCAPE_MARKDOWN, /* GitHub's: inline, in cells of tables too; not at the start of a line */
	ESCAPE_MESSAGE,  /* workflow commands of GitHub's runner: the message */
	ESCAPE_PROPERTY, /* the value of a property there */
	ESCAPE_JSON,     /* a string, between its quotes */
};

#define ESCAPE_MAX 1000 /* bytes of a text; what is longer ends with "..." */

void escape_text(FILE *out, enum escape how, const char *text);

#endif
