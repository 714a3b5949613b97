// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_debug - a good program with damaged debug information: rewriting must succeed, and the
 * output must verify.
 *
 * The input is a list of changes {u24 offset, u8 value} to the sections .debug_* of a program
 * that is compiled at the start. The first byte chooses the program, the version of DWARF, and with the
 * programs of leaf.c, functions in place of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/rewrite/leaf.h"
#include "editor/layout/plan_all.h"
#include "editor/verify/verify.h"
#include "libprof/insn/insn.h"
#include "tests/support/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A program and its analysis. Only its debug information changes between inputs. */
struct program {
	uint8_t *bytes;
	size_t size;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_plan plan;
};

#define NR_PROGRAMS 7

static struct program programs[NR_PROGRAMS];

/* Return: 1 + index of the leaf that the call at the end of @block leads to; 0: none. */
static uint16_t leaf_at_end(struct program *p, const struct mp_block *block)
{
	uint64_t call = block->vaddr + block->size - ME_LEAF_CALL_SIZE;
	const uint8_t *bytes = mp_elf_bytes(p->elf, call, ME_LEAF_CALL_SIZE);
	struct me_leaf *leaf = &p->plan.leaves[p->plan.nr_leaves];
	struct mp_insn insn;
	uint32_t func;

	if (block->term != MP_TERM_FALL || block->size < ME_LEAF_CALL_SIZE || !bytes ||
	    bytes[0] != 0xe8 || mp_insn_decode(bytes, ME_LEAF_CALL_SIZE, call, &insn))
		return 0;
	func = mp_cfg_func_at(p->cfg, insn.target);
	if (func == MP_NONE || p->cfg->funcs[func].vaddr != insn.target ||
	    p->plan.nr_leaves == UINT16_MAX || !me_leaf_find(p->cfg, func, leaf) || leaf->frame ||
	    !me_leaf_caller(p->cfg, block->func))
		return 0;
	return (uint16_t)++p->plan.nr_leaves;
}

/* Small functions replace calls of them. Calls end their blocks. */
static bool inline_leaves(struct program *p)
{
	p->plan.leaves = calloc((size_t)p->plan.nr_blocks + 1, sizeof(*p->plan.leaves));
	for (uint32_t i = 0; p->plan.leaves && i < p->plan.nr_blocks; i++) {
		struct me_plan_block *planned = &p->plan.blocks[i];

		planned->inlined = leaf_at_end(p, &p->cfg->blocks[planned->block]);
	}
	return p->plan.leaves;
}

static bool prepare(const char *command, struct program *p)
{
	const struct mp_cfg_options options = {.fine = true};
	struct rewrite_bytes bytes;
	uint8_t *movable = NULL;
	struct mp_err err;

	if (!rewrite_compile(command, &bytes))
		return false;
	p->bytes = bytes.data;
	p->size = bytes.size;
	if (mp_elf_open_memory("program", p->bytes, p->size, MP_ELF_ALL, &p->elf, &err) ||
	    mp_cfg_build(p->elf, &options, &p->cfg, &err))
		return false;
	movable = rewrite_movable(p->cfg);
	if (!movable || me_plan_all(p->cfg, movable, NULL, &p->plan, &err) || !inline_leaves(p))
		p->plan.nr_blocks = 0;
	free(movable);
	return p->plan.nr_blocks;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const builds[NR_PROGRAMS] = {
		"g++ -gdwarf-5 -O2 tests/data/scopes.cc",
		"g++ -gdwarf-4 -O2 tests/data/scopes.cc",
		"clang++ -gdwarf-5 -O2 tests/data/scopes.cc",
		"g++ -gdwarf-3 -O2 tests/data/scopes.cc",
		"gcc -gdwarf-5 -O2 tests/data/leaf.c",
		"gcc -gdwarf-4 -O2 tests/data/leaf.c",
		"clang -w -gdwarf-5 -O2 tests/data/leaf.c",
	};
	char command[256];

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < NR_PROGRAMS; i++) {
		snprintf(command, sizeof(command), "%s -Wl,--emit-relocs", builds[i]);
		if (!prepare(command, &programs[i])) {
			programs[i].plan.nr_blocks = 0;
			fprintf(stderr, "fuzz_debug: does not work: %s\n", command);
		}
	}
	return 0;
}

/* Return: byte @off of all .debug_* sections, taken as one sequence. */
static uint8_t *byte_at(const struct program *p, uint64_t off)
{
	uint64_t total = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 1; i < p->elf->nr_sections; i++) {
			const struct mp_section *s = &p->elf->sections[i];

			if (strncmp(s->name, ".debug_", 7) || s->type == SHT_NOBITS)
				continue;
			if (pass && off < s->size)
				return p->bytes + s->off + off;
			if (pass)
				off -= s->size;
			total += s->size;
		}
		if (!total)
			return NULL;
		if (!pass)
			off %= total;
	}
	return NULL;
}

static void verify(const struct program *p, const struct me_output_parts *parts)
{
	struct rewrite_bytes out = rewrite_flatten(parts);
	struct mp_elf *output;
	struct mp_err err;

	if (!out.data)
		return;
	if (mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &output, &err) ||
	    me_verify(p->elf, output, NULL, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	mp_elf_close(output);
	free(out.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct me_emitted emitted;
	struct program *p;
	uint8_t *copy;
	struct mp_err err;

	if (!size)
		return 0;
	p = &programs[data[0] % NR_PROGRAMS];
	if (!p->plan.nr_blocks)
		return 0;
	copy = malloc(p->size);
	if (!copy)
		return 0;
	memcpy(copy, p->bytes, p->size);
	for (data++, size--; size >= 4; data += 4, size -= 4) {
		uint8_t *at = byte_at(p, (uint64_t)(data[0] | data[1] << 8 | data[2] << 16));

		if (at)
			*at = data[3];
	}
	if (rewrite_emit(p->cfg, &p->plan, &emitted, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	verify(p, &emitted.output);
	me_emitted_fini(&emitted);
	memcpy(p->bytes, copy, p->size);
	free(copy);
	return 0;
}
