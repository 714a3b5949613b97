// SPDX-License-Identifier: Apache-2.0
/* profile: samples fall into the blocks that hold them, none is lost or counted twice. */
#include "libprof/profile.h"

#include <unistd.h>

#include "tests/suite.h"
#include "tests/support/compile.h"

static struct mp_elf *elf;
static struct mp_cfg *cfg;

static void setup(void)
{
	struct mp_err err = {""};
	char path[256];

	ck_assert_int_eq(compile_run("gcc", "-w -O2 -fPIE -pie", "tests/data/switches.c", path), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(elf, NULL, &cfg, &err), "%s", err.msg);
	unlink(path);
}

static void teardown(void)
{
	mp_cfg_free(cfg);
	mp_elf_close(elf);
}

START_TEST(profile_gives_every_sample_to_the_block_that_holds_it)
{
	struct mp_ip_count counts[4096];
	struct mp_profile *profile;
	struct mp_err err = {""};
	uint64_t total = 0, sum = 0;
	size_t nr = 0;
	uint64_t vaddr = 0x1000;

	for (; nr < 4096; nr++, vaddr++) {
		counts[nr] = (struct mp_ip_count){vaddr, vaddr % 5 + 1};
		total += counts[nr].count;
	}
	ck_assert_int_eq(mp_profile_build(cfg, counts, nr, &profile, &err), 0);
	ck_assert_uint_eq(profile->nr_samples + profile->nr_outside, total);
	ck_assert_uint_gt(profile->nr_samples, 0);
	ck_assert_uint_gt(profile->nr_outside, 0);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint64_t expected = 0;

		for (size_t i = 0; i < nr; i++)
			if (mp_cfg_block_at(cfg, counts[i].vaddr) == b)
				expected += counts[i].count;
		ck_assert_uint_eq(profile->block_samples[b], expected);
		sum += expected;
	}
	ck_assert_uint_eq(sum, profile->nr_samples);
	mp_profile_free(profile);
}
END_TEST

START_TEST(profile_without_samples_is_empty)
{
	struct mp_profile *profile;
	struct mp_err err = {""};

	ck_assert_int_eq(mp_profile_build(cfg, NULL, 0, &profile, &err), 0);
	ck_assert_uint_eq(profile->nr_samples, 0);
	ck_assert_uint_eq(profile->nr_outside, 0);
	ck_assert_uint_eq(profile->nr_blocks, cfg->nr_blocks);
	mp_profile_free(profile);
	mp_profile_free(NULL);
}
END_TEST

START_TEST(profile_weight_scales_by_length)
{
	ck_assert_double_eq(mp_profile_weight(30, 10), 3.0);
	ck_assert_double_eq(mp_profile_weight(30, 0), 0.0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("profile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, profile_gives_every_sample_to_the_block_that_holds_it);
	tcase_add_test(t, profile_without_samples_is_empty);
	tcase_add_test(t, profile_weight_scales_by_length);
	suite_add_tcase(s, t);
	return s;
}

MORPH_SUITE_MAIN(suite)
