/* SPDX-License-Identifier: Apache-2.0 */
/* Cards: what a trace says of whose it is. */
#include <analyzer/array.h>
#include <analyzer/event.h>
#include <analyzer/run.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beyond these the input is no recording of a program: 46 days at rest. */
#define SAMPLES_MAX  (1u << 22)
#define CHILDREN_MAX (1u << 16)
#define ROWS(table)  (sizeof(table) / sizeof((table)[0]))

/* Programs whose children are no run of theirs. */
static const char *const shells[] = {"sh",  "bash",    "dash",         "zsh",  "ksh",    "fish",
                                     "csh", "tcsh",    "login",        "sshd", "screen", "sudo",
                                     "su",  "systemd", "tmux: server", "init"};

/* What no machine has is damage, and as good as unknown. */
static uint64_t memory_of(uint64_t bytes)
{
	return bytes < UINT64_C(1) << 56 ? bytes : ST_UNKNOWN;
}

static void text_set(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return;
	free(*text);
	*text = copy;
}

static void note_root(struct run_card *card, const char *value)
{
	const char *name = strchr(value, ' ');

	text_set(&card->root, value);
	card->shell = false;
	for (size_t i = 0; name && i < ROWS(shells); i++)
		card->shell |= !strcmp(name + 1, shells[i]);
}

static void note_host(struct run_card *card, const char *value)
{
	text_set(&card->host, value);
}

static void note_command(struct run_card *card, const char *value)
{
	text_set(&card->command, value);
}

static void note_boot(struct run_card *card, const char *value)
{
	if (!card->boot_id[0])
		strncpy(card->boot_id, value, sizeof(card->boot_id) - 1);
}

static void note_fork(struct run_card *card, const char *value)
{
	(void)value;
	card->forked = true;
}

static void note_ring(struct run_card *card, const char *value)
{
	card->ring_bytes = memory_of(strtoull(value, NULL, 10));
}

/* A job has two numbers there: both make the identifier, whichever comes first. */
static void note_slurm(struct run_card *card, const char *value)
{
	char *old = card->keys[RUN_KEY_SLURM], joined[256];

	snprintf(joined, sizeof(joined), "%s.%s", old ? old : "", value);
	text_set(&card->keys[RUN_KEY_SLURM], joined);
}

static void note_pmix(struct run_card *card, const char *value)
{
	text_set(&card->keys[RUN_KEY_PMIX], value);
}

/* torchrun without --rdzv-id calls every run "none". */
static void note_elastic(struct run_card *card, const char *value)
{
	if (strcmp(value, "none") != 0)
		text_set(&card->keys[RUN_KEY_ELASTIC], value);
}

static void note_port(struct run_card *card, const char *value)
{
	text_set(&card->keys[RUN_KEY_PORT], value);
}

/* An `info` that a card wants: a row here. */
static const struct {
	const char *name;
	void (*note)(struct run_card *card, const char *value);
} infos[] = {
	{"run", note_root},
	{"host", note_host},
	{"cmdline", note_command},
	{"boot_id", note_boot},
	{"forked_from", note_fork},
	{"ring_bytes", note_ring},
	{"env.SLURM_JOB_ID", note_slurm},
	{"env.SLURM_STEP_ID", note_slurm},
	{"env.PMIX_NAMESPACE", note_pmix},
	{"env.TORCHELASTIC_RUN_ID", note_elastic},
	{"env.MASTER_PORT", note_port},
};

static void info_note(struct run_card *card, const struct st_record *record)
{
	const char *text;
	size_t length = record_text(record, &text);

	for (size_t i = 0; i < ROWS(infos); i++) {
		size_t name = strlen(infos[i].name);
		char value[4096];

		if (length <= name || memcmp(text, infos[i].name, name) != 0 || text[name] != '=')
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)(length - name - 1), text + name + 1);
		infos[i].note(card, value);
	}
}

static int child_note(struct run_card *card, const struct st_ev_child *record)
{
	if (!record->pid || record->how == ST_CHILD_EXEC || card->child_count == CHILDREN_MAX)
		return 0;
	if (array_reserve(&card->children, sizeof(*card->children), card->child_count, &card->child_room))
		return -ENOMEM;
	card->children[card->child_count++] = (uint32_t)record->pid;
	return 0;
}

