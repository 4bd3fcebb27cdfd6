/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/model_parts.h>
#include <analyzer/names.h>
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

static int build_passes(struct build *build)
{
	int error = names_create(&build->model->names);

	if (!error)
		error = build_scan(build);
	if (!error)
		error = build_survey(build);
	if (!error)
		error = build_measure(build);
	if (!error)
		error = failures_fill(build);
	if (!error)
		error = build_files(build);
	if (error)
		return error;
	samples_fill(build);
	build_load(build);
	build_needed(build);
	return 0;
}

static void build_release(struct build *build)
{
	residency_release(&build->residency);
	reader_order_release(&build->order);
	catalog_release(&build->catalog);
	free(build->revoked);
	free(build->caps);
}

int model_build(struct reader *reader, const struct model_options *options, struct model **ret_model)
{
	struct build *build = calloc(1, sizeof(*build));
	struct model *model = calloc(1, sizeof(*model));
	int error = -ENOMEM;

	if (build && model) {
		model->rank = model->world = MODEL_NONE;
		build->reader = reader;
		build->model = model;
		if (options)
			build->options = *options;
		error = build_passes(build);
		build_release(build);
	}
	free(build);
	if (error) {
		model_free(model);
		return error;
	}
	*ret_model = model;
	return 0;
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
	free(model->files);
	free(model->tensors);
	free(model->coverages);
	free(model->infos);
	free(model->failures);
	free(model->holders);
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
