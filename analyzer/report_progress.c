/* SPDX-License-Identifier: Apache-2.0 */
#include "report_progress.h"

#include "reader.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const struct reader *volatile watched;
static volatile sig_atomic_t shown;

/*
 * A timer's signal and not a call from the reading loop: whoever reads needs not know of it. The handler reads
 * two counters and writes one line; nothing in it allocates or locks.
 */
static void show_progress(int signal)
{
	char line[] = "\rreading    % ";
	const struct reader *reader = watched;
	uint64_t total, done, percent;
	int error = errno;

	(void)signal;
	if (!reader)
		return;
	done = reader_progress(reader, &total);
	percent = total ? done * 100 / total : 0;
	for (char *at = line + 11; percent && at > line + 8; percent /= 10)
		*at-- = (char)('0' + percent % 10);
	shown = write(STDERR_FILENO, line, sizeof(line) - 1) > 0;
	errno = error;
}

static void set_timer(long first_ms, long every_ms)
{
	struct itimerval timer = {
		.it_value = {.tv_sec = first_ms / 1000, .tv_usec = first_ms % 1000 * 1000},
		.it_interval = {.tv_sec = every_ms / 1000, .tv_usec = every_ms % 1000 * 1000},
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

void progress_begin(const struct reader *reader)
{
	struct sigaction action = {.sa_handler = show_progress, .sa_flags = SA_RESTART};

	if (!isatty(STDERR_FILENO))
		return;
	watched = reader;
	sigemptyset(&action.sa_mask);
	if (!sigaction(SIGALRM, &action, NULL))
		set_timer(700, 200);
}

void progress_end(void)
{
	static const char blank[] = "\r               \r";

	if (!watched)
		return;
	set_timer(0, 0);
	watched = NULL;
	if (shown && write(STDERR_FILENO, blank, sizeof(blank) - 1) < 0)
		return;
	shown = 0;
}
