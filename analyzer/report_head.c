/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <string.h>

#define SCHEMA_VERSION 1

static const char *const exit_words[] = {
#define W(n, t) [ST_EXIT_##n] = t,
	ST_EXIT_HOW(W)
#undef W
};

static const char *const pool_words[] = {
#define W(n, t) [ST_POOL_##n] = t,
	ST_POOL_CLASS(W)
#undef W
};

static void say_end(struct emitter *e, const struct report *r)
{
	const struct model *m = r->model;
	const char *signal_name = m->exit_how == ST_EXIT_SIGNALED ? sigabbrev_np((int)m->exit_status) : NULL;
	struct emit_field how = emit_word("ended", m->exited ? exit_words[m->exit_how] : NULL);
	struct emit_field status = emit_count("status", m->exited ? (uint64_t)m->exit_status : ST_UNKNOWN);
	struct emit_field name = emit_word("signal", signal_name);
	struct emit_field ran = emit_time("ran", bytes_sub(m->end, m->begin));
	struct emit_field alive = emit_flag("running", r->summary->alive);

	if (r->summary->alive)
		emit_say(e, "it still runs: seen for {ran}", ran, how, status, name, alive);
	else if (!m->exited)
		emit_say(e, "how it ended is not in the trace; last event after {ran}", ran, how, status,
		         name, alive);
	else if (m->exit_how == ST_EXIT_EXITED)
		emit_say(e, "exited with status {status} after {ran}", ran, how, status, name, alive);
	else if (m->exit_how == ST_EXIT_SIGNALED)
		emit_say(e, "killed by signal {status} (SIG{signal}) after {ran}", ran, how, status, name,
		         alive);
	else
		emit_say(e, "{ended} after {ran}", ran, how, status, name, alive);
}

static void say_machine(struct emitter *e, const struct report *r)
{
	const struct model *m = r->model;

	emit_only(e, emit_word("pool_class", pool_words[m->pool]), emit_bytes("page_size", m->page_size),
	          emit_count("cpus", m->cpus), emit_count("uid", m->uid),
	          emit_count("rank", m->rank == MODEL_NONE ? ST_UNKNOWN : m->rank),
	          emit_count("world", m->world == MODEL_NONE ? ST_UNKNOWN : m->world));
	if (m->pool == ST_POOL_SIMULATED)
		emit_line(e, "the device is a simulated one (tests/simcuda)");
	if (r->budget.source == BUDGET_PROJECTED)
		emit_say(e, "judged as on an idle machine with {projected_pool} of memory",
		         emit_bytes("projected_pool", r->options->pool));
}

void report_version(struct emitter *e, const char *path)
{
	emit_only(e, emit_count("schema_version", SCHEMA_VERSION),
	          emit_word("sparktrace_version", ST_VERSION), emit_path("trace", path));
}

void report_head(struct emitter *e, const struct report *r)
{
	const char *line = model_info(r->model, "cmdline");
	const char *command = line ? line : model_info(r->model, "exe");

	report_version(e, r->path);
	emit_open(e, "program", command ? "sparktrace: what the run did to the pool" : "sparktrace");
	emit_say(e, command ? "{command} (pid {pid})" : "pid {pid}", emit_word("command", command),
	         emit_count("pid", r->model->pid));
	say_end(e, r);
	say_machine(e, r);
	emit_line(e, "1 GiB = 1024 MiB = 2^30 bytes; times are from the program's start");
	emit_close(e);
}
