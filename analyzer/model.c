/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/model_parts.h>
#include <analyzer/model_snapshot.h>
#include <analyzer/names.h>
#include <analyzer/stages_stack.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int failures_fill(struct build *build)
{
	struct model *model = build->model;
	const struct request *fatal = requests_fatal(&build->requests), *chosen = fatal;

	model->failures = calloc(build->requests.count + 1, sizeof(*model->failures));
	if (!model->failures)
		return -ENOMEM;
	model->failure_count = build->requests.count;
	model->failures_dropped = build->requests.dropped;
	for (size_t i = 0; i < build->requests.count; i++) {
		const struct request *request = &build->requests.kept[i];

		model->failures[i] = request->failure;
		model->attempted_peak = bytes_max(model->attempted_peak, request->failure.attempted);
		if (!chosen && request->failure.outcome != FAILURE_RETRIED)
			chosen = request;
	}
	if (!chosen && build->requests.count)
		chosen = &build->requests.kept[0];
	if (chosen)
		model->moments[MOMENT_FAILURE] = chosen->failure.at;
	return 0;
}

static void samples_fill(struct build *build)
{
	struct model *model = build->model;
	const struct ledger *ledger = &build->ledger;

	model->samples = ledger->samples;
	if (ledger->samples) {
		model->first = ledger->first;
		model->last = ledger->last;
	} else {
		memset(&model->first, 0xff, sizeof(model->first));
		model->last = model->first;
	}
	model->host_seen = ledger->host_seen;
	model->others_seen = ledger->others_seen;
	model->lowest_available = ledger->lowest_available;
	model->lowest_free = ledger->lowest_free;
	model->swap_used = ledger->swap_used;
	model->own = ledger->own_peak;
}

static int build_look_ahead(struct build *build)
{
	int error = names_create(&build->model->names);

	if (!error)
		error = stack_stages_create(build->model->names, &build->model->stack_stages);
	if (!error)
		error = build_scan(build);
	if (!error)
		error = build_survey(build);
	if (!error)
		build_measure_begin(build);
	return error;
}

static int build_measure(struct build *build)
{
	const struct st_record *record;
	int error;

	while ((error = reader_order_next(&build->order, &record)) > 0) {
		error = build_measure_record(build, record);
		if (error)
			return error;
	}
	if (!error)
		build_measure_finish(build);
	return error;
}

int build_complete(struct build *build)
{
	int error = failures_fill(build);

	if (!error)
		error = build_files(build);
	if (!error)
		error = build_loaders(build);
	if (error)
		return error;
	samples_fill(build);
	build_load(build);
	build_needed(build);
	error = build_load_parts(build);
	return error ? error : transients_fill(&build->transients, build->model);
}

struct model *build_close(struct build *build)
{
	struct model *model = build->model;

	residency_release(&build->residency);
	transients_release(&build->transients);
	reader_order_release(&build->order);
	catalog_release(&build->catalog);
	free(build->revoked);
	free(build->caps);
	free(build->done_times);
	touches_release(&build->touches);
	livemap_release(&build->judged);
	livemap_release(&build->fills);
	free(build);
	return model;
}

static void build_abandon(struct build *build)
{
	if (build)
		model_free(build_close(build));
}

int build_open(struct reader *reader, const struct model_options *options, struct build **ret_build)
{
	struct build *build = calloc(1, sizeof(*build));
	int error;

	if (!build)
		return -ENOMEM;
	build->model = calloc(1, sizeof(*build->model));
	if (!build->model) {
		free(build);
		return -ENOMEM;
	}
	build->model->rank = build->model->world = MODEL_NONE;
	build->reader = reader;
	if (options)
		build->options = *options;
	error = build_look_ahead(build);
	if (error)
		build_abandon(build);
	else
		*ret_build = build;
	return error;
}

int model_build(struct reader *reader, const struct model_options *options, struct model **ret_model)
{
	struct build *build;
	int error = build_open(reader, options, &build);

	if (error)
		return error;
	error = build_measure(build);
	if (!error)
		error = build_complete(build);
	if (!error && build->options.at.kind != WHEN_NONE)
		error = build_at(build);
	if (error)
		build_abandon(build);
	else
		*ret_model = build_close(build);
	return error;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < model->file_count; i++) {
		free((char *)model->files[i].path);
		free(model->files[i].mappings);
	}
	for (size_t i = 0; i < model->tensor_count; i++)
		free((char *)model->tensors[i].name);
	for (size_t i = 0; i < model->coverage_count; i++)
		free((char *)model->coverages[i].text);
	for (size_t i = 0; i < model->info_count; i++)
		free((char *)model->infos[i].name);
	for (size_t i = 0; i < model->index_count; i++)
		free((char *)model->indexes[i].path);
	free(model->files);
	free(model->tensors);
	free(model->indexes);
	free(model->loaders);
	free(model->coverages);
	free(model->infos);
	free(model->failures);
	free(model->holders);
	free(model->transients);
	free(model->load_parts);
	snapshot_free(model->at);
	stack_stages_free(model->stack_stages);
	names_free(model->names);
	free(model);
}

const char *model_info(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->info_count; i++)
		if (!strcmp(model->infos[i].name, name))
			return model->infos[i].value;
	return NULL;
}
