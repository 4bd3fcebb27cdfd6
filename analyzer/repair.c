/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/repair.h>

#include <analyzer/version.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a load must show for a repair to be one. */
enum sign {
	SIGN_COPY_ON_WRITE = 1, /* copies out of private writable mappings left anonymous pages */
	SIGN_BY_PACKAGE = 2,    /* it was the row's package that copied or read them */
	SIGN_READ_TO_HEAP = 4,  /* weights were read into the heap and copied from there */
	SIGN_PINNED_FILE = 8,   /* a whole file was in pinned memory */
	SIGN_STAGED = 16,  /* weights were staged or converted outside of pinned memory, and not read there */
	SIGN_THREADS = 32, /* by several threads */
	SIGN_KEPT = 64,    /* files stayed mapped until all was loaded */
	SIGN_CACHED = 128, /* weights were in the page cache and on the device at once */
	SIGN_SAFETENSORS = 256,     /* the files are safetensors */
	SIGN_TORCH_FILE = 512,      /* the files are torch's own */
	SIGN_UNKNOWN_LOADER = 1024, /* no loader is known */
	SIGN_SLICED = 4096,         /* these copies went through safetensors' get_slice() */
	SIGN_WHOLE = 8192,          /* these copies were of whole tensors */
	SIGN_UNWRITABLE = 2048,     /* nothing was copied out of private writable mappings */
};

#define COPY_ON_WRITE  SIGN_COPY_ON_WRITE
#define BY_PACKAGE     SIGN_BY_PACKAGE
#define READ_TO_HEAP   SIGN_READ_TO_HEAP
#define PINNED_FILE    SIGN_PINNED_FILE
#define STAGED         SIGN_STAGED
#define THREADS        SIGN_THREADS
#define KEPT           SIGN_KEPT
#define CACHED         SIGN_CACHED
#define SAFETENSORS    SIGN_SAFETENSORS
#define TORCH_FILE     SIGN_TORCH_FILE
#define UNKNOWN_LOADER SIGN_UNKNOWN_LOADER
#define UNWRITABLE     SIGN_UNWRITABLE
#define SLICED         SIGN_SLICED
#define WHOLE          SIGN_WHOLE

