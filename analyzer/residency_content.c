/* SPDX-License-Identifier: Apache-2.0 */
/* Residency, what memory holds: weight bytes in buffers and on the device, followed through reads and copies. */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint64_t word_file(uint32_t file)
{
	return (uint64_t)file + 1;
}

/* Device content comes (sign 1) or goes. */
static void device_content(struct residency *residency, const struct span *piece, int sign)
{
	uint32_t file = content_file(piece->a);
	uint64_t bytes = piece->hi - piece->lo;

	if (!file && piece->a & CONTENT_SHARED) {
		shared_live(residency, piece->b, (uint64_t)sign * bytes);
	} else if (!file) {
		kept_change(residency, &residency->total)->unknown += (uint64_t)sign * bytes;
	} else if (piece->a & CONTENT_VAGUE) {
		kept_change(residency, &residency->weights[file - 1].kept)->vague += (uint64_t)sign * bytes;
		kept_change(residency, &residency->total)->vague += (uint64_t)sign * bytes;
		double_update(residency, &residency->weights[file - 1],
		              residency->catalog->files[file - 1].size);
	} else if (sign > 0) {
		weight_device_add(residency, file - 1, piece->lo + piece->b, piece->hi + piece->b);
	} else {
		weight_device_remove(residency, file - 1, piece->lo + piece->b, piece->hi + piece->b);
	}
}

static void content_removed(void *context, const struct span *piece)
{
	struct residency *residency = context;

	if (piece->a & CONTENT_DEVICE)
		device_content(residency, piece, -1);
	else
		held_content(residency, piece, -1);
}

void content_gone(struct residency *residency, uint64_t lo, uint64_t hi)
{
	if (livemap_touches(&residency->content, lo, hi))
		residency_note(residency,
		               livemap_cut(&residency->content, lo, hi, content_removed, residency));
}

static void content_put(struct residency *residency, const struct span *piece)
{
	int error = livemap_insert(&residency->content, piece);

	residency_note(residency, error);
	if (error)
		return;
	if (piece->a & CONTENT_DEVICE)
		device_content(residency, piece, 1);
	else
		held_content(residency, piece, 1);
}

void content_carry(struct residency *residency, uint64_t lo, uint64_t hi, uint64_t to)
{
	uint64_t shift = to - lo;
	struct span piece;

	while (lo < hi && livemap_next(&residency->content, lo, &piece) && piece.lo < hi) {
		piece.lo = bytes_max(lo, piece.lo);
		piece.hi = lo = bytes_min(hi, piece.hi);
		content_gone(residency, piece.lo, piece.hi);
		if (piece.a & CONTENT_DEVICE)
			continue;
		piece.lo += shift;
		piece.hi += shift;
		piece.a = content_file(piece.a) | held_read_word(residency, piece.lo);
		piece.b -= shift;
		content_put(residency, &piece);
	}
}

/* Is there device memory, or does the entry point say so? */
static bool address_is_device(const struct residency *residency, uint64_t address)
{
	struct span span;

	return livemap_find(&residency->replay.blocks, address, &span) ||
	       livemap_find(&residency->replay.ranges, address, &span);
}

/* Bytes of a read before the first tensor: what a file says about its weights is none of them. */
static uint64_t header_bytes(const struct residency *residency, const struct st_ev_read *record,
                             uint32_t file)
{
	const struct catalog *catalog = residency->catalog;
	const struct catalog_file *known = &catalog->files[file];

	if (!known->tensor_count)
		return 0;
	return bytes_min(record->size,
	                 bytes_sub(catalog->tensors[known->tensor_first].offset, record->offset));
}

/* Weight bytes were read to [addr, addr + size); the device itself may be the destination. */
void content_read(struct residency *residency, const struct st_ev_read *record, uint32_t file)
{
	struct weight *weight = weight_get(residency, file);
	struct span piece = {record->addr, record->addr + record->size, word_file(file),
	                     record->offset - record->addr};

	if (!weight || !record->size || record->offset > UINT64_MAX - record->size)
		return;
	residency->signs |= SIGN_BYTES;
	if (record->size > header_bytes(residency, record, file))
		residency->signs |= SIGN_TENSOR;
	weight->read_bytes += record->size;
	touch_of(residency, file, record->stack)->read += record->size;
	ranges_add(residency, &weight->read, record->offset, record->offset + record->size);
	use_range(residency, file, record->offset, record->offset + record->size, &record->r, false);
	if (!record->addr || record->addr > UINT64_MAX - record->size) {
		weight->floating += record->size;
		residency->floating += record->size;
		return;
	}
	staging_note_filled(residency, piece.lo, piece.hi);
	content_gone(residency, piece.lo, piece.hi);
	if (address_is_device(residency, record->addr)) {
		piece.a |= CONTENT_DEVICE;
		piece.lo += header_bytes(residency, record, file);
		ranges_add(residency, &weight->loaded, record->offset, record->offset + record->size);
		use_range(residency, file, record->offset, record->offset + record->size, &record->r, true);
		weight->copied_bytes += record->size;
		residency->signs |= SIGN_DEVICE;
	} else {
		piece.a |= held_read_word(residency, piece.lo);
		block_filled(residency, piece.lo, piece.hi);
		staging_gone(residency, piece.lo, piece.hi);
		staging_fill(residency, piece.lo + header_bytes(residency, record, file), piece.hi, file + 1,
		             piece.b);
	}
	if (piece.lo < piece.hi)
		content_put(residency, &piece);
}

