/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/run_wait.h>
#include <time.h>
#include <unistd.h>

#define END_PAUSE_NS 50000000
#define END_LOOKS    10

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = END_PAUSE_NS}, NULL);
}

int card_read_whole(const char *path, struct run_card *ret_card)
{
	int error = card_read(path, ret_card);

	for (int i = 0; !error && ret_card->ending && i < END_LOOKS; i++) {
		pause_a_little();
		card_release(ret_card);
		error = card_read(path, ret_card);
	}
	return error;
}

static int model_read(const char *path, const char *ring, const struct model_options *options,
                      const struct model_watch *watch, struct reader **ret_reader, struct model **ret_model)
{
	struct reader *reader;
	int error = ring ? reader_open_with_ring(path, ring, &reader) : reader_open(path, &reader);

	if (error)
		return error;
	if (watch->begin)
		watch->begin(reader);
	error = model_build(reader, options, ret_model);
	if (watch->end)
		watch->end();
	if (error)
		reader_free(reader);
	else
		*ret_reader = reader;
	return error;
}

static bool end_is_coming(const struct reader *reader, const struct model *model)
{
	const struct reader_summary *summary = reader_summary(reader);

	return summary->has_trailer && !model->exited && !access(summary->head.ring, F_OK);
}

int model_read_whole(const char *path, const char *ring, const struct model_options *options,
                     const struct model_watch *watch, struct reader **ret_reader, struct model **ret_model)
{
	struct reader *reader;
	struct model *model;
	int error;

	for (int i = 0; !(error = model_read(path, ring, options, watch, &reader, &model)); i++) {
		if (i == END_LOOKS || !end_is_coming(reader, model)) {
			*ret_reader = reader;
			*ret_model = model;
			break;
		}
		model_free(model);
		reader_free(reader);
		pause_a_little();
	}
	return error;
}

/* A trace of which parts are gone, or yet to come, proves no fit. */
const char *trace_blind_spot(const struct reader_summary *summary)
{
	if (summary->damaged_blocks || summary->missing_blocks)
		return "the blocks of the trace that are damaged or missing";
	if (summary->alive)
		return "the rest of the run: the program still runs";
	return NULL;
}
