/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's reader of shard indexes: whatever the bytes, it ends, and no shard lies outside the folder. */
#include "preload/recorder/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct index *index;
	uint32_t i;

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size && !index_open(fd, size, NULL, &index)) {
		while (index_read(index) > 0)
			continue;
		for (i = 0; i < index_shards(index); i++)
			if (strchr(index_shard(index, i), '/') || !index_names(index, index_shard(index, i)))
				abort();
		index_free(index);
	}
	close(fd);
	return 0;
}
