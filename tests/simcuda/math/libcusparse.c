/* SPDX-License-Identifier: Apache-2.0 */
/* cuSPARSE: a handle that is not NULL. */
int cusparseCreate(void **handle);

static int object;

int cusparseCreate(void **handle)
{
	*handle = &object;
	return 0;
}
