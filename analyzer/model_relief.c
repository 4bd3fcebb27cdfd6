/* SPDX-License-Identifier: Apache-2.0 */
/* What SPARKTRACE_RELIEF did. */
#include <analyzer/model_parts.h>

void relief_note(struct relief *relief, const struct st_ev_relief *record)
{
	switch ((enum st_relief)record->what) {
	case ST_RELIEF_READONLY:
		relief->maps++;
		relief->mapped += record->size;
		break;
	case ST_RELIEF_WRITTEN:
		relief->stores++;
		relief->written += record->result ? 0 : record->size;
		break;
	case ST_RELIEF_DROPPED:
		relief->dropped += record->result ? 0 : record->size;
		break;
	case ST_RELIEF_OFF:
		relief->refused++;
		relief->error = (int)record->result;
		break;
	}
}
