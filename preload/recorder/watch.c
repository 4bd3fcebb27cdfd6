/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "relief.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_weights(const struct session *session, uint64_t file)
{
	return file < session->formats_room && session->formats[file] != ST_FILE_OTHER;
}

static void keep_format(struct session *session, uint64_t file, uint64_t format)
{
	uint32_t room = session->formats_room ? session->formats_room : 256;
	uint8_t *formats;

	if (file >= 1u << 20)
		return;
	while (room <= file)
		room *= 2;
	if (room != session->formats_room) {
		formats = realloc(session->formats, room);
		if (!formats)
			return;
		memset(formats + session->formats_room, ST_FILE_OTHER, room - session->formats_room);
		session->formats = formats;
		session->formats_room = room;
	}
	session->formats[file] = (uint8_t)format;
}

/* Its page cache is looked at right now, before anything else is done with it. */
static void watch_file(struct session *session, const struct st_ev_file *file)
{
	char path[4096];
	size_t bytes = (size_t)file->r.words * 8 - sizeof(*file);

	if (file->format == ST_FILE_OTHER || !bytes)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)(bytes < sizeof(path) ? bytes : sizeof(path) - 1),
	         (const char *)(file + 1));
	keep_format(session, file->id, file->format);
	cache_add(&session->cache, &session->out, file, path, session->ring->directory);
	weights_add(&session->weights, file);
	shards_add(&session->shards, path, session->ring->directory);
}

static void watch_stack(struct session *session, const struct st_ev_stack *stack)
{
	symbols_add(&session->symbols, (const uint64_t *)(stack + 1), stack->r.words - sizeof(*stack) / 8);
}

/* "name file" */
static void watch_code(struct session *session, const struct st_ev_code *code)
{
	const char *text = (const char *)(code + 1), *blank;
	size_t length = strnlen(text, (size_t)code->r.words * 8 - sizeof(*code));

	blank = memchr(text, ' ', length);
	if (blank)
		packages_add(&session->packages, blank + 1, length - (size_t)(blank + 1 - text));
}

static void watch_map(struct session *session, const struct st_ev_map *map)
{
	mappings_map(&session->anon.mappings, map, is_weights(session, map->file));
	if (is_weights(session, map->file))
		cadence_move(&session->cadence, clock_now());
}

/* An unmap that fails is noted before it fails; what makes it fail shows beforehand. */
static void watch_unmap(struct session *session, const struct st_ev_unmap *unmap)
{
	if (unmap->addr % session->cache.page_size == 0 && unmap->size)
		mappings_unmap(&session->anon.mappings, unmap->addr, unmap->size);
}

static void watch_copy(struct session *session, const struct st_ev_copy *copy)
{
	cadence_move(&session->cadence, clock_now());
	if (copy->how == ST_COPY_H2D || copy->how == ST_COPY_UNIFIED)
		session->copied += copy->size;
}

static void watch_moment(struct session *session, const struct st_ev_moment *moment)
{
	if (moment->what < 32)
		session->moments |= UINT32_C(1) << moment->what;
}

/* It may fail, or be that of a vfork child: then the ring stays mapped, and the looking ends by itself. */
static void watch_child(struct session *session, const struct st_ev_child *child)
{
	if (child->how != ST_CHILD_EXEC)
		return;
	session->exec_until = clock_now() + 2 * SECOND;
	session->next_exec_look = 0;
}

static void watch_traffic(struct session *session, const struct st_record *record)
{
	(void)record;
	cadence_move(&session->cadence, clock_now());
}

static void watch_remap(struct session *session, const struct st_ev_remap *remap)
{
	mappings_remap(&session->anon.mappings, remap);
}

static void watch_relief(struct session *session, const struct st_ev_relief *relief)
{
	relief_watch(&session->cache, relief);
	cadence_move(&session->cadence, clock_now());
}

static void watch_protect(struct session *session, const struct st_ev_protect *protect)
{
	mappings_protect(&session->anon.mappings, protect);
}

/* A record shorter than its kind's fields comes from a shim that we do not know: it is not looked into. */
#define WATCH(kind, function)                                                                 \
	case ST_KIND_##kind:                                                                  \
		if (bytes >= sizeof(struct st_ev_##kind))                                     \
			function(session, (const struct st_ev_##kind *)(const void *)record); \
		break

void session_watch(void *context, const struct st_record *record)
{
	struct session *session = context;
	size_t bytes = (size_t)record->words * 8;

	switch (record->kind) {
		WATCH(file, watch_file);
		WATCH(stack, watch_stack);
		WATCH(code, watch_code);
		WATCH(map, watch_map);
		WATCH(unmap, watch_unmap);
		WATCH(remap, watch_remap);
		WATCH(protect, watch_protect);
		WATCH(relief, watch_relief);
		WATCH(copy, watch_copy);
		WATCH(moment, watch_moment);
		WATCH(child, watch_child);
	case ST_KIND_open:
	case ST_KIND_read:
	case ST_KIND_device_alloc:
	case ST_KIND_handle_create:
	case ST_KIND_pinned_alloc:
		watch_traffic(session, record);
		break;
	default:
		break;
	}
}
