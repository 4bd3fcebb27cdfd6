/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the attribution of bytes: which bytes of a weight file are anonymous, cached, on the device; what is
 * exact must be exact to the byte, what is not must be an interval that holds the truth.
 */
#include "residency_scene.h"

static void test_catalog(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(scene->catalog.tensor_count, 3);
	assert_string_equal(scene->catalog.tensors[1].name, "t1");
	assert_int_equal(scene->catalog.files[0].payload, 256 * MIB);
	assert_int_equal(catalog_tensor_of(&scene->catalog, 0, 95 * MIB), 0);
	assert_int_equal(catalog_tensor_of(&scene->catalog, 0, 96 * MIB), 1);
	assert_int_equal(catalog_tensor_of(&scene->catalog, 0, 256 * MIB), CATALOG_NONE);
	assert_int_equal(catalog_tensor_of(&scene->catalog, 1, 0), CATALOG_NONE);
}

/* Page spans of what was copied out of a private writable mapping, until a scan tells better. */
static void test_copy_on_write(void **state)
{
	struct scene *scene = *state;
	uint64_t pairs[] = {MAPPED, MAPPED + 64 * MIB};

	MAP(MAPPED, 256 * MIB, PROT_RW, .file = A_FILE);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, MAPPED + 100, 96 * MIB - 100);
	assert_int_equal(total(scene)->device, 96 * MIB - 100);
	assert_int_equal(total(scene)->anon, 0);
	assert_int_equal(total(scene)->anon_possible, 96 * MIB); /* whole pages */
	COPY(DEVICE + 96 * MIB, MAPPED + 96 * MIB, MIB);
	assert_int_equal(total(scene)->anon_possible, 97 * MIB);
	assert_int_equal(tensor(scene, 1).anon_possible, MIB);
	scan(scene, MAPPED, 256 * MIB, pairs, 2);
	assert_int_equal(total(scene)->anon, 64 * MIB);
	assert_int_equal(total(scene)->anon_possible, 0);
	assert_int_equal(tensor(scene, 0).anon, 64 * MIB);
	assert_int_equal(scene->residency.anon_made, 64 * MIB);
	assert_int_equal(scene->residency.anon_possible_made, 0);
	UNMAP(MAPPED, 32 * MIB);
	assert_int_equal(total(scene)->anon, 32 * MIB);
	play(scene, RECORD(advise, .addr = MAPPED + 32 * MIB, .size = 16 * MIB, .advice = 4));
	assert_int_equal(total(scene)->anon, 16 * MIB);
	MAP(MAPPED, 256 * MIB, PROT_R); /* over all of it */
	assert_int_equal(total(scene)->anon, 0);
	assert_int_equal(scene->residency.anon_made, 64 * MIB);
	assert_int_equal(total(scene)->device, 97 * MIB - 100);
}

/* What the survey's scans found makes the prediction of the measuring pass a fact, as far as it came true. */
static void test_scan_known(void **state)
{
	struct scene *scene = *state;
	static const struct anon_cap known = {0, 64 * MIB};
	struct anon_cap *caps = malloc(sizeof(*caps));

	*caps = known;
	scene->residency.caps = caps;
	scene->residency.cap_count = 1;
	scene->residency.caps_known = true;
	MAP(MAPPED, 256 * MIB, PROT_RW, .file = A_FILE);
	MAP(MAPPED + GIB, 256 * MIB, PROT_RW, .file = A_FILE); /* never scanned */
	COPY(DEVICE, MAPPED, 48 * MIB);
	assert_int_equal(total(scene)->anon, 48 * MIB);
	COPY(DEVICE, MAPPED + 48 * MIB, 48 * MIB);
	assert_int_equal(total(scene)->anon, 64 * MIB);
	assert_int_equal(total(scene)->anon_possible, 0);
	COPY(DEVICE, MAPPED + GIB, 8 * MIB);
	assert_int_equal(total(scene)->anon_possible, 8 * MIB);
}

static void test_survey_keeps_scan(void **state)
{
	struct scene *scene = *state;
	uint64_t first[] = {MAPPED, MAPPED + 32 * MIB}, last[] = {MAPPED + 32 * MIB, MAPPED + 64 * MIB};

	MAP(MAPPED, 256 * MIB, PROT_RW, .file = A_FILE);
	scan(scene, MAPPED, 32 * MIB, first, 2);
	UNMAP(MAPPED, 32 * MIB);
	scan(scene, MAPPED + 32 * MIB, 224 * MIB, last, 2);
	UNMAP(MAPPED + 32 * MIB, 224 * MIB);
	assert_int_equal(scene->residency.cap_count, 1);
	assert_int_equal(scene->residency.caps[0].bytes, 64 * MIB);
}

static void test_no_break(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	COPY(DEVICE, MAPPED, 256 * MIB);
	assert_int_equal(total(scene)->anon_possible, 0);
	assert_int_equal(scene->residency.from[COPY_MAPPING], 256 * MIB);
	play(scene, RECORD(process, .pool = ST_POOL_DISCRETE));
	MAP(MAPPED, 256 * MIB, PROT_RW, .file = A_FILE);
	COPY(DEVICE, MAPPED, 256 * MIB);
	assert_int_equal(total(scene)->anon_possible, 0); /* such a driver stages */
	scene->residency.projected = true;
	COPY(DEVICE, MAPPED, 256 * MIB);
	assert_int_equal(total(scene)->anon_possible, 256 * MIB);
}

