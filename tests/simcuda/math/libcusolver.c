/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER: a handle that is not NULL. */
int cusolverDnCreate(void **handle);

static int object;

int cusolverDnCreate(void **handle)
{
	*handle = &object;
	return 0;
}
