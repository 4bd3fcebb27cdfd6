/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings: environment variables SPARKTRACE_*, read once, from the table preload/settings.def.
 *
 * Of a wrong value the default is used, and stderr says so when a recording starts (SPARKTRACE_QUIET=1 silences it).
 */
#ifndef SPARKTRACE_SHIM_SETTINGS_H
#define SPARKTRACE_SHIM_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* Longest value of a setting that is a text, with its NUL. */
#define SETTING_TEXT 1024

/* How a value is written, and what it is here. */
#define SETTING_TYPE_SIZE   uint64_t     /* bytes: 4096, 64KiB, 1.5GiB */
#define SETTING_TYPE_COUNT  uint64_t     /* unsigned integer */
#define SETTING_TYPE_MS     uint64_t     /* milliseconds, 1 at least */
#define SETTING_TYPE_FLAG   uint64_t     /* 0 or 1 */
#define SETTING_TYPE_SWITCH uint64_t     /* on or off: 1 or 0 */
#define SETTING_TYPE_UNWIND uint64_t     /* a word of enum setting_unwind */
#define SETTING_TYPE_RELIEF uint64_t     /* off, or words of enum setting_relief, commas between: bits */
#define SETTING_TYPE_PATH   const char * /* a path, "" when not set */

enum setting_unwind { UNWIND_AUTO, UNWIND_FRAME, UNWIND_LIBUNWIND, UNWIND_OFF };

/*
 * readonly: weight files that are asked for private and writable are mapped without write permission.
 * drop: the page cache of a weight range is given back once it has been used.
 */
enum setting_relief { RELIEF_READONLY = 1, RELIEF_DROP = 2 };

struct settings {
#define SETTING(id, name, kind, standard, help) SETTING_TYPE_##kind id;
#include "../settings.def"
#undef SETTING
};

/* Read at the first call. Never NULL. */
const struct settings *settings_get(void);

/* Names the settings with a wrong value, in one line. Not said by programs that record nothing: shells, compilers. */
void settings_say_wrong(void);

/*
 * Parses one environment into `ret_settings` and `ret_text` (one row a setting).
 * Returns how many values were wrong; their names are in `ret_wrong`
 * (room for as many as there are settings; unused when `variables` is NULL: then all are the defaults).
 */
size_t settings_parse(char **variables, struct settings *ret_settings, char (*ret_text)[SETTING_TEXT],
                      const char **ret_wrong);

/* All settings as they hold, NAME=value\n..., for the ring's head. Returns its length. */
size_t settings_write(char *buffer, size_t size);

/* The program's variables of allowed.def, NAME=value\n.... Returns its length. */
size_t settings_environment(char *buffer, size_t size);

/* LD_LIBRARY_PATH of the program, "" when not set. Returns its length. */
size_t settings_library_path(char *buffer, size_t size);

#endif
