/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparktrace trace format, version 1. This comment is the specification.
 *
 * FILE
 *	A trace (run.zst) is a sequence of zstd frames, so that `zstd -dc` gives the
 *	records one after the other.
 *
 *	head	one skippable frame (magic 0x184D2A50, u32 length) whose content is
 *		struct st_file_head. A reader refuses another magic or a larger major
 *		version, and reads a larger minor one.
 *	blocks	zstd frames, each with content size and content checksum, each
 *		independent of the others. Decompressed, a block is whole records; the
 *		first is `block`, which carries the block's number (0, 1, ...) and three
 *		clocks read at one instant.
 *	trailer	the last record of the last block is `trailer`. A file without it was
 *		cut, or its program still runs: the reader says so, and then also reads
 *		the ring that the head names, if that still belongs to the same process.
 *
 *	A block that fails its checksum, or that does not begin with `block`, costs only
 *	itself: the reader looks for the next zstd magic (28 B5 2F FD) at which a whole
 *	block decompresses. Numbers of blocks that never came are reported.
 *	A block holds at most ST_BLOCK_MAX decompressed bytes.
 *
 * RECORD
 *	All integers are little-endian. A record is a struct st_record, then the fields of
 *	its kind, each 8 bytes, in the order of ST_FIELDS_<kind> below, then, where the
 *	kind has one, a tail: TEXT (bytes without NUL, padded with NUL to 8) or WORDS
 *	(8 byte integers). `words` counts 8-byte words, head included, so a record is at
 *	most 524,280 bytes.
 *
 *	A reader skips a kind it does not know by its length; fields beyond the record's
 *	end read as the default of their type; a kind with a tail always has all the fields
 *	that its writer's minor version knows, whose number stands in the `block` record
 *	(the tail of a kind begins after them).  Version 1.1 has the kinds and fields below. 1.0 had not
 *	package, code, frames, index, relief, and ended before took (read, copy, sync) and io_read (sample).
 *
 *	seq	position in the ring, in bytes, since the program's first event, with
 *		ST_SEQ_MAGIC in the upper 16 bits; strictly rising through the file. A
 *		record whose seq is not above the last one is a repetition (the recorder
 *		died between writing and acknowledging) and is dropped. 0 for records that
 *		the recorder made itself.
 *	time	CLOCK_MONOTONIC, ns.
 *	thread	kernel thread id; 0 for records of the recorder.
 *
 *	Order in the file is the order of events. Releases are noted before the real call
 *	and allocations after it; a release whose call then fails is taken back by `revoke`.
 *
 * INTERNING
 *	`file`, `stack`, `code`, `module`, `symbol`, `tensor` and `package` define something once,
 *	before the first record that refers to it, except that module, symbol, tensor and package
 *	come when the recorder gets to them. Identifiers are from 1; 0 is "none". An identifier that was
 *	never defined (its block was lost) is "unknown".
 *	Identifiers of files from ST_FILE_INDEXED on are the recorder's: each `index` is followed by the `file`
 *	records of the shards that it names and that are there. One that the program opens gets another identifier
 *	then; dev, ino and size tell that it is the same.
 *
 * UNKNOWN
 *	ST_UNKNOWN in a field of type OPT* says that the value could not be had. It is never 0.
 */
#ifndef SPARKTRACE_FORMAT_H
#define SPARKTRACE_FORMAT_H

#include <stdint.h>

#define ST_FORMAT_MAJOR 1
#define ST_FORMAT_MINOR 1

#define ST_FILE_MAGIC      "SPARKTRC"
#define ST_SKIPPABLE_MAGIC 0x184D2A50u
#define ST_ZSTD_MAGIC      0xFD2FB528u

#define ST_SEQ_MAGIC    (UINT64_C(0x5350) << 48) /* "SP"; no user address looks like this */
#define ST_SEQ_MASK     ((UINT64_C(1) << 48) - 1)
#define ST_UNKNOWN      UINT64_MAX
#define ST_BLOCK_MAX    (4u << 20)
#define ST_CELL         (UINT64_C(64) << 20) /* page cache is reported per 64 MiB of a file */
#define ST_FILE_INDEXED (1u << 16)           /* identifiers of files that only an index names */

