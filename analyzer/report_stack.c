/* SPDX-License-Identifier: Apache-2.0 */
/* Call stacks: which line of which library did it. */
#include "report.h"

#include "demangle.h"
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_SHOWN 4
#define BRIEF_SHOWN  2  /* before the outermost one */
#define NATIVE_SHOWN 2  /* where Python frames follow, which say more */
#define NAME_SHOWN   80 /* of a function: templates can be endless */

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The line so far. */
struct line {
	FILE *out;
	const char *group; /* module or package of the frame before: frames of one name it once */
	unsigned frames;
	bool gap; /* frames were left out just before */
};

static void line_step(struct line *line, const char *group)
{
	if (line->gap)
		fputs(line->frames ? " < ..." : "...", line->out);
	fputs(line->frames || line->gap ? " < " : "", line->out);
	line->gap = false;
	line->frames++;
	line->group = group;
}

static void line_end(const struct line *line, bool is_cut)
{
	fputs(line->gap ? " < ..." : is_cut ? " < (cut short)" : "", line->out);
}

/* --- native frames ------------------------------------------------------------------------------- */

static void print_native(struct line *line, const struct frame *frame)
{
	const char *module = names_base(frame->module);
	bool show_module = module && (!same(line->group, module) || !frame->function);
	char *name = frame->function ? demangle_name(frame->function) : NULL;

	line_step(line, module);
	if (name)
		fprintf(line->out, "%.*s%s", NAME_SHOWN, name, strlen(name) > NAME_SHOWN ? "..." : "");
	else
		fprintf(line->out, "+0x%llx", (unsigned long long)frame->offset);
	if (show_module)
		fprintf(line->out, " (%s)", module);
	free(name);
}

/* Frames of the interpreter itself: python3.11, libpython3.12.so.1.0. */
static bool is_interpreter(const struct frame *frame)
{
	const char *module = names_base(frame->module), *function = frame->function;

	if (!module)
		return function && !strncmp(function, "_PyEval_", 8);
	return !strncmp(module, "libpython", 9) || !strncmp(module, "python", 6);
}

/* Where Python frames are shown as well, what the interpreter does between them says nothing. Returns how many. */
static unsigned native_line(FILE *out, const struct names *names, uint32_t stack, bool python)
{
	struct line line = {.out = out};
	size_t depth = names_depth(names, stack);

	for (size_t i = 0; i < depth && !line.gap; i++) {
		struct frame frame = names_frame(names, stack, i);

		if (python && is_interpreter(&frame))
			return line.frames;
		if (line.frames < (python ? NATIVE_SHOWN : FRAMES_SHOWN))
			print_native(&line, &frame);
		else
			line.gap = true;
	}
	line_end(&line, names_stack_is_cut(names, stack));
	return line.frames;
}

/* --- Python frames ------------------------------------------------------------------------------- */

/* Without the functions that it was defined in: "load.<locals>.read" is "read". */
static const char *short_name(const char *function)
{
	const char *name = function, *next = function;

	while (next && (next = strstr(next, "<locals>.")))
		name = next += strlen("<locals>.");
	return name && *name ? name : "?";
}

static void print_python(struct line *line, const struct python_frame *frame, const struct package *package)
{
	const char *file = names_base(frame->file), *group = package ? package->name : NULL;
	bool show_package = group && !same(line->group, group);

	line_step(line, group);
	fprintf(line->out, "%.*s (", NAME_SHOWN, short_name(frame->function));
	if (show_package)
		fprintf(line->out, "%s %s, ", package->name, package->version);
	fputs(file ? file : "?", line->out);
	if (frame->line)
		fprintf(line->out, ":%u", frame->line);
	fputs(")", line->out);
}

/* The innermost frames, and the innermost one of the program's own code, which says who called the library. */
static void python_line(FILE *out, const struct names *names, uint32_t stack)
{
	struct line line = {.out = out};
	size_t depth = names_python_depth(names, stack);
	bool seen = false;

	for (size_t i = 0; i < depth; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);
		const struct package *package = frame.package;
		bool own = !package && !names_is_standard(frame.file);

		if (line.frames < FRAMES_SHOWN || (own && !seen))
			print_python(&line, &frame, package);
		else
			line.gap = true;
		seen = seen || own;
	}
	line_end(&line, names_python_is_cut(names, stack));
}

/* --- in one short line ----------------------------------------------------------------------------- */

/* A file that is the program's or a library's; "<string>" is somebody's own. */
static bool is_told(const struct python_frame *frame)
{
	return !frame->file || (strncmp(frame->file, "<frozen", 7) != 0 &&
	                        (*frame->file == '<' || !names_is_standard(frame->file)));
}

