/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes of one run: who had what when all together had most. And what lies beside a report. */
#include "report.h"
#include "report_set.h"
#include "run.h"

#include <inttypes.h>

static const char *const exit_words[] = {
#define W(n, t) [ST_EXIT_##n] = t,
	ST_EXIT_HOW(W)
#undef W
};

static const struct emit_column columns[] = {
	{"process", false},    {NULL, false},    {NULL, false},    {NULL, false},
	{NULL, false},         {NULL, false},    {NULL, false},    {"end", false},
	{"had at most", true}, {NULL, false},    {NULL, false},    {"then", true},
	{"device", true},      {"pinned", true}, {"copies", true}, {"host", true},
};

/* "rank 0", or "pid 4711" where no launcher gave ranks. */
static void process_name(const struct run_card *card, char *ret_name, size_t size)
{
	if (card->rank != ST_UNKNOWN)
		snprintf(ret_name, size, "rank %" PRIu64 ", pid %" PRIu64, card->rank, card->pid);
	else
		snprintf(ret_name, size, "pid %" PRIu64, card->pid);
}

/* One word, and the status or signal where it is no good one. */
static void process_end(const struct model *m, char *ret_end, size_t size)
{
	if (!m->exited)
		snprintf(ret_end, size, "not seen");
	else if (m->exit_how == ST_EXIT_EXITED || m->exit_how == ST_EXIT_SIGNALED)
		snprintf(ret_end, size, "%s %" PRId64, m->exit_how == ST_EXIT_EXITED ? "exit" : "signal",
		         m->exit_status);
	else
		snprintf(ret_end, size, "%s", exit_words[m->exit_how]);
}

static void emit_process(struct emitter *e, const struct report *r, const struct run_part *part)
{
	const struct model *m = part->model;
	char name[64], end[32];

	process_name(part->card, name, sizeof(name));
	process_end(m, end, sizeof(end));
	emit_row(e, true,
	         (struct emit_field[]){
			 emit_word(NULL, name),
			 emit_count("rank", part->card->rank),
			 emit_count("pid", part->card->pid),
			 emit_count("ppid", part->card->ppid),
			 emit_path("trace", part->card->path),
			 emit_word("command", part->card->command),
			 emit_time("start", bytes_sub(part->card->start, r->model->begin)),
			 emit_word("ended", end),
			 emit_bytes("most", part->most),
			 emit_time("most_time", part->most ? report_since(r, part->most_at) : ST_UNKNOWN),
			 emit_word("phase", part->there ? report_phase(part->phase) : NULL),
			 report_range("demand", part->demand),
			 emit_bytes("device", part->layers.device),
			 emit_bytes("pinned", part->layers.pinned),
			 report_range("anon", part->layers.anon),
			 report_change("host", part->layers.host),
		 });
}

static void emit_files(struct emitter *e, const struct run_total *total)
{
	static const struct emit_column file_columns[] = {
		{NULL, false}, {NULL, false}, {NULL, false}, {NULL, false}, {NULL, false},
		{NULL, false}, {NULL, false}, {NULL, false}, {NULL, false},
	};

	emit_table(e, "files", file_columns, sizeof(file_columns) / sizeof(file_columns[0]));
	for (size_t i = 0; i < total->file_count; i++) {
		const struct run_file *file = &total->files[i];

		emit_row(e, false,
		         (struct emit_field[]){
				 emit_path("path", file->path),
				 emit_bytes("size", file->size),
				 emit_count("processes", file->processes),
				 report_range("cached", file->cached),
				 report_range("on_device", file->on_device),
				 report_range("anon", file->anon),
				 emit_bytes("staging", file->staging),
				 emit_bytes("copied", file->copied),
				 emit_bytes("mapped", file->mapped),
			 });
	}
	emit_table_end(e);
}

/* The weights as they were then: shared ones in the page cache once, on the device once for each process. */
static void say_files(struct emitter *e, const struct run_total *total)
{
	uint64_t size = 0, shared = 0;
	struct range on_device = range_of(0), cached = range_of(0);

	for (size_t i = 0; i < total->file_count; i++) {
		const struct run_file *file = &total->files[i];

		size += file->size;
		shared += file->processes > 1;
		on_device = range_add(on_device, file->on_device);
		cached = range_add(cached, file->cached);
	}
	emit_say(e,
	         total->file_count
	                 ? "Weight files: {file_count} of {files_size}, {shared_files} of them in several "
	                   "processes; then {files_cached} in the page cache, once, and "
	                   "{files_on_device} on the device."
	                 : NULL,
	         emit_count("file_count", total->file_count), emit_bytes("files_size", size),
	         emit_count("shared_files", shared), report_range("files_cached", cached),
	         report_range("files_on_device", on_device));
}