/* Content of the first frame. Paths are NUL-terminated. */
struct st_file_head {
	char magic[8]; /* ST_FILE_MAGIC, no NUL */
	uint16_t major, minor;
	uint32_t pid;        /* the traced program */
	uint64_t start_time; /* its start, clock ticks after boot: /proc/PID/stat field 22 */
	char boot_id[40];    /* /proc/sys/kernel/random/boot_id */
	char ring[256];      /* path of the ring, "" when there is none any more */
};

struct st_record {
	uint64_t seq;
	uint64_t time;
	uint32_t thread;
	uint16_t kind;  /* enum st_kind */
	uint16_t words; /* length of the whole record in 8-byte words */
};

_Static_assert(sizeof(struct st_record) == 24, "a record head is three words");
_Static_assert(sizeof(struct st_file_head) == 320, "the file head has no padding");

/*
 * Types of fields: how a value is written as JSON, and what a missing one is.
 *
 *	ADDR	address: "0x7f..."				default 0
 *	SIZE	bytes: integer, or "1.5GiB" when written by hand	default 0
 *	OPTSIZE	bytes, or unknown				default ST_UNKNOWN
 *	TIME	ns: integer, or "12.5s" when written by hand	default 0
 *	COUNT	unsigned integer				default 0
 *	OPTCOUNT unsigned integer, or unknown			default ST_UNKNOWN
 *	INT	signed integer					default 0
 *	HANDLE	opaque 64-bit value: "0x..."			default 0
 *	FILE, STACK	identifier of an interned thing		default 0
 *	the others	words of an enum or flag set defined below
 */

/* clang-format off */
/* How device memory was asked for (field `how` of device_alloc). */
#define ST_DEVICE_HOW(W) \
	W(PLAIN, "plain") W(PITCHED, "pitched") W(MANAGED, "managed") W(ASYNC, "async") W(POOL, "pool") \
	W(ARRAY, "array") W(IPC, "ipc") W(IMPORT, "import") W(CONTEXT, "context")
/*
 * How a host block was asked for. `realloc`: the free of the old block is the last event of this thread before; what it
 * held is in the new one. `grown`: by realloc as well, of none or of one that is not in the trace, being small.
 */
#define ST_HOST_HOW(W) \
	W(MALLOC, "malloc") W(CALLOC, "calloc") W(REALLOC, "realloc") W(ALIGNED, "aligned") W(GROWN, "grown")
/* How file bytes were read. */
#define ST_READ_HOW(W) \
	W(READ, "read") W(PREAD, "pread") W(READV, "readv") W(PREADV, "preadv") W(FREAD, "fread") \
	W(SENDFILE, "sendfile") W(COPYRANGE, "copy_file_range") W(CUFILE, "cufile")
/* Direction of a copy as the entry point (or, for cuMemcpy, the replay) tells it. */
#define ST_COPY_HOW(W) W(UNIFIED, "unified") W(H2D, "h2d") W(D2H, "d2h") W(D2D, "d2d")
#define ST_SYNC_HOW(W) W(STREAM, "stream") W(EVENT, "event") W(CONTEXT, "context") W(WAIT, "wait_event")
/* Where the memory of a VMM handle or a pool lies. */
#define ST_LOCATION(W) W(DEVICE, "device") W(HOST, "host") W(NONE, "none")
/* What a weight file is; `other` files are mapped or read but hold no weights. */
#define ST_FILE_FORMAT(W) \
	W(OTHER, "other") W(SAFETENSORS, "safetensors") W(GGUF, "gguf") W(TORCH, "torch") \
	W(WEIGHTS, "weights")
/* Moments at which the shim asks for a sample, and reasons of samples and scans. */
#define ST_MOMENT(W) \
	W(NONE, "none") W(START, "start") W(FIRST_WEIGHT, "first_weight") W(LAST_WEIGHT, "last_weight") \
	W(FAILED, "failed_allocation") W(TIMER, "timer") W(COPIED, "copied") W(UNMAP, "unmap") \
	W(EXIT, "exit") W(AFTERMATH, "aftermath") W(LOAD_PEAK, "load_peak") W(MARK, "mark")
