/* SPDX-License-Identifier: Apache-2.0 */
/* Rungs 3 and 4: another method, a smaller model, more machines. */
#include "ladder_rungs.h"

#include <math.h>

/* Bytes a parameter: NF4 with and without double quantisation; bf16. */
#define NF4_LEAST 0.516
#define NF4_MOST  0.5625
#define BF16      2.0

/* Gradients and optimizer states, bytes a parameter: 8-bit Adam in bf16; mixed precision with fp32 gradients.
 */
#define STATES_LEAST 4.0
#define STATES_MOST  16.0

static uint64_t scaled(uint64_t count, double factor)
{
	double bytes = (double)count * factor;

	return bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX;
}

static uint64_t parameters_of(const struct situation *s)
{
	uint64_t stored = s->model->load.parameters;

	if (s->options->parameters != ST_UNKNOWN)
		return s->options->parameters;
	return stored ? stored : ST_UNKNOWN;
}

/* Half of the fp32 weights: a frozen base is kept in bf16. */
static uint64_t fp32_excess(const struct model *model)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < model->tensor_count; i++)
		if (model->tensors[i].dtype == ST_DTYPE_F32)
			bytes = bytes_add(bytes, model->tensors[i].size / 2);
	return bytes;
}

static uint64_t half_step_of(const struct situation *s, uint64_t parameters)
{
	if (range_is_open(s->optimizer) || parameters == ST_UNKNOWN || s->in_load)
		return ST_UNKNOWN;
	/* bf16 gradients stay, 8-bit states are 2 bytes a parameter: the rest of what there is goes. */
	return bytes_sub(s->optimizer.lo, scaled(parameters, 2 * BF16));
}

/* Gradients and optimizer states of the frozen parameters. */
static struct range frozen_states(const struct situation *s, uint64_t parameters)
{
	uint64_t trainable = s->options->trainable_parameters;
	double frozen;

	if (parameters == ST_UNKNOWN || !parameters || trainable == ST_UNKNOWN)
		return (struct range){0, bytes_min(s->optimizer.hi, s->growth.hi)};
	frozen = trainable < parameters ? 1 - (double)trainable / (double)parameters : 0;
	if (!range_is_open(s->optimizer))
		return (struct range){scaled(s->optimizer.lo, frozen), scaled(s->optimizer.hi, frozen)};
	return (struct range){bytes_min(scaled(parameters, STATES_LEAST * frozen), s->growth.hi),
	                      bytes_min(scaled(parameters, STATES_MOST * frozen), s->growth.hi)};
}

static void full_to_lora(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	uint64_t parameters = parameters_of(s), excess = fp32_excess(s->model);
	struct range states = frozen_states(s, parameters);

	ladder->method.to = METHOD_LORA;
	ladder->method.half_step = half_step_of(s, parameters);
	if (s->in_load)
		states = range_of(0);
	r->relief = range_add(states, range_of(excess));
	r->needed = range_sub(s->need, r->relief);
	r->reason = "bf16 LoRA: no gradients and optimizer states for frozen parameters, weights in bf16";
	if (!range_is_exact(states)) {
		r->state = RUNG_UNKNOWN;
		r->missing = s->options->trainable_parameters == ST_UNKNOWN
		                     ? "parameters in all and trained (--parameters, --trainable-parameters)"
		                     : "bytes of gradients and optimizer states (--optimizer-bytes)";
	}
	if (!r->relief.hi)
		rung_refuse(r, "the peak lies in the load: there were no gradients and optimizer states yet");
}

/* What bf16 costs over the quantised form. */
static struct range quantised_saving(const struct situation *s)
{
	uint64_t linear = s->options->linear_parameters, most = linear;
	double given = s->options->quantised_bytes;

	if (linear == ST_UNKNOWN) {
		linear = 0;
		most = parameters_of(s);
	}
	return (struct range){scaled(linear, BF16 - (given > 0 ? given : NF4_MOST)),
	                      most == ST_UNKNOWN ? UINT64_MAX
	                                         : scaled(most, BF16 - (given > 0 ? given : NF4_LEAST))};
}