static void test_remap_carries(void **state)
{
	struct scene *scene = *state;
	uint64_t pairs[] = {MAPPED + 4 * MIB, MAPPED + 12 * MIB};

	MAP(MAPPED, 16 * MIB, PROT_RW, .file = A_FILE, .offset = 64 * MIB);
	scan(scene, MAPPED, 16 * MIB, pairs, 2);
	play(scene,
	     RECORD(remap, .addr = MAPPED, .size = 16 * MIB, .new_addr = MAPPED + GIB, .new_size = 8 * MIB));
	assert_int_equal(total(scene)->anon, 4 * MIB);
	assert_int_equal(tensor(scene, 0).anon, 4 * MIB);
	assert_int_equal(scene->residency.weights[0].mapped, 8 * MIB);
	UNMAP(MAPPED + GIB, 8 * MIB);
	assert_int_equal(total(scene)->anon, 0);
	assert_int_equal(scene->residency.weights[0].mapped, 0);
}

/* Per cell: between the overlap that cannot be avoided and the most there can be. */
static void test_reclaimable(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	assert_int_equal(total(scene)->cache_unknown, 256 * MIB);
	COPY(DEVICE, MAPPED, 32 * MIB);
	assert_int_equal(total(scene)->reclaimable_lo, 0);
	assert_int_equal(total(scene)->reclaimable_hi, 32 * MIB);
	play(scene, RECORD(cached, .file = A_FILE, .offset = 0, .size = 64 * MIB, .cached = 48 * MIB));
	assert_int_equal(total(scene)->cached, 48 * MIB);
	assert_int_equal(total(scene)->cache_unknown, 192 * MIB);
	assert_int_equal(total(scene)->reclaimable_lo, 16 * MIB);
	assert_int_equal(total(scene)->reclaimable_hi, 32 * MIB);
	COPY(DEVICE + 32 * MIB, MAPPED + 32 * MIB,
	     64 * MIB); /* into the second cell, of which nothing is known */
	assert_int_equal(total(scene)->reclaimable_lo, 48 * MIB);
	assert_int_equal(total(scene)->reclaimable_hi, (48 + 32) * MIB);
	play(scene, RECORD(cached, .file = A_FILE, .offset = 64 * MIB, .size = 64 * MIB, .result = 1));
	assert_int_equal(total(scene)->reclaimable_hi,
	                 (48 + 32) * MIB); /* unknown is not full, and not empty */
	assert_int_equal(scene->residency.weights[0].cache_error, 1);
	play(scene, RECORD(cached, .file = A_FILE, .offset = 64 * MIB, .size = 64 * MIB, .cached = 0));
	assert_int_equal(total(scene)->reclaimable_hi, 48 * MIB);
}

static void test_kept(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	COPY(DEVICE, MAPPED, 96 * MIB);
	residency_keep(&scene->residency, POINT_LOAD_PEAK);
	COPY(DEVICE + 96 * MIB, MAPPED + 96 * MIB, 96 * MIB);
	residency_keep(&scene->residency, POINT_SETTLED);
	play(scene, RECORD(memset, .addr = DEVICE, .size = GIB));
	assert_int_equal(kept_at(&scene->residency, &scene->residency.total, POINT_LOAD_PEAK)->device,
	                 96 * MIB);
	assert_int_equal(kept_at(&scene->residency, &scene->residency.total, POINT_SETTLED)->device,
	                 192 * MIB);
	assert_int_equal(kept_at(&scene->residency, &scene->residency.tensors[1], POINT_LOAD_PEAK)->device,
	                 0);
	assert_int_equal(kept_at(&scene->residency, &scene->residency.tensors[1], POINT_SETTLED)->device,
	                 96 * MIB);
	assert_int_equal(total(scene)->device, 0);
}

/* Mappings of one file that are alike are one line of a report, the others apart. */
static void test_groups(void **state)
{
	struct scene *scene = *state;
	struct weight *weight;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE, .stack = 3);
	UNMAP(MAPPED, 256 * MIB);
	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE, .stack = 3);
	MAP(MAPPED + GIB, 256 * MIB, PROT_RW, .file = A_FILE, .stack = 4);
	UNMAP(MAPPED, 256 * MIB);
	COPY(DEVICE, MAPPED + GIB, 32 * MIB);
	residency_keep(&scene->residency, POINT_SETTLED);
	weight = &scene->residency.weights[0];
	assert_int_equal(weight->group_count, 2);
	assert_int_equal(weight->groups[0].count, 2);
	assert_false(weight->groups[0].kept);
	assert_true(weight->groups[1].kept);
	assert_int_equal(weight->groups[1].copied, 32 * MIB);
	assert_int_equal(weight->mapped_peak, 512 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_catalog),           TEST(test_copy_on_write), TEST(test_scan_known),
		TEST(test_survey_keeps_scan), TEST(test_no_break),      TEST(test_remap_carries),
		TEST(test_reclaimable),       TEST(test_kept),          TEST(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