/* What told how much of a file is cached, or which pages are anonymous. */
#define ST_SOURCE(W) \
	W(NONE, "none") W(CACHESTAT, "cachestat") W(MINCORE, "mincore") W(PAGEMAP_SCAN, "pagemap_scan") \
	W(PAGEMAP, "pagemap")
#define ST_POOL_CLASS(W) W(UNKNOWN, "unknown") W(UMA, "uma") W(DISCRETE, "discrete") W(SIMULATED, "simulated")
#define ST_CHILD_HOW(W) W(FORK, "fork") W(VFORK, "vfork") W(SPAWN, "spawn") W(EXEC, "exec")
#define ST_EXIT_HOW(W) W(UNKNOWN, "unknown") W(EXITED, "exited") W(SIGNALED, "signaled") W(EXECED, "execed")
#define ST_DTYPE(W) \
	W(UNKNOWN, "unknown") W(F64, "F64") W(F32, "F32") W(F16, "F16") W(BF16, "BF16") W(I64, "I64") \
	W(I32, "I32") W(I16, "I16") W(I8, "I8") W(U8, "U8") W(BOOL, "BOOL") W(F8_E4M3, "F8_E4M3") \
	W(F8_E5M2, "F8_E5M2") W(U16, "U16") W(U32, "U32") W(U64, "U64") W(F4, "F4") W(OTHER, "other") \
	W(Q4_0, "Q4_0") W(Q4_1, "Q4_1") W(Q5_0, "Q5_0") W(Q5_1, "Q5_1") W(Q8_0, "Q8_0") W(Q8_1, "Q8_1") \
	W(Q2_K, "Q2_K") W(Q3_K, "Q3_K") W(Q4_K, "Q4_K") W(Q5_K, "Q5_K") W(Q6_K, "Q6_K") W(Q8_K, "Q8_K") \
	W(IQ2_XXS, "IQ2_XXS") W(IQ2_XS, "IQ2_XS") W(IQ3_XXS, "IQ3_XXS") W(IQ1_S, "IQ1_S") \
	W(IQ4_NL, "IQ4_NL") W(IQ3_S, "IQ3_S") W(IQ2_S, "IQ2_S") W(IQ4_XS, "IQ4_XS") W(IQ1_M, "IQ1_M") \
	W(TQ1_0, "TQ1_0") W(TQ2_0, "TQ2_0") W(MXFP4, "MXFP4") W(NVFP4, "NVFP4") W(Q1_0, "Q1_0")
/* What the shim did to the program because SPARKTRACE_RELIEF asked for it. */
#define ST_RELIEF(W) \
	W(READONLY, "readonly") W(WRITTEN, "written") W(DROPPED, "dropped") W(OFF, "off")
/* Flag sets; bit numbers. PROT and MAPFLAGS are the kernel's own values. */
#define ST_STACK_FLAGS(W) W(CUT, "cut") W(SLOW, "slow")
#define ST_CALL_FLAGS(W) W(NESTED, "nested") W(CAPTURING, "capturing") W(UNMANAGED, "unmanaged")

/* clang-format on */
enum st_device_how {
#define W(n, t) ST_DEVICE_##n,
	ST_DEVICE_HOW(W)
#undef W
};
enum st_host_how {
#define W(n, t) ST_HOST_##n,
	ST_HOST_HOW(W)
#undef W
};
enum st_read_how {
#define W(n, t) ST_READ_##n,
	ST_READ_HOW(W)
#undef W
};
enum st_copy_how {
#define W(n, t) ST_COPY_##n,
	ST_COPY_HOW(W)
#undef W
};
enum st_sync_how {
#define W(n, t) ST_SYNC_##n,
	ST_SYNC_HOW(W)
#undef W
};
enum st_location {
#define W(n, t) ST_LOCATION_##n,
	ST_LOCATION(W)
#undef W
};
enum st_file_format {
#define W(n, t) ST_FILE_##n,
	ST_FILE_FORMAT(W)
#undef W
};
enum st_moment {
#define W(n, t) ST_MOMENT_##n,
	ST_MOMENT(W)
#undef W
};
enum st_source {
#define W(n, t) ST_SOURCE_##n,
	ST_SOURCE(W)
#undef W
};
enum st_pool_class {
#define W(n, t) ST_POOL_##n,
	ST_POOL_CLASS(W)
#undef W
};
enum st_child_how {
#define W(n, t) ST_CHILD_##n,
	ST_CHILD_HOW(W)
#undef W
};
enum st_exit_how {
#define W(n, t) ST_EXIT_##n,
	ST_EXIT_HOW(W)
#undef W
};
enum st_dtype {
#define W(n, t) ST_DTYPE_##n,
	ST_DTYPE(W)
#undef W
};
enum st_relief {
#define W(n, t) ST_RELIEF_##n,
	ST_RELIEF(W)
#undef W
};
enum st_stack_flag {
#define W(n, t) ST_STACK_##n,
	ST_STACK_FLAGS(W)
#undef W
};
enum st_call_flag {
#define W(n, t) ST_CALL_##n,
	ST_CALL_FLAGS(W)
#undef W
};