static void emit_total(struct emitter *e, const struct report *r)
{
	const struct moment *peak = &r->model->moments[MOMENT_DEMAND_PEAK];
	uint64_t sum = 0;

	for (size_t i = 0; i < r->run->part_count; i++)
		sum += r->run->parts[i].most;
	emit_open(e, "total", NULL);
	emit_say(e,
	         peak->valid ? "Together {demand} at most, at {time}; what each had at most adds up to "
	                       "{sum_of_peaks}."
	                     : NULL,
	         report_range("demand", peak->demand),
	         emit_time("time", peak->valid ? report_since(r, peak->time) : ST_UNKNOWN),
	         emit_bytes("sum_of_peaks", sum), report_range("modelled", r->model->load.modelled),
	         report_range("resident", r->model->moments[MOMENT_RESIDENT_PEAK].resident),
	         emit_bytes("device_peak", r->model->device_peak),
	         emit_bytes("pinned_peak", r->model->pinned_peak), emit_bytes("device", peak->layers.device),
	         emit_bytes("pinned", peak->layers.pinned), report_range("anon", peak->layers.anon),
	         report_change("host", peak->layers.host), report_change("others", peak->layers.others),
	         report_range("weight_cache", peak->layers.weight_cache),
	         emit_word("verdict", verdict_names[r->judgement.verdict]));
	emit_close(e);
}

/* What was left out, or lies beside it. */
static void say_beside(struct emitter *e, const struct report_beside *beside)
{
	if (!beside)
		return;
	if (beside->machines)
		emit_say(e, "Machine {machine} of {machines} of this run; machines are not added up.",
		         emit_count("machine", beside->machine), emit_count("machines", beside->machines));
	if (beside->traces)
		emit_say(e,
		         "Left out of {folder}: traces of other runs: {left_out}, the newest "
		         "{newest_left_out}.",
		         emit_path("folder", beside->folder), emit_count("left_out", beside->traces),
		         emit_count("runs_left_out", beside->runs),
		         emit_path("newest_left_out", beside->newest));
	if (beside->siblings)
		emit_say(e,
		         "Traces of the same run beside it: {siblings}; `sparktrace-analyze {folder}` takes "
		         "them together.",
		         emit_count("siblings", beside->siblings), emit_path("folder", beside->folder));
}

static void say_processes(struct emitter *e, const struct report *r)
{
	const struct run_total *total = r->run;
	const struct run_card *card = total->parts[0].card;
	const char *root = card->root ? card->root : NULL;

	report_version(e, r->path);
	emit_open(e, "run", "sparktrace: what the processes of a run did to the pool together");
	emit_say(e,
	         card->host ? "{processes_seen} processes on {host}, seen for {ran}; as each of its own: "
	                      "sparktrace-analyze TRACE"
	                    : "{processes_seen} processes, seen for {ran}",
	         emit_count("processes_seen", total->part_count), emit_word("host", card->host),
	         emit_word("boot_id", card->boot_id[0] ? card->boot_id : NULL), emit_word("root", root),
	         emit_count("world", card->world),
	         emit_time("ran", bytes_sub(r->model->end, r->model->begin)));
	emit_line(e, "1 GiB = 1024 MiB = 2^30 bytes; times are from the first program's start");
	emit_table(e, "processes", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < total->part_count; i++)
		emit_process(e, r, &total->parts[i]);
	emit_table_end(e);
}

void report_run(struct emitter *e, const struct report *r)
{
	bool something = r->beside && (r->beside->traces || r->beside->siblings || r->beside->machines);

	if (!r->run && !something)
		return;
	if (!r->run) {
		emit_open(e, "run", "What belongs to it?");
		say_beside(e, r->beside);
		emit_close(e);
		return;
	}
	say_processes(e, r);
	emit_total(e, r);
	say_files(e, r->run);
	emit_files(e, r->run);
	say_beside(e, r->beside);
	if (r->options->files || r->options->tensors != ST_UNKNOWN || r->options->at.kind != WHEN_NONE)
		emit_line(e, "--files, --tensors and --at show one process: name its trace alone.");
	emit_close(e);
}