/* A copy on its way: pieces of the source become pieces of the destination. */
struct transfer {
	struct residency *residency;
	const struct st_ev_copy *record;
	struct span *pieces; /* of the destination, gathered before it is cleared: the two may overlap */
	size_t count, room;
};

static void transfer_add(struct transfer *transfer, uint64_t src, uint64_t bytes, uint64_t word,
                         uint64_t delta)
{
	uint64_t shift = transfer->record->dst - transfer->record->src;
	struct span piece = {src + shift, src + shift + bytes, word | CONTENT_DEVICE, delta};

	if (transfer->count == transfer->room) {
		size_t room = transfer->room ? transfer->room * 2 : 8;
		void *pieces = realloc(transfer->pieces, room * sizeof(*transfer->pieces));

		if (!pieces) {
			residency_note(transfer->residency, -ENOMEM);
			return;
		}
		transfer->pieces = pieces;
		transfer->room = room;
	}
	/* A delta tells the place in the file from the address; other pieces have none. */
	if (content_file(word) && !(word & CONTENT_VAGUE))
		piece.b -= shift;
	transfer->pieces[transfer->count++] = piece;
}

/* Weight bytes whose place in the file is known went to the device. */
static void loaded_exactly(struct residency *residency, uint32_t file, uint64_t offset, uint64_t bytes,
                           const struct st_record *record)
{
	struct weight *weight = weight_get(residency, file);

	if (!weight)
		return;
	ranges_add(residency, &weight->loaded, offset, offset + bytes);
	weight->copied_bytes += bytes;
	residency->signs |= SIGN_BYTES | SIGN_DEVICE;
	weight_touch(residency, file, offset, record->time);
	use_range(residency, file, offset, offset + bytes, record, true);
}

/* From a mapping of a weight file. Returns the bytes that this mapping accounts for. */
static uint64_t transfer_from_map(struct transfer *transfer, const struct span *map, uint64_t src,
                                  uint64_t bytes)
{
	struct residency *residency = transfer->residency;
	struct mapping *mapping = replay_mapping(&residency->replay, map);
	bool breaks = (map->a & PROT_WRITE) && (mapping->flags & MAP_PRIVATE);
	struct weight *weight = weight_get(residency, mapping->weight);
	uint64_t size = residency->catalog->files[mapping->weight].size, offset = src + map->b;
	uint64_t here = bytes_min(bytes, map->hi - src), inside = bytes_min(here, bytes_sub(size, offset));
	enum copy_source source;

	if (!weight)
		return here;
	if (breaks) {
		breaks_predict(residency, map, src, src + here);
		held_mapped_copy(residency, here);
	}
	if (mapping->group < weight->group_count)
		weight->groups[mapping->group].copied += here;
	source = breaks ? COPY_PRIVATE_WRITABLE : COPY_MAPPING;
	residency->from[source] += here;
	touch_of(residency, mapping->weight, transfer->record->stack)->copied[source] += here;
	if (inside) { /* behind the file's end a page holds zeros */
		loaded_exactly(residency, mapping->weight, offset, inside, &transfer->record->r);
		transfer_add(transfer, src, inside, word_file(mapping->weight), map->b);
	}
	return here;
}

/* A copy of exactly a tensor's size, out of a buffer that the program filled itself. */
static void transfer_guessed(struct transfer *transfer, uint64_t src, uint64_t bytes, enum guess guess,
                             uint32_t file)
{
	struct residency *residency = transfer->residency;

	residency->exact = false;
	residency->signs |= SIGN_BYTES | SIGN_DEVICE;
	if (guess == GUESS_SHARED) {
		transfer_add(transfer, src, bytes, CONTENT_SHARED, bytes);
		return;
	}
	residency->weights[file].loaded_vague += bytes;
	residency->weights[file].copied_bytes += bytes;
	weight_touch(residency, file, UINT64_MAX, transfer->record->r.time);
	use_thread(residency, file, transfer->record->r.thread);
	transfer_add(transfer, src, bytes, word_file(file) | CONTENT_VAGUE, 0);
}

/* A buffer of unknown content is known as one by the copy out of it. */
static void source_note(struct residency *residency, uint64_t src, uint64_t bytes)
{
	enum copy_source source = source_of(residency, src);

	held_source(residency, src, source);
	if (residency->survey)
		return;
	residency->from[source] += bytes;
	if (source != COPY_OTHER)
		staging_fill(residency, src, src + bytes, 0, 0);
}

