/* SPDX-License-Identifier: Apache-2.0 */
/* The second pass: what only the end of a trace tells of its middle. */
#include <analyzer/model_parts.h>
#include <stdlib.h>

static void survey_refused(void *context, const struct st_record *record, const struct refusal *refusal)
{
	struct build *build = context;

	requests_refuse(&build->requests, record, refusal, build->index, build->residency.replay.freed);
}

static void survey_granted(void *context, const struct st_record *record, uint64_t bytes)
{
	struct build *build = context;

	build->granted = true;
	requests_grant(&build->requests, record, bytes, build->residency.replay.freed);
}

/* Bytes of weight files touched, and those of them that were loaded. */
static void survey_sums(const struct build *build, uint64_t *ret_total, uint64_t *ret_loaded)
{
	uint64_t total = 0, loaded = 0;

	for (uint32_t i = 0; i < build->residency.weight_room && i < build->catalog.file_count; i++) {
		const struct weight *weight = &build->residency.weights[i];
		uint64_t payload = build->catalog.files[i].payload;
		uint64_t bytes = weight->loaded.bytes + weight->loaded_vague;

		if (!weight->first_touch)
			continue;
		total += payload;
		loaded += bytes_min(payload,
		                    build->phases.to_device ? bytes : bytes_max(bytes, weight->read.bytes));
	}
	*ret_total = total + build->absent.waiting;
	*ret_loaded = bytes_min(total, loaded + shared_loaded_all(&build->residency) +
	                                       build->residency.unknown_copied);
}

static void thread_note(struct build *build, uint32_t thread)
{
	for (uint32_t i = 0; i < build->thread_count; i++)
		if (build->threads[i] == thread)
			return;
	if (build->thread_count < BUILD_THREADS)
		build->threads[build->thread_count++] = thread;
}

/* Torch keeps one pinned block for each power of two: the sum of those that the tensors need. */
static uint64_t slots_sum(const struct catalog *catalog)
{
	uint64_t classes = 0;

	for (size_t i = 0; i < catalog->tensor_count; i++) {
		uint64_t size = catalog->tensors[i].size, slot = 1;

		if (!catalog->files[catalog->tensors[i].file].opened)
			continue;
		while (slot < size && slot < UINT64_C(1) << 50)
			slot *= 2;
		classes |= size ? slot : 0;
	}
	return classes;
}

/* When each file was touched for the last time; without memory for that nobody asks. */
static void done_keep(struct build *build)
{
	size_t count = bytes_min(build->residency.weight_room, build->catalog.file_count);

	build->done_times = calloc(count + 1, sizeof(*build->done_times));
	if (!build->done_times)
		return;
	build->done_count = count;
	for (size_t i = 0; i < count; i++)
		build->done_times[i] = build->residency.weights[i].last_touch;
}

static int survey_finish(struct build *build)
{
	const struct request *fatal;
	uint64_t total, loaded;
	int error;

	requests_finish(&build->requests, build->badly || !build->model->exited);
	fatal = requests_fatal(&build->requests);
	error = build_shards(build);
	if (error)
		return error;
	survey_sums(build, &total, &loaded);
	if ((build->badly || fatal) && phases_died_loading(&build->phases, total - loaded, total))
		phases_set_unfinished(&build->phases);
	/* Refused on the device before the first copy: that is where the weights were to go. */
	if (fatal && build->phases.unfinished)
		build->phases.to_device = true;
	phases_finish(&build->phases);
	build->model->load.slots = slots_sum(&build->catalog);
	build->spare = build->model->load.slots * build->thread_count;
	done_keep(build);
	whatif_survey(build);
	build->source_stacks = build->residency.held.stacks;
	build->judged = build->residency.held.judged;
	build->residency.held.judged = (struct livemap){0};
	build->fills = build->residency.fills;
	build->residency.fills = (struct livemap){0};
	build->caps = build->residency.caps;
	build->cap_count = build->residency.cap_count;
	build->residency.caps = NULL;
	return 0;
}

static int cap_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct anon_cap *)left)->serial, b = ((const struct anon_cap *)right)->serial;

	return a < b ? -1 : a > b;
}

bool build_converts(void *stack_stages, uint32_t stack)
{
	enum stage stage = stack_stage(stack_stages, stack);

	return stage == STAGE_CONVERSION || stage == STAGE_QUANTISE || stage == STAGE_REPACK;
}

int build_survey(struct build *build)
{
	struct replay_watch watch = {.context = build, .refused = survey_refused, .granted = survey_granted};
	const struct st_record *record;
	int error;

	reader_order_init(&build->order, build->reader);
	requests_init(&build->requests);
	residency_init(&build->residency, &build->catalog, &watch);
	build->residency.survey = true;
	build->residency.converts = build_converts;
	build->residency.converts_context = build->model->stack_stages;
	build->residency.touches = &build->touches;
	build->residency.replay.revoked = build->revoked;
	build->residency.replay.revoked_count = build->revoked_count;
	build->index = 0;
	while ((error = reader_order_next(&build->order, &record)) > 0) {
		build->index++;
		build->granted = false;
		build->residency.loading = build->phases.first_weight && !build->phases.closed;
		error = residency_record(&build->residency, record);
		if (error)
			break;
		phases_record(&build->phases, record, build->index, &build->residency, build->granted);
		if (build->residency.signs & SIGN_BYTES && !build->phases.closed)
			thread_note(build, record->thread);
	}
	if (!error)
		error = survey_finish(build);
	residency_release(&build->residency);
	reader_order_release(&build->order);
	if (build->cap_count)
		qsort(build->caps, build->cap_count, sizeof(*build->caps), cap_compare);
	return error;
}
