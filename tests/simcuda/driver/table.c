/* SPDX-License-Identifier: Apache-2.0 */
/* Live blocks, sorted by address in one array: few thousand at most, so moving them is cheap. */
#include "tests/simcuda/driver/sim.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define TABLE_MAX (1u << 20)

static uint64_t next_id = 1;

int table_init(struct sim_table *table)
{
	long at = sim_syscall(SYS_mmap, 0, TABLE_MAX * sizeof(struct sim_block), PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at < 0 && at > -4096)
		return (int)at;
	table->blocks = (struct sim_block *)at;
	table->count = 0;
	return 0;
}

uint32_t table_lower(const struct sim_table *table, uint64_t addr)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->blocks[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sim_block *table_find(const struct sim_table *table, uint64_t addr)
{
	uint32_t index = table_lower(table, addr + 1);
	struct sim_block *block;

	if (index == 0)
		return NULL;
	block = &table->blocks[index - 1];
	return addr < block->addr + block->span ? block : NULL;
}

struct sim_block *table_insert(struct sim_table *table, uint64_t addr, uint64_t span)
{
	uint32_t index = table_lower(table, addr);
	struct sim_block *block = &table->blocks[index];

	if (table->count == TABLE_MAX)
		return NULL;
	memmove(block + 1, block, (table->count - index) * sizeof(*block));
	table->count++;
	memset(block, 0, sizeof(*block));
	block->addr = addr;
	block->span = span;
	block->id = next_id++;
	return block;
}

void table_remove(struct sim_table *table, struct sim_block *block)
{
	uint32_t index = (uint32_t)(block - table->blocks);

	table->count--;
	memmove(block, block + 1, (table->count - index) * sizeof(*block));
}
