/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that several sections say. */
#include "report.h"

#include "demangle.h"
#include "names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FRAMES_SHOWN 4
#define NAME_SHOWN   80 /* of a function: templates can be endless */

double report_share(uint64_t part, uint64_t whole)
{
	return whole && whole != ST_UNKNOWN && part != ST_UNKNOWN ? (double)part / (double)whole : NAN;
}

const char *report_phase(enum phase phase)
{
	static const char *const names[PHASE_COUNT] = {"start", "load", "settle", "steps", "end"};

	return phase < PHASE_COUNT ? names[phase] : NULL;
}

const char *report_file(const struct report *report, uint32_t file)
{
	return file < report->model->file_count ? report->model->files[file].path : NULL;
}

const char *report_tensor(const struct report *report, uint32_t tensor)
{
	return tensor < report->model->tensor_count ? report->model->tensors[tensor].name : NULL;
}

const struct weight_file *report_culprit(const struct report *report)
{
	const struct model *m = report->model;
	const struct weight_file *worst = NULL;

	for (size_t i = 0; i < m->file_count; i++) {
		const struct weight_file *file = &m->files[i];

		if (!worst || file->anon_peak > worst->anon_peak ||
		    (file->anon_peak == worst->anon_peak && file->at_peak.staging > worst->at_peak.staging))
			worst = file;
	}
	return worst && (worst->anon_peak || worst->at_peak.staging) ? worst : NULL;
}

const char *report_mapping(const struct file_mapping *mapping)
{
	bool private = mapping->flags & MAP_PRIVATE, writable = mapping->prot & PROT_WRITE;

	if (private)
		return writable ? "private writable mapping" : "private read-only mapping";
	return writable ? "shared writable mapping" : "shared read-only mapping";
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static void print_frame(FILE *out, const struct frame *frame, bool show_module)
{
	const char *module = base_name(frame->module);
	char *name = frame->function ? demangle_name(frame->function) : NULL;

	if (name)
		fprintf(out, "%.*s%s", NAME_SHOWN, name, strlen(name) > NAME_SHOWN ? "..." : "");
	else
		fprintf(out, "+0x%llx", (unsigned long long)frame->offset);
	if (module && (show_module || !frame->function))
		fprintf(out, " (%s)", module);
	free(name);
}

/* Frames of one module name it once, at the first of them. */
static char *stack_line(const struct names *names, uint32_t stack)
{
	char *line = NULL;
	size_t size, depth = names_depth(names, stack), i;
	const char *module = NULL;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return NULL;
	for (i = 0; i < depth && i < FRAMES_SHOWN; i++) {
		struct frame frame = names_frame(names, stack, i);
		const char *name = base_name(frame.module);

		fputs(i ? " < " : "", out);
		print_frame(out, &frame, !module || !name || strcmp(module, name) != 0);
		module = name;
	}
	fputs(i < depth ? " < ..." : names_stack_is_cut(names, stack) ? " < (cut short)" : "", out);
	if (fclose(out)) {
		free(line);
		return NULL;
	}
	return line;
}

static void emit_frames(struct emitter *e, const struct names *names, const char *key, uint32_t stack)
{
	static const struct emit_column columns[] = {
		{NULL, false}, {NULL, false}, {NULL, false}, {NULL, false}};
	size_t depth = names ? names_depth(names, stack) : 0;

	emit_table(e, key, columns, 4);
	for (size_t i = 0; i < depth; i++) {
		struct frame frame = names_frame(names, stack, i);
		char address[20];

		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)frame.address);
		emit_row(e, false,
		         (struct emit_field[]){
				 emit_word("function", frame.function), emit_count("offset", frame.offset),
				 emit_path("module", frame.module), emit_word("address", address)});
	}
	emit_table_end(e);
}

void report_stack(struct emitter *e, const struct report *report, const char *key, const char *lead,
                  uint32_t stack)
{
	const struct names *names = report->model->names;
	char *line, *sentence;

	if (e->format == EMIT_JSON) {
		emit_frames(e, names, key, stack);
		return;
	}
	line = names && names_depth(names, stack) ? stack_line(names, stack) : NULL;
	if (!line)
		return;
	if (asprintf(&sentence, "%s{stack}", lead) >= 0) {
		emit_say(e, sentence, emit_word("stack", line));
		free(sentence);
	}
	free(line);
}
