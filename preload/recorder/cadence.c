/* SPDX-License-Identifier: Apache-2.0 */
#include "cadence.h"
#include "clock.h"

#define ACTIVE     (500 * MILLISECOND) /* after the last byte that moved */
#define EDGE_SHARE 16                  /* less spare memory than 1/16 of the machine is near the edge */
#define FALL       (UINT64_C(4) << 20) /* bytes between two samples that are no noise */

void cadence_move(struct cadence *cadence, uint64_t now)
{
	cadence->active_until = now + ACTIVE;
}

void cadence_see(struct cadence *cadence, uint64_t spare, uint64_t total)
{
	cadence->falling = cadence->total && spare + FALL < cadence->spare;
	cadence->spare = spare;
	cadence->total = total;
}

bool cadence_is_active(const struct cadence *cadence, uint64_t now)
{
	return now < cadence->active_until;
}

bool cadence_has_moved(const struct cadence *cadence, uint64_t then)
{
	return cadence->active_until > then + ACTIVE;
}

static uint64_t at_least(uint64_t interval, uint64_t cost, uint64_t share)
{
	return interval > cost * share ? interval : cost * share;
}

uint64_t cadence_interval(const struct cadence *cadence, uint64_t now, uint64_t cost)
{
	bool active = cadence_is_active(cadence, now) || cadence->falling;

	if (active && cadence->spare < cadence->total / EDGE_SHARE)
		return at_least(cadence->edge, cost, 10);
	if (active)
		return at_least(cadence->load, cost, 20);
	return at_least(cadence->rest, cost, 100);
}
