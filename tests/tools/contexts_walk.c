// SPDX-License-Identifier: Apache-2.0
/*
 * contexts_walk - compares exact stacks with those that elfutils unwinds.
 *
 * An independent check of tests/plugin/contexts.c, and the measure of what unwind tables allow:
 * reads DIR/contexts and DIR/samples of `scripts/bench/contexts run --singlestep --stack=BYTES`,
 * and unwinds each sample from its registers and its copy of the stack.
 *  contexts_walk [-v] DIR  ->  SAMPLES RIGHT SHORT WRONG FRAMES
 * RIGHT: all return addresses are the same; SHORT: unwinding ended early, without a wrong address.
 * -v prints samples that are not right. Exit status 1: one of the files cannot be read.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/exact_stacks.h"

#define MAX_FRAMES 100000

static struct {
	struct exact_stacks *stacks;
	struct exact_sample sample;
	uint64_t *found; /* addresses, the sampled instruction first */
	size_t nr_found;
} g;

/* ---- what elfutils asks for ---- */

static pid_t thread_next(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl, (void)arg;
	if (*thread_arg)
		return 0;
	*thread_arg = &g;
	return 1;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	(void)dwfl, (void)arg;
	return exact_sample_word(&g.sample, addr, result);
}

static bool registers_set(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	dwfl_thread_state_register_pc(thread, g.sample.pc);
	/* 16 is rip: a PLT's rows compute with it */
	return dwfl_thread_state_registers(thread, 16, 1, &g.sample.pc) &&
	       dwfl_thread_state_registers(thread, 0, 16, g.sample.regs);
}

static int frame_add(Dwfl_Frame *frame, void *arg)
{
	Dwarf_Addr pc;

	(void)arg;
	if (!dwfl_frame_pc(frame, &pc, NULL) || g.nr_found == MAX_FRAMES)
		return DWARF_CB_ABORT;
	g.found[g.nr_found++] = pc;
	return DWARF_CB_OK;
}

static int no_debug_info(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **path)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)path;
	return -1;
}

static Dwfl *dwfl_open(void)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
						 .find_debuginfo = no_debug_info};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = thread_next,
		.memory_read = memory_read,
		.set_initial_registers = registers_set,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	const struct exact_object *objects;
	size_t i, nr;

	if (!dwfl)
		return NULL;
	dwfl_report_begin(dwfl);
	objects = exact_stacks_objects(g.stacks, &nr);
	for (i = 0; i < nr; i++)
		if (objects[i].elf)
			dwfl_report_elf(dwfl, objects[i].path, objects[i].path, -1, objects[i].bias,
					true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!dwfl_attach_state(dwfl, NULL, 1, &threads, NULL)) {
		fprintf(stderr, "contexts_walk: %s\n", dwfl_errmsg(-1));
		return NULL;
	}
	return dwfl;
}

/* ---- comparison ---- */

static void print_addresses(size_t from)
{
	const struct exact_sample *s = &g.sample;
	size_t i, first = from > 2 ? from - 2 : 0;

	printf("  unwound");
	for (i = first; i + 1 < g.nr_found && i < from + 4; i++)
		printf(" %zu:%#" PRIx64, i, g.found[i + 1]);
	printf("\n  exact  ");
	for (i = first; i < s->nr_frames && i < from + 4; i++)
		printf(" %zu:%#" PRIx64, i, s->frames[i].address);
	puts("");
}

enum result {
	RIGHT,
	SHORT,
	WRONG,
	NR_RESULTS
};

static enum result compare_sample(bool verbose)
{
	const struct exact_sample *s = &g.sample;
	/* the first one found is the sampled instruction */
	size_t nr = g.nr_found ? g.nr_found - 1 : 0, i = 0;
	enum result result;

	while (i < nr && i < s->nr_frames &&
	       (s->frames[i].any || g.found[i + 1] == s->frames[i].address))
		i++;
	result = i == s->nr_frames && i == nr ? RIGHT : i == nr ? SHORT : WRONG;
	if (verbose && result != RIGHT) {
		printf("%s at %#" PRIx64 ", %zu of %zu frames agree\n",
		       result == SHORT ? "short" : "wrong", s->pc, i, s->nr_frames);
		print_addresses(i);
	}
	return result;
}

static bool compare_samples(bool verbose)
{
	uint64_t nr[NR_RESULTS] = {0}, nr_frames = 0;
	Dwfl *dwfl = dwfl_open();

	if (!dwfl)
		return false;
	while (exact_stacks_next(g.stacks, &g.sample)) {
		g.nr_found = 0;
		dwfl_getthread_frames(dwfl, 1, frame_add, NULL);
		nr[compare_sample(verbose)]++;
		nr_frames += g.sample.nr_frames;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       nr[RIGHT] + nr[SHORT] + nr[WRONG], nr[RIGHT], nr[SHORT], nr[WRONG], nr_frames);
	dwfl_end(dwfl);
	return true;
}

int main(int argc, char **argv)
{
	bool verbose = argc == 3 && !strcmp(argv[1], "-v");
	int ret;

	if (argc != 2 + verbose) {
		fputs("usage: contexts_walk [-v] DIR\n", stderr);
		return 2;
	}
	ret = exact_stacks_open(argv[1 + verbose], &g.stacks);
	if (ret) {
		fprintf(stderr, "contexts_walk: %s: %s\n", argv[1 + verbose], strerror(-ret));
		return 1;
	}
	g.found = calloc(MAX_FRAMES, sizeof(*g.found));
	ret = !g.found || !compare_samples(verbose);
	free(g.found);
	exact_stacks_close(g.stacks);
	return ret;
}
