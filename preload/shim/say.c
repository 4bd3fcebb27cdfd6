/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include "settings.h"
#include "sys.h"
#include "text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "banned.h"

static struct stat stderr_then;
static bool stderr_known;
static atomic_flag said = ATOMIC_FLAG_INIT;

void say_prepare(void)
{
	stderr_known = sys_fstat(2, &stderr_then) == 0;
}

static bool stderr_same(void)
{
	struct stat now;

	return stderr_known && sys_fstat(2, &now) == 0 && now.st_dev == stderr_then.st_dev &&
	       now.st_ino == stderr_then.st_ino;
}

void say(const char *what, const char *detail, int error)
{
	char line[512];
	struct text text = text_in(line, sizeof(line) - 1);
	const char *name = error ? strerrorname_np(-error) : NULL;

	if (settings_get()->quiet || !stderr_same())
		return;
	text_add(&text, "sparktrace: ");
	text_add(&text, what);
	if (detail) {
		text_byte(&text, ' ');
		text_add(&text, detail);
	}
	if (name) {
		text_add(&text, ": ");
		text_add(&text, name);
	}
	line[text_length(&text)] = '\n';
	sys_write(2, line, text_length(&text) + 1);
}

void say_once(const char *what, const char *detail, int error)
{
	if (!atomic_flag_test_and_set(&said))
		say(what, detail, error);
}
