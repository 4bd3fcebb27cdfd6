/* SPDX-License-Identifier: Apache-2.0 */
/* What SPARKTRACE_RELIEF changed: the program that was measured is not quite the one that runs without it. */
#include "report.h"

#include <string.h>

#define SETTING "setting.SPARKTRACE_RELIEF"

static const char *setting_of(const struct model *model)
{
	for (size_t i = 0; i < model->info_count; i++)
		if (strcmp(model->infos[i].name, SETTING) == 0)
			return model->infos[i].value;
	return NULL;
}

static const char *sentence_of(const struct relief *relief)
{
	if (relief->refused && !relief->maps)
		return "sparktrace was asked to change the program (SPARKTRACE_RELIEF={setting}) and could "
		       "not: {error}.";
	if (relief->maps && relief->dropped)
		return "sparktrace changed the program (SPARKTRACE_RELIEF={setting}): {mapped} of weights "
		       "mapped "
		       "read-only, of which {written} were made writable for {stores} stores; {dropped} of "
		       "page cache "
		       "given back.";
	if (relief->maps)
		return "sparktrace changed the program (SPARKTRACE_RELIEF={setting}): {mapped} of weights "
		       "mapped "
		       "read-only, of which {written} were made writable for {stores} stores.";
	if (relief->dropped)
		return "sparktrace changed the program (SPARKTRACE_RELIEF={setting}): {dropped} of page "
		       "cache given back.";
	return "SPARKTRACE_RELIEF={setting} found nothing to change.";
}

void report_relief(struct emitter *e, const struct report *r)
{
	const struct relief *relief = &r->model->relief;
	const char *setting = setting_of(r->model);
	bool on = setting && strcmp(setting, "off") != 0;

	emit_open(e, "relief", NULL);
	emit_say(e, on ? sentence_of(relief) : NULL, emit_flag("on", on), emit_word("setting", setting),
	         emit_count("mappings", relief->maps), emit_bytes("mapped", relief->mapped),
	         emit_count("stores", relief->stores), emit_bytes("written", relief->written),
	         emit_bytes("dropped", relief->dropped), emit_count("refused", relief->refused),
	         emit_word("error", relief->error ? strerrorname_np(relief->error) : NULL));
	emit_close(e);
}
