/* SPDX-License-Identifier: Apache-2.0 */
/* The load's peaks that stand for themselves, of all processes of a run at common instants. */
#include <analyzer/run_parts.h>

/* What each process had then is its part of the peak; one that was not there has none. */
static void peak_keep(struct joint *joint, enum load_peak peak)
{
	for (size_t i = 0; i < joint->count; i++) {
		struct build *build = joint->parties[i].build;

		if (party_lives(&joint->parties[i])) {
			residency_keep_peak(&build->residency, peak);
			build->peaks_absent &= ~(1u << peak);
		} else {
			build->peaks_absent |= 1u << peak;
		}
	}
}

void joint_load_peaks(struct joint *joint)
{
	struct load *load = &joint->model->load;
	struct range sum[LOAD_PEAK_COUNT] = {{0, 0}};
	uint64_t mappings = 0;

	if (!stretch_has(STRETCH_LOAD, joint->phase))
		return;
	for (size_t i = 0; i < joint->count; i++) {
		struct range now[LOAD_PEAK_COUNT];

		if (!party_lives(&joint->parties[i]))
			continue;
		load_peaks_now(joint->parties[i].build, now);
		mappings += joint->parties[i].build->residency.replay.mappings_live;
		for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++)
			sum[peak] = range_add(sum[peak], now[peak]);
	}
	load->mappings = bytes_max(load->mappings, mappings);
	for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++) {
		if (load_peak_is_here((enum load_peak)peak, load->peaks[peak], sum[peak]))
			peak_keep(joint, (enum load_peak)peak);
		load->peaks[peak] = range_max(load->peaks[peak], sum[peak]);
	}
}
