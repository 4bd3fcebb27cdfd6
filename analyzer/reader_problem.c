/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void problem_add(struct reader_summary *summary, uint64_t offset, bool in_ring, const char *format, ...)
{
	struct reader_problem *problem;
	va_list args;

	if (summary->problem_count++ >= READER_PROBLEMS_MAX)
		return;
	problem = &summary->problems[summary->problem_count - 1];
	problem->offset = offset;
	problem->in_ring = in_ring;
	va_start(args, format);
	vsnprintf(problem->text, sizeof(problem->text), format, args);
	va_end(args);
}

const char *reader_strerror(int error)
{
	switch (-error) {
	case EBADMSG:
		return "neither a sparktrace trace nor a ring";
	case EPROTONOSUPPORT:
		return "a trace of another major format version than this program reads";
	case EXDEV:
		return "the ring belongs to another process";
	case EAGAIN:
		return "the ring moves too fast to be copied";
	default:
		return strerror(-error);
	}
}
