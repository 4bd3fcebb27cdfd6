/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt: says that one algorithm fits, or torch warns and looks for another way. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                   void *preference, int asked, void *results, int *found);

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                   void *preference, int asked, void *results, int *found)
{
	(void)handle;
	(void)operation;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	(void)preference;
	(void)results;
	*found = asked > 0;
	return 0;
}
