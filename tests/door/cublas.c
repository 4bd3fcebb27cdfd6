/* SPDX-License-Identifier: Apache-2.0 */
/* The toolkit's cuBLAS over a driver that is not the vendor's: it says no, and must say it the same way. */
#include <stdio.h>

int cublasCreate_v2(void **ret_handle);

int main(void)
{
	void *handle = NULL;

	printf("create: %d\n", cublasCreate_v2(&handle));
	return 0;
}