/*
 * EVENTS
 *	E(number, name, tail, meaning); numbers are never used again.
 *	F(name, type, meaning).
 *
 *	`result` is the driver's CUresult or, for libc calls, an errno; a failed allocation
 *	is a record with result != 0 and addr 0. `stack` is where the call came from.
 */
/* clang-format off */
#define ST_EVENTS(E) \
	E(1, block, NONE, "first record of every block: its number and three clocks at one instant") \
	E(2, trailer, NONE, "last record of a whole trace") \
	E(3, process, NONE, "the traced program and its machine") \
	E(4, info, TEXT, "a fact about program, machine or recording: name=value") \
	E(5, lost, NONE, "events that found no room in the ring since the last such record") \
	E(6, coverage, TEXT, "something that could not be seen, and why") \
	E(7, exit, NONE, "end of the program as the recorder saw it") \
	E(8, revoke, NONE, "the release with this seq did not take place: its call failed") \
	E(9, moment, NONE, "the shim asks for a sample") \
	E(10, mark, TEXT, "sparktrace_mark() of the program: a phase or step begins") \
	E(11, child, TEXT, "a child was started; the text is its program, where known") \
	E(12, thread, TEXT, "name of a thread") \
	E(16, file, TEXT, "a file; the text is the path the program used") \
	E(17, stack, WORDS, "a call stack: return addresses, innermost first") \
	E(18, module, TEXT, "an executable mapping of a loaded object") \
	E(19, symbol, TEXT, "function name of one address in a stack") \
	E(20, tensor, TEXT, "a tensor of a weight file; the text is its name") \
	E(21, package, TEXT, "an installed distribution whose files occur in stacks: name version folder") \
	E(22, code, TEXT, "a Python function; the text is its qualified name, a space, its file") \
	E(23, frames, WORDS, "the Python frames of a stack, innermost first: code id << 32 | line") \
	E(24, index, TEXT, "the index of a sharded checkpoint; the text is its path") \
	E(32, map, NONE, "mmap") \
	E(33, unmap, NONE, "munmap, noted before the call") \
	E(34, remap, NONE, "mremap") \
	E(35, protect, NONE, "mprotect") \
	E(36, advise, NONE, "madvise, posix_madvise") \
	E(37, fadvise, NONE, "posix_fadvise, readahead") \
	E(38, lock, NONE, "mlock, munlock and their kin") \
	E(39, open, NONE, "a weight file was opened") \
	E(40, read, NONE, "file bytes were read") \
	E(41, alloc, NONE, "a host allocation above the threshold") \
	E(42, free, NONE, "its release, noted before the call") \
	E(43, relief, NONE, "the shim changed what the program does, as SPARKTRACE_RELIEF asked") \
	E(64, device_alloc, NONE, "device memory was allocated, or was refused") \
	E(65, device_free, NONE, "its release, noted before the call") \
	E(66, pinned_alloc, NONE, "pinned host memory of the driver") \
	E(67, pinned_free, NONE, "its release, noted before the call") \
	E(68, register, NONE, "existing host pages were registered: an attribute, not memory") \
	E(69, unregister, NONE, "and given back") \
	E(70, reserve, NONE, "device address space, no memory") \
	E(71, unreserve, NONE, "and given back") \
	E(72, handle_create, NONE, "VMM: physical memory was committed, or refused") \
	E(73, handle_retain, NONE, "VMM: one more reference") \
	E(74, handle_release, NONE, "VMM: one reference less, noted before the call") \
	E(75, handle_map, NONE, "VMM: mapped at an address") \
	E(76, handle_unmap, NONE, "VMM: an address range was unmapped, noted before the call") \
	E(77, pool_create, NONE, "a memory pool") \
	E(78, pool_destroy, NONE, "its end") \
	E(79, pool_state, NONE, "reserved and used bytes of a pool, read around a trim or a limit change") \
	E(80, copy, NONE, "a copy that the driver was asked for, noted when the call returned") \
	E(81, memset, NONE, "device memory was set") \
	E(82, sync, NONE, "the program waited for the device") \
	E(83, get_info, NONE, "cuMemGetInfo: what the program was told") \
	E(84, enter, NONE, "a large call is about to enter the driver") \
	E(85, context, NONE, "a context was created, destroyed or reset") \
	E(112, sample, NONE, "the pool at one moment") \
	E(113, cached, NONE, "page cache of one cell of a weight file") \
	E(114, anon, WORDS, "anonymous pages in a private mapping of a file: pairs first, end address")

