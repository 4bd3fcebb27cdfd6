/* SPDX-License-Identifier: Apache-2.0 */
/* The third pass, moments: the state of everything at one instant. */
#include <analyzer/event.h>
#include <analyzer/model_parts.h>
#include <string.h>

/* The stack of a record, where its kind has one. */
uint32_t record_stack(const struct st_record *record)
{
	const struct event_kind *kind = event_kind_find(record->kind);

	for (size_t i = kind ? kind->field_count : 0; i-- > 0;)
		if (!strcmp(kind->fields[i].name, "stack"))
			return (uint32_t)record_field(record, i);
	return 0;
}

struct instant build_instant(const struct build *build)
{
	const struct residency *residency = &build->residency;

	return (struct instant){
		.time = build->record->time,
		.thread = build->record->thread,
		.stack = record_stack(build->record),
		.file = residency->last_file,
		.tensor = residency->last_tensor,
		.phase = build->phase,
	};
}

void moment_date(struct moment *moment, const struct instant *instant)
{
	moment->time = instant->time;
	moment->thread = instant->thread;
	moment->stack = instant->stack;
	moment->file = instant->file;
	moment->tensor = instant->tensor;
	moment->phase = (enum phase)instant->phase;
}

static struct moment moment_state(const struct build *build)
{
	const struct ledger *ledger = &build->ledger;
	const struct amounts *total = &build->residency.total.now;
	struct range anon = ledger_anon(ledger);
	struct range extra = ledger_resident_extra(ledger);

	return (struct moment){
		.valid = true,
		.index = build->index,
		.phase = build->phase,
		.layers = ledger_layers(ledger),
		.demand = ledger_demand(ledger),
		.modelled = ledger_modelled(ledger),
		.resident =
			range_add(range_add(ledger_demand(ledger), range_of(ledger_cache(ledger))), extra),
		.on_device = residency_device(&build->residency),
		.reclaimable = residency_reclaimable(&build->residency),
		.duplicated = range_add(anon, range_of(total->staging)),
		.mapped = build->residency.replay.weights_mapped,
	};
}

struct moment build_moment(const struct build *build)
{
	struct moment moment = moment_state(build);
	struct instant instant = build_instant(build);

	moment_date(&moment, &instant);
	return moment;
}
