/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what the driver did, as it happened, one JSON object a line, written at once so that a
 * killed program leaves all of it. Every line carries the running sums, so the last one is the result.
 */
#include "tests/simcuda/driver/sim.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static int ledger_fd = -1;

/* %p in the path becomes the process id. */
static void path_expand(const char *path, char *ret_path, size_t size)
{
	const char *mark = strstr(path, "%p");

	if (mark)
		snprintf(ret_path, size, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
	else
		snprintf(ret_path, size, "%s", path);
}

void ledger_open(const char *path)
{
	char name[512];
	long fd;

	path_expand(path, name, sizeof(name));
	fd = sim_syscall(SYS_openat, AT_FDCWD, (long)name,
	                 O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644, 0, 0);
	if (fd < 0)
		return;
	ledger_fd = sim_fd_raise((int)fd);
	sim.ledger = true;
}

static int counts_print(char *line, size_t size)
{
	const struct sim_counts *c = &sim.counts;

	return snprintf(line, size,
	                ",\"device\":%" PRIu64 ",\"pinned\":%" PRIu64 ",\"managed\":%" PRIu64
	                ",\"device_peak\":%" PRIu64 ",\"pinned_peak\":%" PRIu64 ",\"total_peak\":%" PRIu64
	                ",\"broken\":%" PRIu64 ",\"copied\":%" PRIu64 ",\"launches\":%" PRIu64
	                ",\"stubs\":%" PRIu64 "}\n",
	                c->device, c->pinned, c->managed, c->device_peak, c->pinned_peak, c->total_peak,
	                c->broken, c->copied, c->launches, c->stubs);
}

void ledger_note(const char *op, uint64_t addr, uint64_t size, CUresult rc, const char *extra)
{
	char line[LINE_MAX_BYTES];
	int length;

	if (!sim.ledger || sim.forked)
		return;
	length = snprintf(line, sizeof(line) - 400,
	                  "{\"t\":%" PRIu64 ",\"op\":\"%s\",\"addr\":\"0x%" PRIx64 "\",\"size\":%" PRIu64
	                  ",\"rc\":%d%s",
	                  sim_clock(), op, addr, size, (int)rc, extra);
	length += counts_print(line + length, sizeof(line) - (size_t)length);
	sim_syscall(SYS_write, ledger_fd, (long)line, length, 0, 0, 0);
}

void ledger_end(void)
{
	ledger_note("end", 0, 0, CUDA_SUCCESS, "");
}
