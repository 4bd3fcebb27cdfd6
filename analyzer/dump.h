/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as JSON lines, one a record, from which `pack` makes the same records again, byte for byte:
 *
 *	{"event":"map","seq":N,"time":ns,"thread":tid, <the fields of its kind>, <its tail>}
 *
 *	seq	position in the ring; absent for the recorder's own records (0); "seq_raw", whole, in
 *		place of it when it is neither
 *	fields	as format.h says. Numbers of 2^63 and more as "0x..", a value without a word as number,
 *		flags as "read|write|0x100" or "none", unknown as null
 *	tail	"text": string, or "text_hex": its bytes, where they are not UTF-8
 *		"words": list of "0x.."; "more": the same, of fields that this version does not know
 *
 * A record of an unknown kind, and one that its fields do not fully tell (too short, odd padding), is
 * {"event":"kind 250", "seq", "time", "thread", "raw": the bytes behind its head in hexadecimal}.
 *
 * The first line is the file's head, {"event":"head",...}; it tells pack to make nothing up.
 */
#ifndef SPARKTRACE_DUMP_H
#define SPARKTRACE_DUMP_H

#include "reader.h"

#include <stdio.h>

/*
 * Writes head and records of a trace that is at its beginning. `units`: sizes and times in words ("1.5GiB")
 * where that is exact. 0, or the reader's error; errors of `out` stay there (ferror).
 */
int dump_trace(FILE *out, struct reader *reader, bool units);

#endif
