/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, start, and what every entry passes through.
 *
 *	SIMCUDA_LIMIT=BYTES	device memory above which an allocation fails
 *	SIMCUDA_GB10=1		one pool of memory: see sim.h
 *	SIMCUDA_LAZY=1		memory is used by its first touch, not by its allocation
 *	SIMCUDA_FAIL=ENTRY:N[:CODE][,...]	the N-th call (0: every) answers CODE, 2 by default
 *	SIMCUDA_DELAY=ENTRY:N:MS[,...]		the N-th call (0: every) takes MS milliseconds longer
 *	SIMCUDA_LEDGER=PATH	%p is the process id
 *	SIMCUDA_WINDOW=BYTES	addresses for device memory, 1 TiB by default: qemu-user takes its time for
 *				every page of them
 */
#include "tests/simcuda/driver/sim.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RULES_MAX 16

struct rule {
	char entry[64];
	unsigned long number; /* which call, 0: every one */
	unsigned long value;  /* result, or milliseconds */
	unsigned long calls;
	bool delay;
};

struct sim_state sim = {.limit = UINT64_MAX, .window = UINT64_C(1) << 40};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rule rules[RULES_MAX];
static size_t rule_count;

int simcuda_version(void);
int simcuda_stub(const char *name);
int sim_stub(const char *name);
void simcuda_bytes(unsigned long long *used, unsigned long long *total);

void sim_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool rule_parse(const char *text, bool delay, struct rule *ret_rule)
{
	*ret_rule = (struct rule){.delay = delay, .value = delay ? 0 : CUDA_ERROR_OUT_OF_MEMORY};
	return sscanf(text, "%63[^:]:%lu:%lu", ret_rule->entry, &ret_rule->number, &ret_rule->value) >= 2;
}

static void rules_read(const char *variable, bool delay)
{
	const char *at = getenv(variable);

	while (at && *at && rule_count < RULES_MAX) {
		if (rule_parse(at, delay, &rules[rule_count]))
			rule_count++;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	sim.rules = rule_count > 0;
}

static bool setting_on(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value && strcmp(value, "0") != 0;
}

static void setting_number(const char *variable, uint64_t *value)
{
	const char *text = getenv(variable);

	if (text && *text)
		*value = strtoull(text, NULL, 0);
}

static void settings_read(void)
{
	const char *ledger = getenv("SIMCUDA_LEDGER");

	setting_number("SIMCUDA_LIMIT", &sim.limit);
	setting_number("SIMCUDA_WINDOW", &sim.window);
	sim.gb10 = setting_on("SIMCUDA_GB10");
	sim.device.lazy = sim.pinned.lazy = setting_on("SIMCUDA_LAZY");
	rules_read("SIMCUDA_FAIL", false);
	rules_read("SIMCUDA_DELAY", true);
	if (ledger && *ledger)
		ledger_open(ledger);
}

static void fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* A context does not survive fork: the child gets "not initialized", as from the real driver. */
static void fork_child(void)
{
	sim.forked = true;
	pthread_mutex_unlock(&lock);
}

static void sim_start(void)
{
	settings_read();
	if (table_init(&sim.blocks) || table_init(&sim.reserved) ||
	    arena_init(&sim.device, "simcuda-device") || arena_init(&sim.pinned, "simcuda-pinned"))
		return;
	pthread_atfork(fork_lock, fork_parent, fork_child);
	sim.ready = true;
	ledger_note("cuInit", 0, 0, CUDA_SUCCESS, sim.gb10 ? ",\"gb10\":true" : "");
}

__attribute__((destructor)) static void sim_stop(void)
{
	if (sim.ready)
		ledger_end();
}

static CUresult rule_apply(struct rule *rule)
{
	struct timespec pause = {(time_t)(rule->value / 1000), (long)(rule->value % 1000) * 1000000};

	if (!rule->delay)
		return (CUresult)rule->value;
	nanosleep(&pause, NULL);
	return CUDA_SUCCESS;
}

static CUresult rules_apply(const char *name)
{
	CUresult rc = CUDA_SUCCESS;

	for (size_t i = 0; i < rule_count && rc == CUDA_SUCCESS; i++) {
		struct rule *rule = &rules[i];

		if (strcmp(rule->entry, name) != 0)
			continue;
		if (__atomic_add_fetch(&rule->calls, 1, __ATOMIC_RELAXED) == rule->number ||
		    rule->number == 0)
			rc = rule_apply(rule);
	}
	if (rc != CUDA_SUCCESS) {
		sim_lock();
		ledger_note(name, 0, 0, rc, ",\"injected\":true");
		sim_unlock();
	}
	return rc;
}

CUresult sim_enter(const char *name)
{
	if (!sim.ready || sim.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	return sim.rules ? rules_apply(name) : CUDA_SUCCESS;
}

static void peak_raise(uint64_t *peak, uint64_t value)
{
	if (value > *peak)
		*peak = value;
}

void sim_count(bool host, int64_t bytes)
{
	struct sim_counts *c = &sim.counts;

	if (host)
		c->pinned += (uint64_t)bytes;
	else
		c->device += (uint64_t)bytes;
	c->total = c->device + c->pinned;
	peak_raise(&c->device_peak, c->device);
	peak_raise(&c->pinned_peak, c->pinned);
	peak_raise(&c->total_peak, c->total);
}

bool sim_fits(uint64_t bytes)
{
	return bytes <= sim.limit && sim.counts.device <= sim.limit - bytes;
}

CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, sim_start);
	return sim_enter(__func__);
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = SIM_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

/* How others know that this driver is simulated: dlsym finds it, and only here. */
int simcuda_version(void)
{
	return 1;
}

/* Device bytes held now, and the most there can be, for the simulated management library. */
void simcuda_bytes(unsigned long long *used, unsigned long long *total)
{
	sim_lock();
	*used = sim.counts.device;
	*total = device_total();
	sim_unlock();
}

/* What a generated stub does, here and in the simulated runtime: says so, and does nothing. */
int simcuda_stub(const char *name)
{
	sim_lock();
	sim.counts.stubs++;
	ledger_note(name, 0, 0, CUDA_ERROR_NOT_SUPPORTED, ",\"stub\":true");
	sim_unlock();
	return CUDA_ERROR_NOT_SUPPORTED;
}

int sim_stub(const char *name)
{
	return simcuda_stub(name);
}
