/* SPDX-License-Identifier: Apache-2.0 */
#define SHIM_WRAPS_HEAP
#include "real.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "banned.h"

struct real real_functions;
_Atomic bool real_ready;

/* What a lookup needs of one loaded object. */
struct object {
	const struct link_map *map;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
	const uint16_t *versions;
};

/* glibc has made these addresses absolute where the section is writable; elsewhere (vdso) they are relative. */
static const void *dynamic_pointer(const struct link_map *map, const ElfW(Dyn) * entry)
{
	ElfW(Addr) at = entry->d_un.d_ptr;

	return (const void *)(at < map->l_addr ? at + map->l_addr : at);
}

static void object_init(struct object *object, const struct link_map *map)
{
	*object = (struct object){.map = map};
	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			object->symbols = dynamic_pointer(map, entry);
		else if (entry->d_tag == DT_STRTAB)
			object->strings = dynamic_pointer(map, entry);
		else if (entry->d_tag == DT_GNU_HASH)
			object->gnu_hash = dynamic_pointer(map, entry);
		else if (entry->d_tag == DT_HASH)
			object->hash = dynamic_pointer(map, entry);
		else if (entry->d_tag == DT_VERSYM)
			object->versions = dynamic_pointer(map, entry);
	}
}

/* Is symbol `index` a function that a plain reference to `name` gets: defined, and of the default version? */
static bool symbol_matches(const struct object *object, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
	    (type != STT_FUNC && type != STT_NOTYPE))
		return false;
	if (object->versions &&
	    (object->versions[index] & 0x8000)) /* an old version, kept for old programs */
		return false;
	return strcmp(object->strings + symbol->st_name, name) == 0;
}

static void *symbol_address(const struct object *object, uint32_t index)
{
	return (void *)(object->map->l_addr + object->symbols[index].st_value);
}

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* DT_GNU_HASH: counts, a Bloom filter, buckets, chains; a chain ends at a hash whose lowest bit is set. */
static void *object_find_gnu(const struct object *object, const char *name, uint32_t hash)
{
	uint32_t buckets = object->gnu_hash[0], first = object->gnu_hash[1], bloom = object->gnu_hash[2];
	const uint32_t *bucket = object->gnu_hash + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	uint32_t index = buckets ? bucket[hash % buckets] : 0;

	if (index < first)
		return NULL;
	for (;; index++) {
		if (((chain[index - first] ^ hash) >> 1) == 0 && symbol_matches(object, index, name))
			return symbol_address(object, index);
		if (chain[index - first] & 1)
			return NULL;
	}
}

/* DT_HASH, in old objects without the other: simply all symbols, as many as there are chains. */
static void *object_find_plain(const struct object *object, const char *name)
{
	for (uint32_t i = 1; i < object->hash[1]; i++)
		if (symbol_matches(object, i, name))
			return symbol_address(object, i);
	return NULL;
}

static void *object_find(const struct link_map *map, const char *name, uint32_t hash)
{
	struct object object;

	object_init(&object, map);
	if (!object.symbols || !object.strings)
		return NULL;
	if (object.gnu_hash)
		return object_find_gnu(&object, name, hash);
	return object.hash ? object_find_plain(&object, name) : NULL;
}

struct link_map *real_own(void)
{
	struct link_map *map = _r_debug.r_map;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map;
}

struct link_map *real_object(const char *soname)
{
	struct link_map *map;

	for (map = _r_debug.r_map; map; map = map->l_next) {
		const char *slash = map->l_name ? strrchr(map->l_name, '/') : NULL;
		const char *name = slash ? slash + 1 : map->l_name;

		if (name && *name && strcmp(name, soname) == 0)
			return map;
	}
	return NULL;
}

void *real_next(const char *name)
{
	const struct link_map *own = real_own();
	uint32_t hash = name_hash(name);
	void *found = NULL;

	for (const struct link_map *map = own ? own->l_next : NULL; map && !found; map = map->l_next)
		found = object_find(map, name, hash);
	return found;
}

static const struct row {
	const char *name;
	size_t at;
} rows[] = {
#define REAL(ret, name, ...) {#name, offsetof(struct real, name)},
#include "real.def"
#undef REAL
};

void real_init(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		*(void **)((char *)&real_functions + rows[i].at) = real_next(rows[i].name);
	atomic_store_explicit(&real_ready, true, memory_order_release);
}
