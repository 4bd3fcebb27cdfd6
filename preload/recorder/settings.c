/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"
#include "clock.h"
#include "ringfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *standard;
} defaults[] = {
#define SETTING(id, name, kind, standard, help) {name, standard},
#include "../settings.def"
#undef SETTING
};

void recorder_setting(const char *lines, const char *name, char *ret_value, size_t size)
{
	size_t i;

	if (!ringfile_get(lines, name, ret_value, size))
		return;
	ret_value[0] = '\0';
	for (i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (!strcmp(defaults[i].name, name))
			snprintf(ret_value, size, "%s", defaults[i].standard);
}

uint64_t recorder_setting_ms(const char *lines, const char *name)
{
	uint64_t value;
	char text[32];

	recorder_setting(lines, name, text, sizeof(text));
	value = strtoull(text, NULL, 10);
	return (value ? value : 1) * MILLISECOND;
}