#define ST_FIELDS_block(F) \
	F(number, COUNT, "0, 1, ...") \
	F(minor, COUNT, "minor format version of the writer") \
	F(monotonic, TIME, "CLOCK_MONOTONIC") \
	F(boottime, TIME, "CLOCK_BOOTTIME") \
	F(realtime, TIME, "CLOCK_REALTIME") \
	F(utc_offset, INT, "seconds east of UTC in the recorder's time zone") \
	F(synced, TIME, "CLOCK_MONOTONIC when the last fdatasync before this block was complete, 0: none yet")

#define ST_FIELDS_trailer(F) \
	F(blocks, COUNT, "blocks before and including this one") \
	F(records, COUNT, "records in all blocks, this one included") \
	F(lost, COUNT, "events that found no room")

#define ST_FIELDS_process(F) \
	F(pid, COUNT, "process id") \
	F(ppid, COUNT, "its parent") \
	F(uid, COUNT, "effective user id") \
	F(page_size, SIZE, "bytes of a page") \
	F(pool, POOL, "uma, discrete or simulated") \
	F(cpus, COUNT, "processors online") \
	F(start, TIME, "start of the program, CLOCK_MONOTONIC") \
	F(rank, OPTCOUNT, "rank among the processes of a run") \
	F(world, OPTCOUNT, "number of ranks")

#define ST_FIELDS_info(F)
#define ST_FIELDS_lost(F) F(count, COUNT, "events") F(bytes, SIZE, "their records")
#define ST_FIELDS_coverage(F)
#define ST_FIELDS_exit(F) \
	F(how, EXIT, "exited, signaled, execed or unknown") F(status, INT, "exit status or signal") \
	F(oom_kills, OPTCOUNT, "kernel OOM kills on this machine during the run")
#define ST_FIELDS_revoke(F) F(target, COUNT, "seq of the record taken back, without the magic")
#define ST_FIELDS_moment(F) F(what, MOMENT, "which moment") F(size, SIZE, "bytes concerned")
#define ST_FIELDS_mark(F)
#define ST_FIELDS_child(F) F(pid, COUNT, "process id, 0 before it is known") F(how, CHILD, "how it was made")
#define ST_FIELDS_thread(F) F(tid, COUNT, "thread id")

#define ST_FIELDS_file(F) \
	F(id, COUNT, "identifier") \
	F(dev, HANDLE, "device") \
	F(ino, COUNT, "inode") \
	F(size, SIZE, "bytes when first seen") \
	F(format, FORMAT, "weights or not, by name and magic")
#define ST_FIELDS_stack(F) F(id, COUNT, "identifier") F(flags, STACKFLAGS, "cut, slow")
#define ST_FIELDS_module(F) \
	F(start, ADDR, "first address of the executable mapping") \
	F(end, ADDR, "address behind it") \
	F(offset, SIZE, "offset in the file") \
	F(bias, ADDR, "address minus the object's own virtual address") \
	F(build_id, HANDLE, "first 8 bytes of the build id, big-endian; 0: none")
