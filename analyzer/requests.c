/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/range.h>
#include <analyzer/requests.h>

/* After that much work a program has survived a refusal, whatever it died of later. */
#define SURVIVED_GRANTS 16
#define SURVIVED_NS     UINT64_C(10000000000)

void requests_init(struct requests *requests)
{
	*requests = (struct requests){.smallest_device = UINT64_MAX, .smallest_pinned = UINT64_MAX};
}

static bool kind_is_device(uint16_t kind)
{
	return kind == ST_KIND_device_alloc || kind == ST_KIND_handle_create || kind == ST_KIND_handle_map;
}

static void smallest_update(struct requests *requests)
{
	requests->smallest_device = requests->smallest_pinned = UINT64_MAX;
	for (size_t i = 0; i < requests->count; i++) {
		const struct failure *failure = &requests->kept[i].failure;
		uint64_t *smallest = kind_is_device(failure->kind) ? &requests->smallest_device
		                                                   : &requests->smallest_pinned;

		if (requests->kept[i].open && failure->kind != ST_KIND_register)
			*smallest = bytes_min(*smallest, failure->asked);
	}
}

/*
 * The same request made again: an allocator empties its cache and tries once more. How much a burst of handles is
 * to become nobody knows; it is the same as long as no other request was met in between.
 */
static struct request *request_repeated(struct requests *requests, const struct refusal *refusal)
{
	for (size_t i = requests->count; i-- > 0;) {
		struct request *request = &requests->kept[i];

		if (!request->open || request->failure.kind != refusal->kind ||
		    request->stack != refusal->stack || request->failure.result != refusal->result)
			continue;
		if (request->failure.asked == refusal->asked ||
		    (refusal->kind == ST_KIND_handle_create && request->grants == requests->grants))
			return request;
	}
	return NULL;
}

void requests_refuse(struct requests *requests, const struct st_record *record, const struct refusal *refusal,
                     uint64_t index, uint64_t freed)
{
	struct request *request = request_repeated(requests, refusal);

	requests->last_time = record->time;
	if (request) {
		request->failure.repeats++;
		request->failure.asked = bytes_max(request->failure.asked, refusal->asked);
		request->failure.attempted = bytes_max(request->failure.attempted, refusal->attempted);
		request->grants = requests->grants;
		return;
	}
	if (requests->count == REQUESTS_MAX) {
		requests->dropped++;
		return;
	}
	request = &requests->kept[requests->count++];
	*request = (struct request){.index = index,
	                            .stack = refusal->stack,
	                            .open = true,
	                            .freed = freed,
	                            .grants = requests->grants};
	request->failure = (struct failure){.time = record->time,
	                                    .kind = refusal->kind,
	                                    .asked = refusal->asked,
	                                    .at_least = refusal->kind == ST_KIND_handle_create,
	                                    .attempted = refusal->attempted,
	                                    .result = refusal->result};
	smallest_update(requests);
}

void requests_grant(struct requests *requests, const struct st_record *record, uint64_t bytes, uint64_t freed)
{
	bool device = kind_is_device(record->kind);

	requests->grants++;
	requests->last_time = record->time;
	if (bytes < (device ? requests->smallest_device : requests->smallest_pinned))
		return;
	for (size_t i = 0; i < requests->count; i++) {
		struct request *request = &requests->kept[i];

		if (!request->open || request->failure.kind == ST_KIND_register ||
		    kind_is_device(request->failure.kind) != device || request->failure.asked > bytes)
			continue;
		request->open = false;
		request->failure.outcome = FAILURE_RETRIED;
		request->failure.retry_time = record->time;
		request->failure.freed_between = freed - request->freed;
	}
	smallest_update(requests);
}

void requests_finish(struct requests *requests, bool badly)
{
	for (size_t i = 0; i < requests->count; i++) {
		struct request *request = &requests->kept[i];
		bool worked_on = requests->grants - request->grants >= SURVIVED_GRANTS &&
		                 requests->last_time - request->failure.time >= SURVIVED_NS;

		if (request->open)
			request->failure.outcome = badly && !worked_on ? FAILURE_FATAL : FAILURE_SURVIVED;
	}
}

const struct request *requests_fatal(const struct requests *requests)
{
	for (size_t i = 0; i < requests->count; i++)
		if (requests->kept[i].failure.outcome == FAILURE_FATAL &&
		    requests->kept[i].failure.result == OUT_OF_MEMORY)
			return &requests->kept[i];
	return NULL;
}
