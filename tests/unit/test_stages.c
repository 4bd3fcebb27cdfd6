/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the stages of a load: times that calls took are exact, threads that work at once count once in the wall time,
 * and what set the pace is only said where samples cover it.
 */
#include <analyzer/stages.h>
#include "scene.h"

#include <math.h>

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define PINNED (300 * GIB)
#define HEAP   (400 * GIB)
#define SECOND UINT64_C(1000000000)
#define MS(n)  (UINT64_C(1000000) * (n))
#define CODE   UINT64_C(0x7000)

static const struct load_stage *stage(const struct model *model, enum stage name)
{
	return &model->load.stages[name];
}

/* The header ends where the first tensor begins. */
static void play_checkpoint(struct scene *scene)
{
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play_tensor(scene, 1, "a", MIB, GIB - MIB);
	ALLOC(DEVICE, GIB);
}

static void play_storage(struct scene *scene, uint64_t storage)
{
	struct st_ev_sample sample;

	memset(&sample, 0xff, sizeof(sample));
	sample.r = (struct st_record){
		.time = record_now.time, .kind = ST_KIND_sample, .words = sizeof(sample) / 8};
	sample.io_read = storage;
	sample.major_faults = 0;
	play(scene, &sample.r);
}

static void play_read(struct scene *scene, uint64_t thread, uint64_t offset, uint64_t size, uint64_t took)
{
	record_now.thread = (uint32_t)thread;
	play(scene, RECORD(read, .file = 1, .offset = offset, .size = size, .addr = HEAP + offset,
	                   .how = ST_READ_PREAD, .took = took));
	record_now.thread = 1;
}

/* Copies out of the mapping, and the wait for them: to the nanosecond. */
static void test_device_copy(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *copies;

	play_checkpoint(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	COPY(DEVICE, MAPPED + MIB, 256 * MIB, .took = MS(400));
	COPY(DEVICE + 256 * MIB, MAPPED + 257 * MIB, 512 * MIB, .took = MS(300), .async = 1);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .took = MS(250)));
	COPY(DEVICE, MAPPED + MIB, MIB, .took = MS(1)); /* the load goes on behind the wait */
	copies = stage(scene_model(scene, true), STAGE_DEVICE_COPY);
	assert_int_equal(copies->thread_time, MS(400 + 300 + 250 + 1));
	assert_int_equal(copies->wall, MS(951));
	assert_int_equal(copies->bytes, 769 * MIB);
	assert_int_equal(copies->calls, 3);
	assert_false(copies->upper);
	assert_int_equal(copies->bound, BOUND_UNKNOWN); /* no sample */
	assert_int_equal(stage(scene->model, STAGE_MAP)->bytes, GIB);
	assert_int_equal(stage(scene->model, STAGE_HOST_COPY)->calls, 0);
}

/* A wait without copies before it is none of theirs. */
static void test_idle_wait(void **state)
{
	struct scene *scene = *state;

	play_checkpoint(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .took = MS(700)));
	COPY(DEVICE, MAPPED + MIB, MIB, .took = MS(100));
	assert_int_equal(stage(scene_model(scene, true), STAGE_DEVICE_COPY)->thread_time, MS(100));
}

/* A pinned buffer that no read has filled: the program copied into it until the driver was asked. */
static void test_host_copy(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *copies;

	play_checkpoint(scene);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	play(scene, RECORD(pinned_alloc, .addr = PINNED, .size = 64 * MIB));
	COPY(DEVICE, PINNED, 64 * MIB, .took = MS(100));
	copies = stage(scene_model(scene, true), STAGE_HOST_COPY);
	assert_int_equal(copies->thread_time, MS(900));
	assert_int_equal(copies->bytes, 64 * MIB);
	assert_true(copies->upper);
}

/* The same after a read into the buffer: nothing was copied by the program. */
static void test_filled_by_read(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_checkpoint(scene);
	play(scene, RECORD(pinned_alloc, .addr = PINNED, .size = 64 * MIB));
	play(scene, RECORD(read, .file = 1, .offset = MIB, .size = 64 * MIB, .addr = PINNED,
	                   .how = ST_READ_PREAD, .took = MS(300)));
	COPY(DEVICE, PINNED, 64 * MIB, .took = MS(100));
	model = scene_model(scene, true);
	assert_int_equal(stage(model, STAGE_HOST_COPY)->calls, 0);
	assert_int_equal(stage(model, STAGE_READ)->thread_time, MS(300));
	assert_int_equal(stage(model, STAGE_READ)->bytes, 64 * MIB);
}

/* Bytes before the first tensor are the header's. */
static void test_header(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_checkpoint(scene);
	play_read(scene, 1, 0, MIB, MS(20));
	play_read(scene, 1, MIB, 3 * MIB, MS(30));
	model = scene_model(scene, true);
	assert_int_equal(stage(model, STAGE_HEADER)->bytes, MIB);
	assert_int_equal(stage(model, STAGE_HEADER)->calls, 1);
	assert_int_equal(stage(model, STAGE_READ)->bytes, 3 * MIB);
	assert_int_equal(stage(model, STAGE_READ)->thread_time, MS(30));
}

/*
 * Two threads read at once: 1.5 s and 1.5 s that overlap by 0.5 s. Half of the bytes came from storage, so storage set
 * the pace.
 */