#define ST_FIELDS_symbol(F) \
	F(address, ADDR, "as it stands in stacks") F(offset, SIZE, "distance from the function's start")
#define ST_FIELDS_tensor(F) \
	F(file, FILE, "file") \
	F(offset, SIZE, "first byte in the file") \
	F(size, SIZE, "bytes") \
	F(dtype, DTYPE, "element type") \
	F(elements, COUNT, "number of elements")
#define ST_FIELDS_package(F)
#define ST_FIELDS_code(F) F(id, COUNT, "identifier") F(line, COUNT, "its first line")
#define ST_FIELDS_frames(F) F(id, STACK, "the stack") F(flags, STACKFLAGS, "cut")
#define ST_FIELDS_index(F) \
	F(total_size, OPTSIZE, "bytes of all tensors, as it says") F(shards, COUNT, "files it names") \
	F(tensors, COUNT, "tensors it names")

#define ST_FIELDS_map(F) \
	F(addr, ADDR, "where it is") F(size, SIZE, "bytes, as asked") F(prot, PROT, "PROT_*") \
	F(flags, MAPFLAGS, "MAP_*") F(file, FILE, "file, 0: anonymous") F(offset, SIZE, "in the file") \
	F(stack, STACK, "from where")
#define ST_FIELDS_unmap(F) F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(stack, STACK, "from where")
#define ST_FIELDS_remap(F) \
	F(addr, ADDR, "old address") F(size, SIZE, "old size") F(new_addr, ADDR, "new address") \
	F(new_size, SIZE, "new size") F(flags, COUNT, "MREMAP_*") F(stack, STACK, "from where")
#define ST_FIELDS_protect(F) F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(prot, PROT, "PROT_*")
#define ST_FIELDS_advise(F) F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(advice, COUNT, "MADV_*")
#define ST_FIELDS_fadvise(F) \
	F(file, FILE, "file") F(offset, SIZE, "first byte") F(size, SIZE, "bytes, 0: to the end") \
	F(advice, COUNT, "POSIX_FADV_*; readahead is POSIX_FADV_WILLNEED")
#define ST_FIELDS_lock(F) \
	F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(locked, COUNT, "1: locked, 0: unlocked") \
	F(result, INT, "errno")
#define ST_FIELDS_open(F) F(file, FILE, "file") F(flags, COUNT, "O_*") F(stack, STACK, "from where")
#define ST_FIELDS_read(F) \
	F(file, FILE, "file") F(offset, SIZE, "first byte in the file") F(size, SIZE, "bytes that came") \
	F(addr, ADDR, "where they went, 0: nowhere in memory or unknown; of cufile: on the device") \
	F(how, READ, "which call") F(stack, STACK, "from where") F(took, TIME, "inside the call, 0: unknown")
#define ST_FIELDS_alloc(F) \
	F(addr, ADDR, "block") F(size, SIZE, "bytes, as asked") F(how, HOST, "which call") \
	F(stack, STACK, "from where")
#define ST_FIELDS_free(F) F(addr, ADDR, "block")
#define ST_FIELDS_relief(F) \
	F(what, RELIEF, "mapped without write permission; made writable again; cache given back; gave up") \
	F(file, FILE, "file") F(offset, SIZE, "first byte in the file") F(size, SIZE, "bytes") \
	F(addr, ADDR, "where it is mapped, 0: nowhere") F(result, INT, "errno")

#define ST_FIELDS_device_alloc(F) \
	F(addr, ADDR, "device address, or array handle") F(size, SIZE, "bytes counted") \
	F(asked, SIZE, "bytes asked for, where different") F(how, DEVICE, "which entry") \
	F(device, OPTCOUNT, "device ordinal, where told") F(stream, HANDLE, "stream") \
	F(pool, HANDLE, "pool") F(result, INT, "CUresult") F(flags, CALLFLAGS, "nested, capturing") \
	F(stack, STACK, "from where")
#define ST_FIELDS_device_free(F) \
	F(addr, ADDR, "device address, or array handle") F(how, DEVICE, "which entry") \
	F(stream, HANDLE, "stream") F(flags, CALLFLAGS, "nested, capturing") F(stack, STACK, "from where")
