/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that several sections say. */
#include "report.h"

#include <math.h>
#include <sys/mman.h>

double report_share(uint64_t part, uint64_t whole)
{
	return whole && whole != ST_UNKNOWN && part != ST_UNKNOWN ? (double)part / (double)whole : NAN;
}

const char *report_phase(enum phase phase)
{
	static const char *const names[PHASE_COUNT] = {"start", "load", "settle", "steps", "end"};

	return phase < PHASE_COUNT ? names[phase] : NULL;
}

const char *report_file(const struct report *report, uint32_t file)
{
	return file < report->model->file_count ? report->model->files[file].path : NULL;
}

const char *report_tensor(const struct report *report, uint32_t tensor)
{
	return tensor < report->model->tensor_count ? report->model->tensors[tensor].name : NULL;
}

const struct weight_file *report_culprit(const struct report *report)
{
	const struct model *m = report->model;
	const struct weight_file *worst = NULL;

	for (size_t i = 0; i < m->file_count; i++) {
		const struct weight_file *file = &m->files[i];

		if (!worst || file->anon_peak > worst->anon_peak ||
		    (file->anon_peak == worst->anon_peak && file->at_peak.staging > worst->at_peak.staging))
			worst = file;
	}
	return worst && (worst->anon_peak || worst->at_peak.staging) ? worst : NULL;
}

const char *report_mapping(const struct file_mapping *mapping)
{
	bool private = mapping->flags & MAP_PRIVATE, writable = mapping->prot & PROT_WRITE;

	if (private)
		return writable ? "private writable mapping" : "private read-only mapping";
	return writable ? "shared writable mapping" : "shared read-only mapping";
}
