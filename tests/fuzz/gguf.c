/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's reader of GGUF files: whatever the bytes, it ends, and no tensor lies outside the file. */
#include "preload/recorder/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file_tensor tensor;
	int fd = memfd_create("fuzz", MFD_CLOEXEC), rc;
	struct table *table;

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size && !table_open(ST_FILE_GGUF, fd, size, NULL, &table)) {
		while ((rc = table_next(table, &tensor)) > 0)
			if (rc == TENSOR_READ &&
			    (tensor.offset > size || tensor.size > size - tensor.offset ||
			     !memchr(tensor.name, 0, sizeof(tensor.name))))
				abort();
		table_free(table);
	}
	close(fd);
	return 0;
}
