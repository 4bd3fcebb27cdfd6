/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include "sys.h"

#include "banned.h"

static char started[1024]; /* as long as a directory in the ring's head */

void place_prepare(void)
{
	if (!started[0] && sys_getcwd(started, sizeof(started)) < 0)
		started[0] = '\0';
}

const char *place_started(void)
{
	place_prepare();
	return started;
}

void place_begin(struct text *text, const char *path)
{
	if (path[0] == '/')
		return;
	text_add(text, place_started());
	text->cut |= !started[0];
	text_byte(text, '/');
}