#define ST_FIELDS_pinned_alloc(F) \
	F(addr, ADDR, "host address") F(size, SIZE, "bytes") F(attributes, COUNT, "CU_MEMHOSTALLOC_*") \
	F(result, INT, "CUresult") F(flags, CALLFLAGS, "nested") F(stack, STACK, "from where")
#define ST_FIELDS_pinned_free(F) F(addr, ADDR, "host address") F(flags, CALLFLAGS, "nested")
#define ST_FIELDS_register(F) \
	F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(attributes, COUNT, "CU_MEMHOSTREGISTER_*") \
	F(result, INT, "CUresult") F(stack, STACK, "from where")
#define ST_FIELDS_unregister(F) F(addr, ADDR, "first byte")
#define ST_FIELDS_reserve(F) \
	F(addr, ADDR, "first byte") F(size, SIZE, "bytes of addresses") F(result, INT, "CUresult")
#define ST_FIELDS_unreserve(F) F(addr, ADDR, "first byte") F(size, SIZE, "bytes of addresses")
#define ST_FIELDS_handle_create(F) \
	F(handle, HANDLE, "allocation") F(size, SIZE, "bytes") F(location, LOCATION, "device or host") \
	F(device, OPTCOUNT, "device ordinal") F(result, INT, "CUresult") F(flags, CALLFLAGS, "nested") \
	F(stack, STACK, "from where")
#define ST_FIELDS_handle_retain(F) F(handle, HANDLE, "allocation")
#define ST_FIELDS_handle_release(F) F(handle, HANDLE, "allocation") F(flags, CALLFLAGS, "nested")
#define ST_FIELDS_handle_map(F) \
	F(addr, ADDR, "device address") F(size, SIZE, "bytes") F(offset, SIZE, "in the allocation") \
	F(handle, HANDLE, "allocation")
#define ST_FIELDS_handle_unmap(F) F(addr, ADDR, "device address") F(size, SIZE, "bytes")
#define ST_FIELDS_pool_create(F) \
	F(pool, HANDLE, "pool") F(location, LOCATION, "device or host") \
	F(size, SIZE, "upper limit, 0: none")
#define ST_FIELDS_pool_destroy(F) F(pool, HANDLE, "pool")
#define ST_FIELDS_pool_state(F) \
	F(pool, HANDLE, "pool") F(reserved, OPTSIZE, "bytes held") F(used, OPTSIZE, "bytes in use") \
	F(threshold, OPTSIZE, "bytes kept at a sync")
#define ST_FIELDS_copy(F) \
	F(dst, ADDR, "to") F(src, ADDR, "from") F(size, SIZE, "bytes") F(how, COPY, "direction") \
	F(async, COUNT, "1: stream-ordered, over only at the next sync of the stream") \
	F(stream, HANDLE, "stream") F(result, INT, "CUresult") F(flags, CALLFLAGS, "nested, capturing") \
	F(stack, STACK, "from where") F(took, TIME, "inside the call, 0: unknown")
#define ST_FIELDS_memset(F) F(addr, ADDR, "first byte") F(size, SIZE, "bytes") F(stream, HANDLE, "stream")
#define ST_FIELDS_sync(F) \
	F(how, SYNC, "stream, event or context") F(handle, HANDLE, "which; 0: the default stream") \
	F(took, TIME, "inside the call, 0: unknown")
#define ST_FIELDS_get_info(F) \
	F(free, SIZE, "bytes said to be free") F(total, SIZE, "bytes in all") F(result, INT, "CUresult")
#define ST_FIELDS_enter(F) \
	F(call, KIND, "kind of the record that follows when it returns") \
	F(addr, ADDR, "source or address") F(size, SIZE, "bytes")
#define ST_FIELDS_context(F) \
	F(handle, HANDLE, "context") F(alive, COUNT, "1: created, 0: destroyed") \
	F(device, OPTCOUNT, "device ordinal")

