// SPDX-License-Identifier: Apache-2.0
/*
 * stale-names OLD NEW - tests whether stale finds the same functions without names as with
 * names. Reads two builds of a program, matches the old build's functions with the new one's by
 * common names, then matches again without names, and prints how often both agree.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/stale/stale.h"

struct build {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_fingerprint print;
};

static int build_open(const char *path, struct build *out, struct mp_err *err)
{
	int r = mp_elf_open(path, MP_ELF_ALL, &out->elf, err);

	if (!r)
		r = mp_cfg_build(out->elf, NULL, &out->cfg, err);
	return r ? r : mp_fingerprint_make(out->cfg, NULL, 0, NULL, 0, &out->print, err);
}

static void build_close(struct build *build)
{
	mp_fingerprint_fini(&build->print);
	mp_cfg_free(build->cfg);
	mp_elf_close(build->elf);
}

static void drop_names(struct mp_fingerprint *print)
{
	for (uint32_t f = 0; f < print->nr_funcs; f++)
		print->funcs[f].name = 0;
}

static void compare(const struct mp_stale_match *with, const struct mp_stale_match *without)
{
	uint32_t nr_found = 0, nr_found_without = 0, nr_named = 0, nr_same = 0, nr_other = 0;

	for (uint32_t f = 0; f < with->old_build->nr_funcs; f++) {
		nr_found += with->func_to[f] != MP_NONE;
		nr_found_without += without->func_to[f] != MP_NONE;
		if (with->how[f] != MP_STALE_NAME)
			continue;
		nr_named++;
		nr_same += without->func_to[f] == with->func_to[f];
		nr_other += without->func_to[f] != with->func_to[f] &&
			    without->func_to[f] != MP_NONE;
	}
	printf("%u functions: %u found, %u without names; of %u found by name %u are the same "
	       "without, %u are others\n",
	       with->old_build->nr_funcs, nr_found, nr_found_without, nr_named, nr_same, nr_other);
}

int main(int argc, char **argv)
{
	struct build old_build = {0}, new_build = {0};
	struct mp_stale_match with = {0}, without = {0};
	struct mp_err err = {""};
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: stale-names OLD NEW\n");
		return 2;
	}
	r = build_open(argv[1], &old_build, &err);
	if (!r)
		r = build_open(argv[2], &new_build, &err);
	if (!r)
		r = mp_stale_match(&old_build.print, &new_build.print, &with, &err);
	if (!r) {
		drop_names(&old_build.print);
		drop_names(&new_build.print);
		r = mp_stale_match(&old_build.print, &new_build.print, &without, &err);
	}
	if (r)
		fprintf(stderr, "stale-names: %s\n", err.msg);
	else
		compare(&with, &without);
	mp_stale_match_fini(&with);
	mp_stale_match_fini(&without);
	build_close(&old_build);
	build_close(&new_build);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
