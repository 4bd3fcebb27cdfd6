/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/reader_order.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX (1u << 20) /* bytes; looks that wait for longer are not put off any more */

void reader_order_init(struct reader_order *order, struct reader *reader)
{
	*order = (struct reader_order){.reader = reader};
	reader_rewind(reader);
}

void reader_order_release(struct reader_order *order)
{
	free(order->waiting);
	*order = (struct reader_order){0};
}

/* Scans of the shim stand where they belong: just before their mapping goes. */
static bool record_is_look(const struct st_record *record)
{
	return record->kind == ST_KIND_sample || record->kind == ST_KIND_cached ||
	       (record->kind == ST_KIND_anon && !record->seq);
}

bool kind_is_event(uint16_t kind)
{
	switch (kind) {
	case ST_KIND_block:
	case ST_KIND_process:
	case ST_KIND_info:
	case ST_KIND_lost:
	case ST_KIND_coverage:
	case ST_KIND_file:
	case ST_KIND_stack:
	case ST_KIND_module:
	case ST_KIND_symbol:
	case ST_KIND_thread:
	case ST_KIND_tensor:
	case ST_KIND_package:
	case ST_KIND_code:
	case ST_KIND_frames:
	case ST_KIND_index:
	case ST_KIND_anon:
		return false;
	default:
		return true;
	}
}

static int look_put_off(struct reader_order *order, const struct st_record *record)
{
	size_t bytes = record->words * sizeof(uint64_t), used = order->end - order->begin;

	if (order->end + bytes > order->room) {
		size_t room = used + bytes > order->room / 2 ? order->room * 2 + 65536 + bytes : order->room;
		unsigned char *waiting = malloc(room);

		if (!waiting)
			return -ENOMEM;
		if (used)
			memcpy(waiting, order->waiting + order->begin, used);
		free(order->waiting);
		order->waiting = waiting;
		order->room = room;
		order->begin = 0;
		order->end = used;
	}
	memcpy(order->waiting + order->end, record, bytes);
	order->end += bytes;
	return 0;
}

static const struct st_record *look_first(const struct reader_order *order)
{
	return order->begin < order->end ? (const struct st_record *)(order->waiting + order->begin) : NULL;
}

/* Is it the turn of the first look that waits? */
static bool look_is_due(const struct reader_order *order)
{
	const struct st_record *look = look_first(order);

	if (!look)
		return false;
	if (order->over || order->end - order->begin > WAITING_MAX)
		return true;
	return order->ahead && kind_is_event(order->ahead->kind) && order->ahead->time >= look->time;
}

/* Reads on until there is a record that is no look, or the end. */
static int read_ahead(struct reader_order *order)
{
	while (!order->ahead && !order->over) {
		const struct st_record *record;
		int more = reader_next(order->reader, &record);

		if (more <= 0) {
			order->over = true;
			order->result = more;
		} else if (!record_is_look(record)) {
			order->ahead = record;
		} else {
			more = look_put_off(order, record);
			if (more)
				return more;
			if (order->end - order->begin > WAITING_MAX)
				return 0;
		}
	}
	return 0;
}

int reader_order_next(struct reader_order *order, const struct st_record **ret_record)
{
	int error = read_ahead(order);

	if (error)
		return error;
	if (look_is_due(order)) {
		*ret_record = look_first(order);
		order->begin += (*ret_record)->words * sizeof(uint64_t);
		return 1;
	}
	if (!order->ahead)
		return order->result;
	*ret_record = order->ahead;
	order->ahead = NULL;
	return 1;
}
