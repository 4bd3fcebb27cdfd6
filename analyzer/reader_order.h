/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in the order of what they tell of. The recorder looks at the pool while events still wait in the ring,
 * so in the file a sample may stand before events that it has already seen: it is put behind them, by time. The
 * events among themselves are in order already.
 */
#ifndef SPARKTRACE_READER_ORDER_H
#define SPARKTRACE_READER_ORDER_H

#include <analyzer/reader.h>
#include <stddef.h>

struct reader_order {
	struct reader *reader;
	const struct st_record *ahead; /* read and not yet returned */
	unsigned char *waiting;        /* looks at the pool, whole records */
	size_t begin, end, room;       /* bytes of them */
	int result;                    /* of the last read, once it is not 1 */
	bool over;
};

/* Begins at the first record; the reader belongs to the caller. */
void reader_order_init(struct reader_order *order, struct reader *reader);
void reader_order_release(struct reader_order *order);

/* As reader_next(); also -ENOMEM. */
int reader_order_next(struct reader_order *order, const struct st_record **ret_record);
/* Made by the program itself: its time says how far the program had come. */
bool kind_is_event(uint16_t kind);

#endif
