/* SPDX-License-Identifier: Apache-2.0 */
/* The names that breakdown.h promises, for the files, tensors and stacks of the processes of one run. */
#ifndef SPARKTRACE_BREAKDOWN_NAMES_H
#define SPARKTRACE_BREAKDOWN_NAMES_H

#include <analyzer/breakdown.h>
#include <analyzer/model.h>

struct content_names {
	const struct model *const *models;
	size_t count;
	char **files;       /* names, model after model */
	bool *twice;        /* a tensor of that name is in another file as well; likewise */
	size_t *first_file; /* of each model, index into `files` */
	size_t *first_tensor;
};

/* 0 or -ENOMEM; release it in any case. */
int content_names_make(const struct model *const *models, size_t count, struct content_names *ret_names);
void content_names_release(struct content_names *names);

/* Lives as long as `names`. */
const char *content_file(const struct content_names *names, size_t model, uint32_t file);

/* To be freed; NULL: no memory. */
char *content_tensor(const struct content_names *names, size_t model, uint32_t tensor);
char *content_stack(const struct names *names, uint32_t stack);

/* Bytes of a stack's name up to the end of its innermost frames. */
size_t content_innermost(const char *stack, unsigned frames);

/* A copy that is printable UTF-8 and no longer than a name may be: of what is longer, the end is kept. To be freed. */
char *content_clean(const char *text);

/* Where a part of these names stands before (< 0) or behind `part`. */
int part_order(enum metric metric, enum part_kind kind, const char *name, const struct part *part);

#endif