static const struct repair_row rows[] = {
#define REPAIR(id, package, since, before, signs, effect, kind, change, type, source) \
	{id, package, since, before, signs, EFFECT_##effect, REPAIR_##kind, change, type, source},
#include "repairs.def"
#undef REPAIR
};

const char *const repair_kind_names[] = {"environment", "upgrade", "argument", "code"};

const char *const effect_meanings[EFFECT_COUNT] = {
#define E(name, meaning) meaning,
	MODEL_EFFECTS(E)
#undef E
};

const char *const effect_names[EFFECT_COUNT] = {
#define E(name, meaning) #name,
	MODEL_EFFECTS(E)
#undef E
};

/* Half of what the loader loaded is what it does. */
static bool is_most(uint64_t bytes, const struct loader *loader)
{
	return bytes && bytes >= loader->bytes / 2;
}

static unsigned signs_of(const struct model *model, const struct loader *loader)
{
	const struct load *load = &model->load;
	const struct weight_file *file = &model->files[loader->first_file];
	uint64_t heap = loader->copied[COPY_HOST] + loader->copied[COPY_OTHER];
	bool read = is_most(loader->read, loader), copied = is_most(heap, loader);
	unsigned signs = 0;

	signs |= load->anon.hi && loader->copied[COPY_PRIVATE_WRITABLE] ? SIGN_COPY_ON_WRITE : 0;
	signs |= read && copied ? SIGN_READ_TO_HEAP : 0;
	signs |= load->pinned_sources >= load->largest_file / 2 && load->largest_file &&
	                         load->pinned_sources > load->slots
	                 ? SIGN_PINNED_FILE
	                 : 0;
	signs |= !read && copied ? SIGN_STAGED : 0;
	signs |= load->threads > 1 ? SIGN_THREADS : 0;
	signs |= loader->kept ? SIGN_KEPT : 0;
	signs |= load->reclaimable.hi ? SIGN_CACHED : 0;
	signs |= file->format == ST_FILE_SAFETENSORS ? SIGN_SAFETENSORS : 0;
	signs |= file->format == ST_FILE_TORCH ? SIGN_TORCH_FILE : 0;
	signs |= loader->sliced >= loader->copied[COPY_PRIVATE_WRITABLE] / 2 && loader->sliced ? SIGN_SLICED
	                                                                                       : SIGN_WHOLE;
	signs |= !loader->part_count ? SIGN_UNKNOWN_LOADER : 0;
	signs |= !loader->copied[COPY_PRIVATE_WRITABLE] ? SIGN_UNWRITABLE : 0;
	return signs;
}

static const struct loader_part *part_named(const struct loader *loader, const char *name)
{
	for (unsigned i = 0; i < loader->part_count; i++)
		if (!strcmp(loader->parts[i].known, name))
			return &loader->parts[i];
	return NULL;
}

static bool version_fits(const struct repair_row *row, const char *version)
{
	if (!row->since && !row->before)
		return true;
	return version && (!row->since || version_compare(version, row->since) >= 0) &&
	       (!row->before || version_compare(version, row->before) < 0);
}

/* Was it this part that did what the row is about? */
static bool part_did(const struct repair_row *row, const struct loader *loader,
                     const struct loader_part *part)
{
	if (row->signs & SIGN_COPY_ON_WRITE)
		return part->direct >= loader->copied[COPY_PRIVATE_WRITABLE] / 2 && part->direct;
	return !(row->signs & SIGN_READ_TO_HEAP) || is_most(part->read, loader);
}

static bool row_applies(const struct repair_row *row, const struct loader *loader, unsigned signs,
                        const struct loader_part **ret_part)
{
	const struct loader_part *part = row->package ? part_named(loader, row->package) : NULL;

	if (row->package) {
		if (!part || !version_fits(row, part->version))
			return false;
		signs |= part_did(row, loader, part) ? SIGN_BY_PACKAGE : 0;
	}
	*ret_part = part;
	return (signs & row->signs) == row->signs;
}

/* End by end: the two move together, so that their difference is no wider than either. */
static struct range relief_of(struct range now, struct range then)
{
	struct range relief = {bytes_sub(now.lo, then.lo),
	                       range_is_open(now) ? UINT64_MAX : bytes_sub(now.hi, then.hi)};

	return (struct range){bytes_min(relief.lo, relief.hi), bytes_max(relief.lo, relief.hi)};
}

static struct repair repair_make(const struct model *model, const struct repair_row *row)
{
	const struct load *load = &model->load;
	const struct outcome *then = &load->outcomes[row->effect];
	struct range modelled = load->finished ? load->modelled : model->needed.modelled;
	struct repair repair = {.row = row,
	                        .predicted = *then,
	                        .relief = relief_of(model->needed.demand, then->demand),
	                        .relief_load = relief_of(modelled, then->modelled),
	                        .relief_cached = relief_of(load->resident, then->resident),
	                        .factor_lo = NAN,
	                        .factor_hi = NAN};

	if (load->weights) {
		repair.factor_lo = (double)then->modelled.lo / (double)load->weights;
		repair.factor_hi = range_is_open(then->modelled)
		                           ? INFINITY
		                           : (double)then->modelled.hi / (double)load->weights;
	}
	return repair;
}

/* Less than this is no relief to speak of. */
#define NOTHING (UINT64_C(1) << 20)

static bool repair_helps(const struct repair *repair)
{
	return repair->predicted.valid &&
	       (repair->relief.hi >= NOTHING || repair->relief_load.hi >= NOTHING ||
	        (repair->relief_cached.hi >= NOTHING && repair->row->signs & SIGN_CACHED));
}

static int repair_compare(const void *left, const void *right)
{
	const struct repair *a = left, *b = right;
	uint64_t x = a->predicted.demand.hi / NOTHING, y = b->predicted.demand.hi / NOTHING;
	bool a_drops = a->row->signs & SIGN_CACHED, b_drops = b->row->signs & SIGN_CACHED;

	/* The cache is no demand: what gives it back is an extra. */
	if (a_drops != b_drops)
		return a_drops ? 1 : -1;
	if (x != y)
		return x < y ? -1 : 1;
	if (a->row->kind != b->row->kind)
		return a->row->kind < b->row->kind ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static bool already_there(const struct repairs *repairs, const struct repair_row *row)
{
	for (unsigned i = 0; i < repairs->count; i++)
		if (repairs->found[i].row == row)
			return true;
	return false;
}

void repairs_find(const struct model *model, struct repairs *ret_repairs)
{
	*ret_repairs = (struct repairs){0};
	for (size_t i = 0; i < model->loader_count; i++) {
		const struct loader *loader = &model->loaders[i];
		unsigned signs = signs_of(model, loader);

		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			const struct loader_part *part;
			struct repair repair;

			if (!row_applies(&rows[k], loader, signs, &part) ||
			    already_there(ret_repairs, &rows[k]) || ret_repairs->count == REPAIRS_MAX)
				continue;
			repair = repair_make(model, &rows[k]);
			repair.loader = loader;
			repair.part = part;
			if (repair_helps(&repair))
				ret_repairs->found[ret_repairs->count++] = repair;
		}
	}
	qsort(ret_repairs->found, ret_repairs->count, sizeof(ret_repairs->found[0]), repair_compare);
}

const struct repair *repairs_best(const struct repairs *repairs)
{
	return repairs->count && repairs->found[0].relief.hi >= NOTHING ? &repairs->found[0] : NULL;
}

/* The run's own command line; the shim has to be in it. */
static char *command_line(const struct model *model)
{
	const char *line = model_info(model, "cmdline"), *preload = model_info(model, "env.LD_PRELOAD");
	char *text = NULL;
	int length;

	if (!line)
		return strdup("<your command>");
	length = preload ? asprintf(&text, "LD_PRELOAD=%s %s", preload, line) : asprintf(&text, "%s", line);
	return length < 0 ? NULL : text;
}

char *repair_command(const struct model *model, const struct repair *repair)
{
	const char *type = repair->row->type, *gap = type ? strstr(type, "%s") : NULL;
	char *line, *text = NULL;
	int length;

	if (!type || !gap)
		return type ? strdup(type) : NULL;
	line = command_line(model);
	if (!line)
		return NULL;
	length = asprintf(&text, "%.*s%s%s", (int)(gap - type), type, line, gap + 2);
	free(line);
	return length < 0 ? NULL : text;
}