/* The look at all other processes is taken less often than samples: its value stays until there is a new one. */
static int sample_note(struct run_card *card, const struct st_ev_sample *record)
{
	struct run_sample sample = {.time = record->r.time,
	                            .anon = memory_of(record->rss_anon),
	                            .others = memory_of(record->other_anon),
	                            .recorder = memory_of(record->recorder)};
	uint64_t last = card->sample_count ? card->samples[card->sample_count - 1].others : ST_UNKNOWN;

	if (card->sample_count == SAMPLES_MAX)
		return 0;
	if (array_reserve(&card->samples, sizeof(sample), card->sample_count, &card->sample_room))
		return -ENOMEM;
	sample.fresh = sample.others != ST_UNKNOWN && sample.others != last;
	card->samples[card->sample_count++] = sample;
	return 0;
}

/* A later one tells the pool's class anew; its start may be another reading of the clocks. */
static void process_note(struct run_card *card, const struct st_ev_process *record)
{
	if (card->pid)
		return;
	card->pid = record->pid;
	card->ppid = record->ppid;
	card->rank = record->rank;
	card->world = record->world;
	card->start = record->start;
}

static void block_note(struct run_card *card, const struct st_ev_block *record)
{
	if (!card->day)
		card->day = (int64_t)(record->realtime - record->monotonic);
}

static void time_note(struct run_card *card, const struct st_record *record)
{
	if (record->kind == ST_KIND_block || record->kind == ST_KIND_trailer)
		return;
	card->begin = card->end ? bytes_min(card->begin, record->time) : record->time;
	card->end = bytes_max(card->end, record->time);
	if (record->kind == ST_KIND_exit)
		card->gone = record->time;
}

/* The recorder of a program that ended by itself writes how, some milliseconds after its trailer. */
static bool end_is_coming(const struct run_card *card, const struct reader_summary *summary)
{
	return summary->has_trailer && !card->gone && !access(summary->head.ring, F_OK);
}

static int card_record(struct run_card *card, const struct st_record *record)
{
	time_note(card, record);
	switch (record->kind) {
	case ST_KIND_block:
		block_note(card, (const void *)record);
		return 0;
	case ST_KIND_process:
		process_note(card, (const void *)record);
		return 0;
	case ST_KIND_info:
		info_note(card, record);
		return 0;
	case ST_KIND_child:
		return child_note(card, (const void *)record);
	case ST_KIND_sample:
		return sample_note(card, (const void *)record);
	default:
		return 0;
	}
}

static bool is_known(const struct run_card *card)
{
	return card->pid && card->day;
}

static int card_make(const char *path, bool glance, struct run_card *ret_card)
{
	struct run_card card = {.rank = ST_UNKNOWN, .world = ST_UNKNOWN};
	const struct st_record *record;
	struct reader *reader;
	int error = reader_open(path, &reader);

	if (error)
		return error;
	card.path = strdup(path);
	if (!card.path)
		error = -ENOMEM;
	while (!error && !(glance && is_known(&card)) && (error = reader_next(reader, &record)) > 0)
		error = card_record(&card, record);
	memcpy(card.boot_id, reader_summary(reader)->head.boot_id, sizeof(card.boot_id) - 1);
	if (!card.pid)
		card.pid = reader_summary(reader)->head.pid;
	card.ending = end_is_coming(&card, reader_summary(reader));
	reader_free(reader);
	if (error) {
		card_release(&card);
		return error;
	}
	card.start = card.start ? card.start : card.begin;
	card.gone = card.gone ? card.gone : card.end;
	*ret_card = card;
	return 0;
}

int card_read(const char *path, struct run_card *ret_card)
{
	return card_make(path, false, ret_card);
}

int card_glance(const char *path, struct run_card *ret_card)
{
	return card_make(path, true, ret_card);
}

void card_release(struct run_card *card)
{
	free(card->path);
	free(card->root);
	free(card->host);
	free(card->command);
	free(card->children);
	free(card->samples);
	for (int i = 0; i < RUN_KEY_COUNT; i++)
		free(card->keys[i]);
	*card = (struct run_card){0};
}
