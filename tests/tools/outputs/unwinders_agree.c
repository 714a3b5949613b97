// SPDX-License-Identifier: Apache-2.0
/*
 * unwinders_agree - compares what libgcc, LLVM's libunwind, the older libunwind and gdb find at each instruction of each
 * copy with what they find at the original's instruction (tests/support/unwinders).
 *
 *	unwinders-agree ORIGINAL OUTPUT
 *
 * Exit status 1: one of them finds another row, frame or landing pad, or they do not agree.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/unwinders/unwinders.h"

int main(int argc, char **argv)
{
	struct unwinder_image original = {0}, output = {0};
	struct mp_elf *a = NULL, *b = NULL;
	struct unwinders_report report;
	struct mp_map *map = NULL;
	struct mp_err err = {""};
	bool good;

	if (argc != 3) {
		fprintf(stderr, "usage: unwinders-agree ORIGINAL OUTPUT\n");
		return 2;
	}
	if (mp_elf_open(argv[1], MP_ELF_ALL, &a, &err) ||
	    mp_elf_open(argv[2], MP_ELF_ALL, &b, &err) || mp_map_read(b, &map, &err)) {
		fprintf(stderr, "unwinders-agree: %s\n", err.msg);
		return 2;
	}
	if (!unwinder_image_init(&original, a) || !unwinder_image_init(&output, b)) {
		fprintf(stderr, "unwinders-agree: no unwind information\n");
		return 2;
	}
	good = unwinders_check(&original, &output, map, &report);
	if (good)
		printf("%" PRIu64 " instructions as in the original, %" PRIu64
		       " in place of calls, %" PRIu64 " rows, %" PRIu64 " landing pads\n",
		       report.nr_insns, report.nr_inlined, report.nr_rows, report.nr_landings);
	unwinder_image_fini(&original);
	unwinder_image_fini(&output);
	mp_map_free(map);
	mp_elf_close(a);
	mp_elf_close(b);
	return !good;
}
