/* SPDX-License-Identifier: Apache-2.0 */
/* How far a trace file of another recording is good, so that it can be finished. */
#ifndef SPARKTRACE_RECORDER_TRACESCAN_H
#define SPARKTRACE_RECORDER_TRACESCAN_H

#include <sparktrace/format.h>
#include <stdbool.h>

struct tracescan {
	uint64_t end;    /* of the last block that is whole, blocks counted from the front */
	uint64_t blocks; /* number of the next one */
	uint64_t records;
	bool trailer; /* the last record is the trailer: nothing is missing */
};

/* Reads the head. 0; -EINVAL: no trace of ours, or of another major version; read errors. */
int tracescan_head(int fd, struct st_file_head *ret_head);

/* Goes through the blocks up to the first that is damaged or cut. 0 or negative errno. */
int tracescan_blocks(int fd, struct tracescan *ret_scan);

#endif
