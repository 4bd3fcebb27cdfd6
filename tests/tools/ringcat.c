/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the committed records of a ring, one a line: position, thread, kind, name=value... Written apart from
 * the analyzer's reader, so that the shim can be tested without it.
 *
 *	ringcat RING
 */
#include <sparktrace/ring.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct field {
	uint16_t kind;
	const char *name;
} fields[] = {
#define FIELDS_OF(number, name, tail, meaning) {number, NULL}, ST_FIELDS_##name(FIELD)
#define FIELD(name, type, meaning)             {0, #name},
	ST_EVENTS(FIELDS_OF)
#undef FIELDS_OF
#undef FIELD
};

static const struct kind {
	uint16_t number;
	const char *name, *tail;
} kinds[] = {
#define KIND(number, name, tail, meaning) {number, #name, #tail},
	ST_EVENTS(KIND)
#undef KIND
};

static const struct kind *kind_find(uint16_t number)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].number == number)
			return &kinds[i];
	return NULL;
}

/* Rows of a kind stand behind the row that has its number. */
static const struct field *field_first(uint16_t number)
{
	const struct field *field = fields;

	while (field->kind != number)
		field++;
	return field + 1;
}

static void print_record(const struct st_record *record, uint64_t position)
{
	const uint64_t *word = (const uint64_t *)(record + 1),
		       *end = (const uint64_t *)record + record->words;
	const struct kind *kind = kind_find(record->kind);
	const struct field *field, *last = fields + sizeof(fields) / sizeof(fields[0]);

	if (!kind) {
		printf("%" PRIu64 " %u unknown %u\n", position, record->thread, record->kind);
		return;
	}
	printf("%" PRIu64 " %u %s", position, record->thread, kind->name);
	for (field = field_first(record->kind); field < last && field->name && word < end; field++)
		printf(" %s=%" PRIu64, field->name, *word++);
	if (strcmp(kind->tail, "TEXT") == 0)
		printf(" text=%.*s", (int)((end - word) * 8), (const char *)word);
	else
		printf(" words=%td", end - word);
	putchar('\n');
}

/* The step of a consumer behind the program's death, by ring.h. */
static uint64_t step(struct st_ring *ring, uint64_t position)
{
	uint64_t left = ring->size - position % ring->size;
	const struct st_record *record = (const void *)(st_ring_data(ring) + position % ring->size);

	if (left < sizeof(*record))
		return position + left;
	if (record->seq != (ST_SEQ_MAGIC | position))
		return position + 8;
	if (record->kind == ST_RING_PAD)
		return position + left;
	print_record(record, position);
	return position + (uint64_t)record->words * 8;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	struct stat status;
	struct st_ring *ring;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size < (off_t)ST_RING_DATA)
		return 2;
	ring = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED || memcmp(ring->magic, ST_RING_MAGIC, 8) != 0)
		return 2;
	printf("ring size=%" PRIu64 " head=%" PRIu64 " tail=%" PRIu64 " lost=%" PRIu64 "\n", ring->size,
	       ring->head, ring->tail, ring->lost_count);
	for (uint64_t at = ring->head > ring->size ? ring->head - ring->size : 0; at < ring->head;)
		at = step(ring, at);
	return 0;
}