/* Of the frames that are told: the outermost one, before all that of no package's. None: `depth`. */
static size_t outermost_told(const struct names *names, uint32_t stack, size_t depth)
{
	size_t any = depth, own = depth;

	for (size_t i = 0; i < depth; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);

		if (!is_told(&frame))
			continue;
		any = i;
		own = frame.package ? own : i;
	}
	return own < depth ? own : any;
}

/* The innermost frames of those from `outer` on that find room beside it, then `outer`, then whether more are left. */
static void brief_line(FILE *out, const struct names *names, uint32_t stack, size_t outer)
{
	struct line line = {.out = out};
	size_t depth = names_python_depth(names, stack);

	for (size_t i = 0; i < depth; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);

		if (!is_told(&frame))
			continue;
		if (i == outer || (i < outer && !line.gap && line.frames < BRIEF_SHOWN))
			print_python(&line, &frame, frame.package);
		else
			line.gap = true;
	}
	line_end(&line, names_python_is_cut(names, stack));
}

/* In one line: the innermost frames; NULL: an unknown stack, or no memory. */
static char *stack_words(const struct names *names, uint32_t stack)
{
	bool python = names && names_python_depth(names, stack) > 0, native;
	char *words = NULL;
	size_t size = 0;
	FILE *out;

	if (!names || (!python && !names_depth(names, stack)))
		return NULL;
	out = open_memstream(&words, &size);
	if (!out)
		return NULL;
	native = native_line(out, names, stack, python);
	if (python) {
		fputs(native ? ", from python: " : "python: ", out);
		python_line(out, names, stack);
	}
	if (fclose(out)) {
		free(words);
		return NULL;
	}
	return words;
}

char *report_stack_brief(const struct names *names, uint32_t stack)
{
	size_t depth = names ? names_python_depth(names, stack) : 0;
	size_t outer = depth ? outermost_told(names, stack, depth) : 0, size;
	char *words = NULL;
	FILE *out;

	if (outer == depth)
		return stack_words(names, stack);
	out = open_memstream(&words, &size);
	if (!out)
		return NULL;
	brief_line(out, names, stack, outer);
	if (fclose(out)) {
		free(words);
		return NULL;
	}
	return words;
}

/* --- both ---------------------------------------------------------------------------------------- */

static const char *package_name(const struct package *package)
{
	return package ? package->name : NULL;
}

static const char *package_version(const struct package *package)
{
	return package ? package->version : NULL;
}

static void emit_native(struct emitter *e, const struct names *names, const char *key, uint32_t stack)
{
	static const struct emit_column columns[6];
	size_t depth = names ? names_depth(names, stack) : 0;

	emit_table(e, key, columns, 6);
	for (size_t i = 0; i < depth; i++) {
		struct frame frame = names_frame(names, stack, i);
		const struct package *package = frame.package;
		char address[20];

		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)frame.address);
		emit_row(e, false,
		         (struct emit_field[]){
				 emit_word("function", frame.function), emit_count("offset", frame.offset),
				 emit_path("module", frame.module), emit_word("address", address),
				 emit_word("package", package_name(package)),
				 emit_word("version", package_version(package))});
	}
	emit_table_end(e);
}

static void emit_python(struct emitter *e, const struct names *names, const char *key, uint32_t stack)
{
	static const struct emit_column columns[6];
	size_t depth = names ? names_python_depth(names, stack) : 0;

	emit_table(e, key, columns, 6);
	for (size_t i = 0; i < depth; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);
		const struct package *package = frame.package;

		emit_row(e, false,
		         (struct emit_field[]){emit_word("function", frame.function),
		                               emit_path("file", frame.file),
		                               emit_count("line", frame.line ? frame.line : UINT64_MAX),
		                               emit_count("first_line", frame.first_line),
		                               emit_word("package", package_name(package)),
		                               emit_word("version", package_version(package))});
	}
	emit_table_end(e);
}

static void emit_stack(struct emitter *e, const struct names *names, const char *key, uint32_t stack)
{
	char *python;

	emit_native(e, names, key, stack);
	if (asprintf(&python, "python_%s", key) < 0) {
		e->error = e->error ? e->error : -ENOMEM;
		return;
	}
	emit_python(e, names, python, stack);
	free(python);
}

void report_stack(struct emitter *e, const struct report *report, const char *key, const char *lead,
                  uint32_t stack)
{
	const struct names *names = report->model->names;
	char *line, *sentence;

	if (e->format == EMIT_JSON) {
		emit_stack(e, names, key, stack);
		return;
	}
	line = stack_words(names, stack);
	if (!line)
		return;
	if (asprintf(&sentence, "%s{stack}", lead) >= 0) {
		emit_say(e, sentence, emit_word("stack", line));
		free(sentence);
	}
	free(line);
}
