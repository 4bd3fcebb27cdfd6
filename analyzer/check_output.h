/* SPDX-License-Identifier: Apache-2.0 */
/* Where a result goes: standard output, the files asked for, and GitHub when it runs there. */
#ifndef SPARKTRACE_CHECK_OUTPUT_H
#define SPARKTRACE_CHECK_OUTPUT_H

#include <analyzer/check.h>

/*
 * Everything: text or JSON to stdout; on GitHub (GITHUB_ACTIONS=true) annotations behind it, on stderr where stdout is
 * JSON, and the job summary behind what GITHUB_STEP_SUMMARY holds, while both stay within OUTPUT_SUMMARY_MAX;
 * --junit and --benchmark. 0, or a negative errno after a line on stderr that names what could not be written.
 */
int check_output(const struct check_result *result, const struct check_options *options);

/* GitHub refuses a summary above it as a whole. */
#define OUTPUT_SUMMARY_MAX (UINT64_C(1) << 20)

typedef int output_writer(FILE *out, const void *content);

/*
 * Replaces a file as a whole or leaves it: written beside it, then renamed; it keeps its mode. Links are followed; what
 * is no regular file (/dev/stdout) is written straight. 0 or a negative errno, also of the writer.
 */
int output_replace(const char *path, output_writer *write, const void *content);

/* GITHUB_ACTIONS=true: what is printed is a log of GitHub's runner. */
bool github_runs(void);

/*
 * GitHub's runner obeys a line that begins with "::command::", and "##[command]" anywhere in a line. Prints text so that
 * it obeys none of it; within JSON strings the value stays the same.
 */
void github_guard(FILE *out, const char *text, bool json);

#endif
