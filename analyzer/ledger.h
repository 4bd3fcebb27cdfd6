/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool as layers. V, P and S come from replay and residency and hold at every instant; H, N, the page
 * cache and the rest come from samples and hold from one to the next.
 */
#ifndef SPARKTRACE_LEDGER_H
#define SPARKTRACE_LEDGER_H

#include <analyzer/model.h>
#include <analyzer/residency.h>

struct ledger {
	const struct residency *residency;
	uint64_t samples;
	struct pool_state first, last;
	uint64_t lowest_available, lowest_free, swap_used, own_peak;

	/* Each since the first sample; `seen`: both of the two were known. */
	bool host_seen, others_seen, cache_seen, kernel_seen;
	uint64_t rss_first, others_first;
	int64_t rss, others, kernel;
	uint64_t cache; /* page cache of the whole pool */
	int64_t used_first, used_device_first, used_pinned_first, own_first;
	/* What was known of A and S when the last sample was taken. */
	struct range anon_first, anon_then;
	uint64_t staging_then;
	uint64_t anon_last;   /* A after the last record */
	uint64_t anon_going;  /* A that was released and may have been there still */
	int64_t host_base;    /* H that is no part of A for sure */
	int64_t host_certain; /* H of the last sample less what copies under way may explain */
	uint64_t own;
};

void ledger_init(struct ledger *ledger, const struct residency *residency);
void ledger_sample(struct ledger *ledger, const struct st_ev_sample *record);

/* To be called after each record: A may have changed. */
void ledger_follow(struct ledger *ledger);

struct range ledger_anon(const struct ledger *ledger);
/* S outside P. */
uint64_t ledger_staging(const struct ledger *ledger);
struct range ledger_modelled(const struct ledger *ledger);

/*
 * The demand in two parts: what is known at this instant, and the change of what samples told, which holds
 * from one sample to the next. With the page cache added to the second part it is what the pool held.
 */
struct range ledger_exact(const struct ledger *ledger);
struct change ledger_sampled(const struct ledger *ledger);
/* The same where A does not count: what copies under way may have made is no part of H either. */
struct change ledger_sampled_without_anon(const struct ledger *ledger);
/* What the heap may have grown by since the last sample beside the staging that ledger_exact() has. */
uint64_t ledger_fresh(const struct ledger *ledger);
uint64_t ledger_cache(const struct ledger *ledger);
/* Page cache that is only bounded: of weight files, where the pool's was never sampled. */
struct range ledger_resident_extra(const struct ledger *ledger);

struct range ledger_demand(const struct ledger *ledger);
struct layers ledger_layers(const struct ledger *ledger);

#endif
