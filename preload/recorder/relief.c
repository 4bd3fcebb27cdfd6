/* SPDX-License-Identifier: Apache-2.0 */
#include "relief.h"

#include <fcntl.h>

/* What was read (no address) the shim has given back itself. The page in which a range begins was used before. */
void relief_watch(struct cache *cache, const struct st_ev_relief *relief)
{
	const struct cache_file *file = cache_find(cache, relief->file);
	uint64_t first = relief->offset / cache->page_size * cache->page_size;

	if (relief->what != ST_RELIEF_DROPPED || relief->result || !relief->addr || !file || !relief->size)
		return;
	posix_fadvise(file->fd, (off_t)first, (off_t)(relief->offset + relief->size - first),
	              POSIX_FADV_DONTNEED);
}
