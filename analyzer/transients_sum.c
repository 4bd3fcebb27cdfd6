/* SPDX-License-Identifier: Apache-2.0 */
/* Transients: what they came to, by site and by kind, and the most at once. */
#include <analyzer/transients.h>
#include <errno.h>
#include <stdlib.h>

/* One end of a lifetime. Of two at one record the one that goes comes first: the other takes its place. */
struct edge {
	uint64_t index;
	int64_t bytes;
	uint32_t site;
};

static int edge_compare(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return (a->bytes > 0) - (b->bytes > 0);
}

static struct edge *edges_make(const struct transients *transients)
{
	struct edge *edges = malloc((transients->life_count * 2 + 1) * sizeof(*edges));

	for (size_t i = 0; edges && i < transients->life_count; i++) {
		const struct lifetime *life = &transients->lives[i];

		edges[i * 2] = (struct edge){life->born, (int64_t)life->bytes, life->site};
		edges[i * 2 + 1] = (struct edge){life->gone, -(int64_t)life->bytes, life->site};
	}
	if (edges)
		qsort(edges, transients->life_count * 2, sizeof(*edges), edge_compare);
	return edges;
}

/* The most at once, of each site and of each kind. */
static int sweep(struct transients *transients, struct transient_sum sums[TRANSIENT_KINDS])
{
	uint64_t *now = calloc(transients->site_count + 1, sizeof(*now)), all[TRANSIENT_KINDS] = {0};
	struct edge *edges = edges_make(transients);

	for (size_t i = 0; now && edges && i < transients->life_count * 2; i++) {
		struct transient_site *site = &transients->sites[edges[i].site];

		now[edges[i].site] += (uint64_t)edges[i].bytes;
		all[site->kind] += (uint64_t)edges[i].bytes;
		site->at_once = bytes_max(site->at_once, now[edges[i].site]);
		sums[site->kind].at_once = bytes_max(sums[site->kind].at_once, all[site->kind]);
	}
	free(now);
	free(edges);
	return now && edges ? 0 : -ENOMEM;
}

static int site_compare(const void *left, const void *right)
{
	const struct transient_site *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

int transients_fill(struct transients *transients, struct model *model)
{
	int error = sweep(transients, model->transient_sums);
	size_t kept = 0;

	if (error)
		return error;
	for (size_t i = 0; i < transients->site_count; i++) {
		const struct transient_site site = transients->sites[i];
		struct transient_sum *sum = &model->transient_sums[site.kind];

		sum->count += site.count;
		sum->bytes = bytes_add(sum->bytes, site.bytes);
		sum->copied = bytes_add(sum->copied, site.copied);
		if (site.count)
			transients->sites[kept++] = site;
	}
	if (kept)
		qsort(transients->sites, kept, sizeof(*transients->sites), site_compare);
	model->transients = transients->sites;
	model->transient_count = kept;
	model->transients_cut = transients->cut;
	transients->sites = NULL;
	return 0;
}
