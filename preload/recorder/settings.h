/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the recorder: from the ring's head, else the defaults of preload/settings.def. */
#ifndef SPARKTRACE_RECORDER_SETTINGS_H
#define SPARKTRACE_RECORDER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* `lines`: ring->settings. `name` is one of settings.def; the value is cut at size - 1. */
void recorder_setting(const char *lines, const char *name, char *ret_value, size_t size);

/* A number of milliseconds, as ns; 1 ms at least. */
uint64_t recorder_setting_ms(const char *lines, const char *name);

#endif