static void lora_to_qlora(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	/* The quantiser holds two copies of the largest tensor while it works. */
	uint64_t transient = bytes_add(s->model->load.largest_tensor, s->model->load.largest_tensor);
	struct range saving = quantised_saving(s);

	ladder->method.to = METHOD_QLORA;
	r->relief = range_sub(saving, range_of(transient));
	r->relief.hi = bytes_min(r->relief.hi, s->need.hi);
	r->needed = range_sub(s->need, r->relief);
	r->reason = "QLoRA: linear layers quantised, twice the largest tensor in passing";
	if (s->options->linear_parameters == ST_UNKNOWN) {
		r->state = RUNG_UNKNOWN;
		r->missing = "parameters in linear layers (--linear-parameters)";
	}
	if (!r->relief.hi)
		rung_refuse(r, "quantising would take more in passing than it saves");
}

/*
 * Bytes that the quantiser may have held: in the load whatever is neither weights nor context, in the steps
 * whatever was allocated there and is no optimizer state, for layers are dequantised in passing.
 */
static uint64_t transients_most(const struct situation *s)
{
	uint64_t steps = bytes_sub(s->growth.hi, range_is_open(s->optimizer) ? 0 : s->optimizer.lo);

	return s->in_load ? s->model->load.device_other : steps;
}

/* A QLoRA run that died: its quantiser may be what was too much, so bf16 LoRA comes first. */
static void qlora_to_lora(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	struct range cost = quantised_saving(s);
	uint64_t most = bytes_sub(transients_most(s), cost.lo);

	ladder->method.to = METHOD_LORA;
	r->needed.hi = bytes_add(s->need.hi, cost.hi);
	if (most)
		rung_doubt(r, most, "bf16 LoRA first: it needs no buffers of a quantiser",
		           "which device bytes were the quantiser's (stacks of the load)");
	else
		rung_refuse(r, "bf16 LoRA would need more, and no tier is below QLoRA");
}

void rung_method(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	ladder->method.from = (enum method)s->options->method;
	switch ((enum method)s->options->method) {
	case METHOD_FULL:
		full_to_lora(s, ladder, r);
		break;
	case METHOD_LORA:
		lora_to_qlora(s, ladder, r);
		break;
	case METHOD_QLORA:
		qlora_to_lora(s, ladder, r);
		break;
	case METHOD_UNKNOWN:
	case METHOD_COUNT:
		rung_doubt(r, s->need.hi, "full fine-tune, bf16 LoRA or QLoRA is not in the trace",
		           "the method (--method)");
		break;
	}
}

/* Weights on the device, as many as the run needed. */
static struct range weights_of(const struct situation *s)
{
	const struct moment *settled = &s->model->moments[MOMENT_SETTLED];

	if (s->in_load && s->died)
		return s->model->load.would_load;
	return settled->valid ? settled->on_device : s->model->load.loaded;
}

static struct range shared_bytes(const struct situation *s)
{
	struct range optimizer = s->optimizer;

	if (range_is_open(optimizer))
		optimizer = (struct range){0, s->growth.hi};
	if (s->in_load)
		optimizer = range_of(0);
	return range_add(weights_of(s), optimizer);
}

static void plan_sparks(const struct situation *s, struct sparks_plan *plan, struct rung_result *r)
{
	uint64_t shared = plan->shared.lo, rest = bytes_sub(s->need.hi, shared),
		 room = bytes_sub(s->room, rest);
	uint64_t kept;

	if (!room) {
		plan->sparks = 0;
		rung_refuse(r, "what cannot be sharded exceeds the budget");
		return;
	}
	plan->model_share = (double)room / (double)shared;
	plan->sparks = shared / room + (shared % room != 0);
	kept = shared / plan->sparks + (shared % plan->sparks != 0);
	r->relief = range_of(shared - kept);
	r->needed = range_sub(s->need, r->relief);
	r->reason = "FSDP shards weights, gradients and states; plain DDP frees "
		    "nothing; no tensor parallel across the link";
}

void rung_sparks(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	struct sparks_plan *plan = &ladder->sparks;

	plan->shared = shared_bytes(s);
	if (s->budget->missing)
		rung_doubt(r, plan->shared.hi, "more Sparks share the weights", s->budget->missing);
	else if (!plan->shared.lo)
		rung_doubt(r, s->need.hi, "more Sparks share the weights",
		           weights_of(s).hi ? "how much of the weights was on the device: not every copy "
		                              "could be followed"
		                            : "the weights: none were seen in files");
	else if (s->need.hi <= s->room)
		rung_refuse(r, "one Spark has room for it");
	else
		plan_sparks(s, plan, r);
}
