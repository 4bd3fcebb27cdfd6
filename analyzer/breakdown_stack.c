/* SPDX-License-Identifier: Apache-2.0 */
/* What a call stack is called in every run: its functions, without where they lie. */
#include "breakdown.h"
#include "breakdown_names.h"
#include "demangle.h"
#include "names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_LONGEST 120

/* The name so far. */
struct stack_name {
	FILE *out;
	unsigned frames;
	char *module; /* of the frame before, where it has no function: frames in a row of one module are one */
};

/* Takes `text`; NULL where there was no memory, which leaves the name shorter. */
static void name_frame(struct stack_name *name, char *text, bool module)
{
	if (text && !(module && name->module && !strcmp(name->module, text))) {
		fprintf(name->out, "%s%.*s", name->frames ? " < " : "", FRAME_LONGEST, text);
		name->frames++;
	}
	free(name->module);
	name->module = module ? text : NULL;
	if (!module)
		free(text);
}

/* --- native ----------------------------------------------------------------------------------------- */

/* What the compiler adds to the names of its copies of a function: ".isra.0", ".cold"; ".llvm." with a hash. */
static void cut_suffix(char *name)
{
	static const char *const suffixes[] = {".isra.", ".constprop.", ".part.",
	                                       ".cold",  ".lto_priv.",  ".llvm."};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *at = strstr(name, suffixes[i]);

		if (at && at > name)
			*at = '\0';
	}
}

/* Rust's hash at the end: "core::ops::call_once::h0123456789abcdef". */
static void cut_hash(char *name)
{
	size_t length = strlen(name), digits = 0;

	while (digits < length && isxdigit((unsigned char)name[length - digits - 1]))
		digits++;
	if (digits == 16 && length > 19 && !strncmp(name + length - 19, "::h", 3))
		name[length - 19] = '\0';
}

/* Takes arguments of templates out, but not what begins a name ("<T as U>::f") or belongs to an operator. */
static void cut_templates(char *name)
{
	char *to = name;
	int depth = 0;

	for (const char *from = name; *from; from++) {
		bool is_operator = to - name >= 8 && !strncmp(to - 8, "operator", 8);
		bool kept = to == name || is_operator || to[-1] == '<' || to[-1] == ' ';

		if (*from == '<' && (depth || !kept))
			depth++;
		else if (*from == '>' && depth && from[-1] != '-')
			depth--;
		else if (!depth)
			*to++ = *from;
	}
	*to = '\0';
}

static char *native_function(const char *function)
{
	char *name = demangle_name(function);

	if (!name)
		return NULL;
	if (strncmp(function, "_Z", 2) == 0) {
		cut_hash(name);
		cut_templates(name);
	}
	cut_suffix(name);
	return name;
}

/* The interpreter itself: what it does between the program's functions says nothing of the program. */
static bool is_interpreter(const struct frame *frame)
{
	const char *module = names_base(frame->module);

	if (!module)
		return frame->function && !strncmp(frame->function, "_PyEval_", 8);
	return !strncmp(module, "libpython", 9) || !strncmp(module, "python", 6);
}

static void name_native(struct stack_name *name, const struct frame *frame)
{
	const char *module = names_base(frame->module);

	if (frame->function && *frame->function)
		name_frame(name, native_function(frame->function), false);
	else
		name_frame(name, strdup(module ? module : "?"), true);
}

static void name_natives(struct stack_name *name, const struct names *names, uint32_t stack, bool interpreter)
{
	size_t depth = names_depth(names, stack);

	for (size_t i = 0; i < depth && name->frames < BREAKDOWN_FRAMES; i++) {
		struct frame frame = names_frame(names, stack, i);

		if (interpreter || !is_interpreter(&frame))
			name_native(name, &frame);
	}
}

/* --- Python ----------------------------------------------------------------------------------------- */

static bool is_own_python(const char *file)
{
	return file && (!strncmp(file, "<frozen", 7) || (*file != '<' && names_is_standard(file)));
}

static void name_pythons(struct stack_name *name, const struct names *names, uint32_t stack, bool own)
{
	size_t depth = names_python_depth(names, stack);

	for (size_t i = 0; i < depth && name->frames < BREAKDOWN_FRAMES; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);
		const char *file = names_base(frame.file);

		if (!own && is_own_python(frame.file))
			continue;
		name_frame(name, strdup(frame.function ? frame.function : file ? file : "?"), false);
	}
}

char *content_stack(const struct names *names, uint32_t stack)
{
	struct stack_name name = {0};
	char *text = NULL, *clean;
	size_t size;

	name.out = open_memstream(&text, &size);
	if (!name.out)
		return NULL;
	if (names) {
		name_pythons(&name, names, stack, false);
		if (!name.frames)
			name_natives(&name, names, stack, false);
		if (!name.frames)
			name_pythons(&name, names, stack, true);
		if (!name.frames)
			name_natives(&name, names, stack, true);
	}
	free(name.module);
	if (fclose(name.out)) {
		free(text);
		return NULL;
	}
	clean = content_clean(*text ? text : "(unknown stack)");
	free(text);
	return clean;
}

size_t content_innermost(const char *stack, unsigned frames)
{
	const char *at = stack;

	for (;;) {
		const char *end = strstr(at, " < ");

		if (!end)
			return strlen(stack);
		if (!--frames)
			return (size_t)(end - stack);
		at = end + strlen(" < ");
	}
}