/* Weights on their way, but of another size than in their file: what looks like a tensor's size is another tensor. */
static void transfer_converted(struct transfer *transfer, uint64_t src, uint64_t bytes)
{
	struct residency *residency = transfer->residency;

	if (!residency->replay.weights_mapped && !residency->floating)
		return;
	residency->exact = false;
	residency->signs |= SIGN_BYTES | SIGN_DEVICE;
	if (unknown_may_be_weights(residency, bytes))
		transfer_add(transfer, src, bytes, 0, 0);
}

/* From memory that the program filled itself. */
static void transfer_unknown(struct transfer *transfer, uint64_t src, uint64_t bytes)
{
	struct residency *residency = transfer->residency;
	enum guess guess = GUESS_NONE;
	uint32_t file = CATALOG_NONE;
	bool converts;

	if (!residency->loading)
		return;
	source_note(residency, src, bytes);
	converts = source_converts(residency, src, (uint32_t)transfer->record->stack);
	if (bytes == transfer->record->size && !converts)
		guess = weight_guess(residency, bytes, &file);
	if (residency->touches)
		touch_of(residency, guess == GUESS_FILE ? file : CATALOG_NONE, transfer->record->stack)
			->copied[source_of(residency, src)] += bytes;
	if (converts) {
		transfer_converted(transfer, src, bytes);
	} else if (guess != GUESS_NONE) {
		transfer_guessed(transfer, src, bytes, guess, file);
	} else if (unknown_may_be_weights(residency, bytes)) {
		residency->exact = false;
		transfer_add(transfer, src, bytes, 0, 0);
	}
}

/* From what is known of the source: buffers with file bytes, device memory with weights, and gaps. */
static void transfer_from_content(struct transfer *transfer, uint64_t src, uint64_t bytes, bool device)
{
	struct residency *residency = transfer->residency;
	uint64_t end = src + bytes;
	struct span span;

	while (src < end) {
		bool there = livemap_next(&residency->content, src, &span) && span.lo < end;
		uint64_t gap = there ? bytes_max(span.lo, src) : end,
			 stop = there ? bytes_min(span.hi, end) : end;

		if (gap > src && !device)
			transfer_unknown(transfer, src, gap - src);
		/* Managed memory may be named as a host source: what it holds came to the device before. */
		if (there && !device && !(span.a & CONTENT_DEVICE)) {
			enum copy_source source = source_of(residency, gap);

			residency->from[source] += stop - gap;
			held_source(residency, gap, source);
			touch_of(residency, content_file(span.a) - 1, transfer->record->stack)
				->copied[source] += stop - gap;
			loaded_exactly(residency, content_file(span.a) - 1, gap + span.b, stop - gap,
			               &transfer->record->r);
		}
		if (there)
			transfer_add(transfer, gap, stop - gap, span.a & ~(CONTENT_DEVICE | CONTENT_HOST),
			             span.b);
		src = stop;
	}
}

static void transfer_gather(struct transfer *transfer, bool device)
{
	struct residency *residency = transfer->residency;
	uint64_t src = transfer->record->src, end = src + transfer->record->size;
	struct span map;

	while (src < end) {
		if (!device && livemap_find(&residency->replay.maps, src, &map) &&
		    replay_mapping(&residency->replay, &map)) {
			src += transfer_from_map(transfer, &map, src, end - src);
			continue;
		}
		/* Up to the next weight mapping, if one begins inside: no loader copies across one. */
		transfer_from_content(transfer, src, end - src, device);
		src = end;
	}
}

static void transfer_finish(struct transfer *transfer)
{
	struct residency *residency = transfer->residency;
	const struct st_ev_copy *record = transfer->record;

	content_gone(residency, record->dst, record->dst + record->size);
	for (size_t i = 0; i < transfer->count; i++)
		content_put(residency, &transfer->pieces[i]);
	free(transfer->pieces);
}

void content_copy(struct residency *residency, const struct st_ev_copy *record)
{
	struct transfer transfer = {.residency = residency, .record = record};
	bool from_device = record->how == ST_COPY_D2D || record->how == ST_COPY_D2H;
	bool to_device = record->how == ST_COPY_D2D || record->how == ST_COPY_H2D;

	/* What a nested copy does is in the record of the call around it, which follows: a copy, or a read by cuFile. */
	if (record->result || record->flags & (1u << ST_CALL_CAPTURING | 1u << ST_CALL_NESTED) ||
	    !record->size || record->src > UINT64_MAX - record->size ||
	    record->dst > UINT64_MAX - record->size)
		return;
	if (record->how == ST_COPY_UNIFIED) {
		from_device = address_is_device(residency, record->src);
		to_device = address_is_device(residency, record->dst);
	}
	if (to_device && !(from_device && !residency->content.count)) {
		transfer_gather(&transfer, from_device);
		residency->signs |= from_device && transfer.count ? SIGN_CLONED : 0;
		transfer_finish(&transfer);
	} else {
		content_gone(residency, record->dst, record->dst + record->size);
	}
	if (!from_device && residency->pending_count + residency->staged.count)
		staging_copied(residency, record, record->src, record->src + record->size);
}

void content_memset(struct residency *residency, const struct st_ev_memset *record)
{
	if (record->addr <= UINT64_MAX - record->size)
		content_gone(residency, record->addr, record->addr + record->size);
}
