/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_REPORT_PROGRESS_H
#define SPARKTRACE_REPORT_PROGRESS_H

struct reader;

/*
 * While a long trace is read, a line on stderr says how far it is; nothing when stderr is no terminal. The
 * trace is read more than once, and the line then starts again. One at a time.
 */
void progress_begin(const struct reader *reader);
void progress_end(void);

#endif
