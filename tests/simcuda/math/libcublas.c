/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: a handle that is not NULL, and the outputs that torch reads. No mathematics. */
int cublasCreate_v2(void **handle);
int cublasGetPointerMode_v2(void *handle, int *mode);
int cublasGetMathMode(void *handle, int *mode);

static int object;

int cublasCreate_v2(void **handle)
{
	*handle = &object;
	return 0;
}

int cublasGetPointerMode_v2(void *handle, int *mode)
{
	(void)handle;
	*mode = 0;
	return 0;
}

int cublasGetMathMode(void *handle, int *mode)
{
	(void)handle;
	*mode = 0;
	return 0;
}
