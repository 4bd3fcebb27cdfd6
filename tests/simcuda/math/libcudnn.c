/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: the version that torch was built with, and a handle that is not NULL. */
#include <stddef.h>

#define MAJOR 9
#define MINOR 26
#define PATCH 0

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
int cudnnGetProperty(int property, int *value);
int cudnnCreate(void **handle);

static int object;

size_t cudnnGetVersion(void)
{
	return MAJOR * 10000 + MINOR * 100 + PATCH;
}

size_t cudnnGetCudartVersion(void)
{
	return 13000;
}

int cudnnGetProperty(int property, int *value)
{
	*value = property == 0 ? MAJOR : property == 1 ? MINOR : PATCH;
	return 0;
}

int cudnnCreate(void **handle)
{
	*handle = &object;
	return 0;
}