static void test_threads(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *reads;

	play_checkpoint(scene);
	play_read(scene, 1, MIB, MIB, MS(1)); /* the thread is known from here */
	play_read(scene, 2, 2 * MIB, MIB, MS(1));
	play_storage(scene, 0);
	record_now.time += 2 * SECOND;
	play_read(scene, 1, 4 * MIB, 64 * MIB, MS(1500));
	play_read(scene, 2, 68 * MIB, 64 * MIB, MS(1500));
	play_storage(scene, 66 * MIB);
	play_read(scene, 1, 132 * MIB, MIB, MS(1));
	reads = stage(scene_model(scene, true), STAGE_READ);
	assert_int_equal(reads->thread_time, MS(1 + 1 + 1500 + 1500 + 1));
	assert_int_equal(reads->thread_time - reads->wall, MS(500));
	assert_int_equal(reads->storage, 66 * MIB);
	assert_int_equal(reads->bound, BOUND_STORAGE);
	assert_false(reads->one_thread);
}

/* With the bytes in the page cache memory sets it, and one thread is said to be one. */
static void test_one_thread(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *reads;

	play(scene, RECORD(process, .pid = 1, .cpus = 8, .page_size = 4096));
	play_checkpoint(scene);
	play_read(scene, 1, MIB, MIB, MS(1));
	play_storage(scene, 0);
	play_read(scene, 1, 4 * MIB, 512 * MIB, MS(1500));
	play_storage(scene, 0);
	play_read(scene, 1, 520 * MIB, MIB, MS(1));
	reads = stage(scene_model(scene, true), STAGE_READ);
	assert_int_equal(reads->bound, BOUND_MEMORY);
	assert_true(reads->one_thread);
	assert_int_equal(reads->storage, 0);
}

/* What follows an allocation under PyTorch's conversion is converting, until the thread's next event. */
static void test_conversion(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *conversion;

	play_checkpoint(scene);
	play(scene, record_tail(RECORD(stack, .id = 3), (uint64_t[]){CODE}, 8));
	play(scene, record_tail(RECORD(symbol, .address = CODE), "_ZN2at6native8_to_copyERKNS_6TensorE", 36));
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	play(scene, RECORD(alloc, .addr = HEAP, .size = 32 * MIB, .stack = 3));
	COPY(DEVICE, HEAP, 32 * MIB, .took = MS(200));
	conversion = stage(scene_model(scene, true), STAGE_CONVERSION);
	assert_int_equal(conversion->bytes, 32 * MIB);
	/* The second before the allocation may be part of it, the 0.8 s before the copy are. */
	assert_int_equal(conversion->thread_time, MS(1800));
	assert_true(conversion->upper);
}

/* Releases are noted before their calls: one lasted no longer than until the next; when the last ended is not known. */
static void test_release(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *release;

	play_checkpoint(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	COPY(DEVICE, MAPPED + MIB, GIB - MIB, .took = MS(100));
	UNMAP(MAPPED, 512 * MIB);
	UNMAP(MAPPED + 512 * MIB, 512 * MIB);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .took = MS(400)));
	EXIT(0);
	release = stage(scene_model(scene, true), STAGE_RELEASE);
	assert_int_equal(release->bytes, GIB);
	assert_int_equal(release->thread_time, SECOND);
	assert_true(release->upper);
}

/*
 * One thread reads over and over, another one all the time: no instant counts twice in the wall time, however many
 * reads lie behind; and where not all of them can be kept the time is said to be a lower bound.
 */
static void test_reaching_back(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *reads;
	uint64_t begin, took;

	play_checkpoint(scene);
	begin = record_now.time;
	for (uint64_t i = 0; i < 2 * STAGES_SPANS; i++)
		play_read(scene, 1, MIB + i * 4096, 4096, MS(1));
	took = record_now.time - begin;
	play_read(scene, 2, 512 * MIB, 256 * MIB, took);
	play_read(scene, 1, 800 * MIB, MIB, MS(1));
	reads = stage(scene_model(scene, true), STAGE_READ);
	assert_true(reads->wall <= took + MS(1));
	assert_true(reads->wall > took / 2);
	assert_true(reads->lower);
	assert_false(reads->one_thread);
	assert_false(stage(scene->model, STAGE_HEADER)->lower);
}

/* Of more threads than are followed nothing is claimed to be all. */
static void test_many_threads(void **state)
{
	struct scene *scene = *state;
	const struct load_stage *reads;

	play_checkpoint(scene);
	for (uint64_t i = 0; i < STAGES_THREADS + 1; i++)
		play_read(scene, 10 + i, MIB + i * 4096, 4096, MS(1));
	reads = stage(scene_model(scene, true), STAGE_READ);
	assert_true(reads->lower);
	assert_false(reads->one_thread);
	assert_true(reads->calls <= STAGES_THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_device_copy),    TEST(test_idle_wait),    TEST(test_host_copy),
		TEST(test_filled_by_read), TEST(test_header),       TEST(test_threads),
		TEST(test_one_thread),     TEST(test_conversion),   TEST(test_release),
		TEST(test_reaching_back),  TEST(test_many_threads),
	};

	return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}