#define ST_FIELDS_sample(F) \
	F(reason, MOMENT, "why now") \
	F(mem_total, OPTSIZE, "MemTotal") F(mem_free, OPTSIZE, "MemFree") F(mem_available, OPTSIZE, "MemAvailable") \
	F(percpu_free, OPTSIZE, "free pages parked in per-CPU lists (/proc/zoneinfo)") \
	F(buffers, OPTSIZE, "Buffers") F(cached, OPTSIZE, "Cached") F(sreclaimable, OPTSIZE, "SReclaimable") \
	F(shmem, OPTSIZE, "Shmem") F(anon_pages, OPTSIZE, "AnonPages") F(mapped, OPTSIZE, "Mapped") \
	F(active, OPTSIZE, "Active") F(inactive, OPTSIZE, "Inactive") F(slab, OPTSIZE, "Slab") \
	F(page_tables, OPTSIZE, "PageTables") F(unevictable, OPTSIZE, "Unevictable") F(mlocked, OPTSIZE, "Mlocked") \
	F(dirty, OPTSIZE, "Dirty") F(writeback, OPTSIZE, "Writeback") \
	F(cma_total, OPTSIZE, "CmaTotal") F(cma_free, OPTSIZE, "CmaFree") \
	F(swap_total, OPTSIZE, "SwapTotal") F(swap_free, OPTSIZE, "SwapFree") \
	F(watermark, OPTSIZE, "sum of the zones' high watermarks (/proc/zoneinfo)") \
	F(rss_anon, OPTSIZE, "RssAnon of the program") F(rss_file, OPTSIZE, "RssFile") F(rss_shmem, OPTSIZE, "RssShmem") \
	F(swap, OPTSIZE, "VmSwap") F(rss_peak, OPTSIZE, "VmHWM") \
	F(sim_device, OPTSIZE, "bytes of the simulated device in rss_shmem, to be taken off it") \
	F(other_anon, OPTSIZE, "RssAnon of all other processes, without the recorder; of forked copies only their own") \
	F(recorder, OPTSIZE, "RssAnon + RssShmem of the recorder") \
	F(psi_some, OPTCOUNT, "memory pressure `some`, total us") F(psi_full, OPTCOUNT, "`full`, total us") \
	F(refaults, OPTCOUNT, "workingset_refault_file") F(reclaimed, OPTCOUNT, "pgsteal_direct") \
	F(stalls, OPTCOUNT, "allocstall, all zones") F(compact_fails, OPTCOUNT, "compact_fail") \
	F(oom_kills, OPTCOUNT, "oom_kill") \
	F(cgroup_used, OPTSIZE, "memory.current") F(cgroup_limit, OPTSIZE, "memory.max, unknown: none") \
	F(io_read, OPTSIZE, "bytes that the program had read from storage (/proc/PID/io)") \
	F(major_faults, OPTCOUNT, "its page faults that waited for storage")
#define ST_FIELDS_cached(F) \
	F(file, FILE, "file") F(offset, SIZE, "first byte of the cell") F(size, SIZE, "bytes of the cell") \
	F(cached, OPTSIZE, "bytes in the page cache") F(dirty, OPTSIZE, "of these dirty") \
	F(evicted, OPTSIZE, "evicted") F(recently_evicted, OPTSIZE, "evicted under pressure lately") \
	F(source, SOURCE, "what told it") F(result, INT, "errno; then cached is unknown")
#define ST_FIELDS_anon(F) \
	F(addr, ADDR, "first byte of the range looked at") F(size, SIZE, "its bytes") \
	F(file, FILE, "file mapped there") F(offset, SIZE, "in the file, of addr") \
	F(bytes, SIZE, "anonymous bytes in it") F(reason, MOMENT, "why now") \
	F(source, SOURCE, "what told it") \
	F(complete, COUNT, "0: the pairs were cut, bytes is a lower bound")

/* clang-format on */
enum st_kind {
#define E(number, name, tail, meaning) ST_KIND_##name = number,
	ST_EVENTS(E)
#undef E
};

/* One struct a kind: struct st_ev_map, struct st_ev_sample, ... The tail follows the struct. */
#define ST_STRUCT_FIELD(name, type, meaning) uint64_t name;
#define ST_STRUCT(number, name, tail, meaning)    \
	struct st_ev_##name {                     \
		struct st_record r;               \
		ST_FIELDS_##name(ST_STRUCT_FIELD) \
	};
ST_EVENTS(ST_STRUCT)
#undef ST_STRUCT
#undef ST_STRUCT_FIELD

#endif
