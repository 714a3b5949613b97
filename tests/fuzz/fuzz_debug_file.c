// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_debug_file - a good program with a damaged debug file: the debug file is refused, or a new
 * one is made from it; if it is not refused, the program is always written.
 *
 * The input is a list of changes {u24 offset, u8 value} to a debug file that is made at the
 * start; the first byte chooses the file. Input that is no such list is used as the debug file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/layout/plan_all.h"
#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"

#define NR_PROGRAMS 3
#define NAME	    "output.debug"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct program {
	struct rewrite_bytes bytes, debug;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_plan plan;
};

static struct program programs[NR_PROGRAMS];

static bool prepare(const char *compiler, struct program *p)
{
	uint8_t *movable = NULL;
	char command[512];
	struct mp_err err;

	snprintf(command, sizeof(command), "%s -s tests/data/scopes.cc", compiler);
	if (!rewrite_compile(command, &p->bytes))
		return false;
	/* The last two words are -o and a path. */
	snprintf(command, sizeof(command),
		 "sh -c '%s tests/data/scopes.cc -o $2 && objcopy --only-keep-debug $2' sh",
		 compiler);
	if (!rewrite_compile(command, &p->debug) ||
	    mp_elf_open_memory("program", p->bytes.data, p->bytes.size, MP_ELF_ALL, &p->elf,
			       &err) ||
	    mp_cfg_build(p->elf, NULL, &p->cfg, &err))
		return false;
	movable = rewrite_movable(p->cfg);
	if (!movable || me_plan_all(p->cfg, movable, NULL, &p->plan, &err) ||
	    rewrite_redirect(p->cfg, &p->plan, &err))
		p->plan.nr_blocks = 0;
	free(movable);
	return p->plan.nr_blocks;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const compilers[NR_PROGRAMS] = {
		"g++ -g -O2", "g++ -g -gdwarf-4 -O1 -no-pie -fno-pie -gz=zlib",
		"clang++ -g -gdwarf-5 -O2"};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < NR_PROGRAMS; i++)
		if (!prepare(compilers[i], &programs[i])) {
			programs[i].plan.nr_blocks = 0;
			fprintf(stderr, "fuzz_debug_file: does not work: %s\n", compilers[i]);
		}
	return 0;
}

static void verify(const struct program *p, const struct mp_elf *debug,
		   const struct me_emitted *emitted)
{
	struct rewrite_bytes out = rewrite_flatten(&emitted->output);
	struct rewrite_bytes debug_out = rewrite_flatten(&emitted->debug_output);
	struct me_verify_debug files = {debug, NULL, NAME};
	struct mp_elf *output = NULL, *debug_output = NULL;
	struct mp_err err = {""};
	int rc;

	if (!out.data || !debug_out.data)
		goto out;
	rc = mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &output, &err);
	if (!rc)
		rc = mp_elf_open_memory("debug", debug_out.data, debug_out.size,
					MP_ELF_DEBUG | MP_ELF_SYMBOLS, &debug_output, &err);
	files.output = debug_output;
	if (!rc)
		rc = me_verify_parallel(p->elf, output, &files, 1, NULL, &err);
	/* Verify may reject a damaged debug file, but never the program. */
	if (rc && (rc != -EBADMSG || strncmp(err.msg, "debug", 5))) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
out:
	mp_elf_close(debug_output);
	mp_elf_close(output);
	free(debug_out.data);
	free(out.data);
}

static void try_debug(const struct program *p, const uint8_t *data, size_t size)
{
	struct me_emitted emitted;
	struct mp_elf *debug;
	struct mp_err err;

	if (mp_elf_open_memory("damaged", data, size, MP_ELF_DEBUG | MP_ELF_SYMBOLS, &debug, &err))
		return;
	if (!rewrite_emit_with_debug_file(p->cfg, &p->plan, NULL, debug, NAME, &emitted, &err)) {
		verify(p, debug, &emitted);
		me_emitted_fini(&emitted);
	}
	mp_elf_close(debug);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct program *p;
	uint8_t *copy;

	if (!size)
		return 0;
	p = &programs[data[0] % NR_PROGRAMS];
	if (!p->plan.nr_blocks)
		return 0;
	if (size >= 4 && !memcmp(data, "\177ELF", 4)) {
		try_debug(p, data, size);
		return 0;
	}
	copy = malloc(p->debug.size);
	if (!copy)
		return 0;
	memcpy(copy, p->debug.data, p->debug.size);
	for (data++, size--; size >= 4; data += 4, size -= 4)
		copy[(size_t)(data[0] | data[1] << 8 | data[2] << 16) % p->debug.size] = data[3];
	try_debug(p, copy, p->debug.size);
	free(copy);
	return 0;
}
