/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with memory, told by the functions and packages in the stack that asked for it. Each stack is looked at once. */
#ifndef SPARKTRACE_STAGES_STACK_H
#define SPARKTRACE_STAGES_STACK_H

#include <analyzer/model_loading.h>
#include <analyzer/names.h>

struct stack_stages;

/* Fill `names` before the first question: answers stay. 0 or -ENOMEM. */
int stack_stages_create(const struct names *names, struct stack_stages **ret_stages);
void stack_stages_free(struct stack_stages *stages);

/* Conversion, quantising, re-packing, a host copy; STAGE_COUNT: nothing known. `stages` may be NULL. */
enum stage stack_stage(struct stack_stages *stages, uint64_t stack);

#endif
