/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "session.h"

#include <string.h>

#define COPIED_STEP (UINT64_C(256) << 20)
#define PROVING     (1u << ST_MOMENT_FIRST_WEIGHT | 1u << ST_MOMENT_LAST_WEIGHT | 1u << ST_MOMENT_FAILED)

static void sample(struct session *session, enum st_moment reason, bool exact)
{
	const struct st_ev_sample *last = &session->sampler.last;

	sampler_take(&session->sampler, &session->out, reason, exact);
	cadence_see(&session->cadence, sampler_spare(&session->sampler),
	            last->mem_total == ST_UNKNOWN ? 0 : last->mem_total);
	session->sampled = clock_now();
}

static void scan(struct session *session, enum st_moment reason, bool all)
{
	anon_look(&session->anon, &session->out, reason, all);
	session->scanned = clock_now();
}

/* Pages that come by faults on a mapping are seen nowhere else: they too are bytes that move. */
static void look_at_cache(struct session *session)
{
	unsigned changed = cache_look(&session->cache, &session->out);

	session->looked = clock_now();
	if (changed)
		cadence_move(&session->cadence, session->looked);
}

/* Whether something of this cost may be done again at once, asked for by an event. */
static bool may_again(uint64_t now, uint64_t last, uint64_t cost)
{
	return now - last >= cost * 4;
}

/* Moments that were asked for meanwhile; those of one kind have become one. */
static void look_at_moments(struct session *session, uint64_t now)
{
	uint32_t moments = session->moments, i;
	bool proving = (moments & PROVING) != 0;
	enum st_moment reason = ST_MOMENT_NONE;

	if (!moments || !may_again(now, session->sampled, session->sampler.cost))
		return;
	session->moments = 0;
	for (i = 0; i < 32; i++) {
		if (!(moments >> i & 1))
			continue;
		reason = (enum st_moment)i;
		sample(session, reason, true);
	}
	if (may_again(now, session->scanned, session->anon.cost))
		scan(session, reason, proving);
	if (may_again(now, session->looked, session->cache.cost))
		look_at_cache(session);
}

static void look_at_copies(struct session *session, uint64_t now)
{
	if (session->copied - session->copied_sampled < COPIED_STEP)
		return;
	session->copied_sampled = session->copied;
	sample(session, ST_MOMENT_COPIED, false);
	if (may_again(now, session->scanned, session->anon.cost))
		scan(session, ST_MOMENT_COPIED, false);
	if (may_again(now, session->looked, session->cache.cost))
		look_at_cache(session);
}

static uint64_t sample_due(const struct session *session)
{
	return session->sampled +
	       cadence_interval(&session->cadence, session->sampled, session->sampler.cost);
}

static uint64_t cache_due(const struct session *session)
{
	uint64_t interval = cadence_interval(&session->cadence, session->looked, session->cache.cost);

	/* Near the edge the pool is looked at ten times as often, the files are not. */
	if (interval < session->cadence.load)
		interval = session->cadence.load;
	return session->cache.count ? session->looked + interval : UINT64_MAX;
}

/* Pages are broken out of mappings only while bytes move. */
static uint64_t anon_due(const struct session *session)
{
	uint64_t interval = cadence_interval(&session->cadence, session->scanned, session->anon.cost);

	if (interval < session->cadence.load)
		interval = session->cadence.load;
	return session->anon.mappings.count && cadence_is_active(&session->cadence, session->scanned)
	               ? session->scanned + interval
	               : UINT64_MAX;
}

uint64_t session_due(const struct session *session)
{
	uint64_t due = sample_due(session);

	due = cache_due(session) < due ? cache_due(session) : due;
	return session->moments ? session->sampled + session->sampler.cost * 4 : due;
}

/* After losses nobody knows what is mapped where; pages of something else must not count as copies. */
static void forget_mappings(struct session *session)
{
	uint64_t lost = atomic_load(&session->ring->lost_count);

	if (lost == session->lost)
		return;
	session->lost = lost;
	if (!session->anon.mappings.count)
		return;
	session->anon.mappings.count = 0;
	out_coverage(&session->out,
	             "events were lost: anonymous pages of mappings made before are not looked at");
}

void session_look(struct session *session, uint64_t now)
{
	forget_mappings(session);
	look_at_moments(session, now);
	look_at_copies(session, now);
	if (now >= sample_due(session)) {
		sample(session, ST_MOMENT_TIMER, false);
		/* Close behind a sample, so that its RssAnon can be told apart into copies and the rest. */
		if (now >= anon_due(session))
			scan(session, ST_MOMENT_TIMER, false);
	}
	if (now >= cache_due(session))
		look_at_cache(session);
}

/* Whose files occur in stacks: native modules here, Python files as they come (watch.c). */
static bool study_packages(struct session *session)
{
	const struct modules *modules = &session->symbols.modules;

	if (session->modules_asked != modules->next) {
		for (uint32_t i = 0; i < modules->count; i++)
			packages_add(&session->packages, modules->all[i].path, strlen(modules->all[i].path));
		session->modules_asked = modules->next;
	}
	return packages_work(&session->packages, &session->out);
}

bool session_study(struct session *session, bool hurry)
{
	bool active = cadence_is_active(&session->cadence, clock_now()), more;

	facts_look(&session->facts, &session->out);
	symbols_place(&session->symbols, &session->out);
	more = shards_work(&session->shards, &session->weights, &session->out, hurry);
	more |= weights_work(&session->weights, &session->cache, &session->out, hurry);
	if (hurry || !active) {
		more |= symbols_work(&session->symbols, &session->out, hurry);
		more |= study_packages(session);
	}
	return more;
}
