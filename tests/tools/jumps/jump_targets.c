// SPDX-License-Identifier: Apache-2.0
/*
 * jump_targets - says what simpler jumps and tail calls could save in a run of a program. For
 * scripts/bench/bench-small-rewrites.
 *
 *	jump-targets FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Prints lines `NAME COUNT`, executions:
 *  instructions, transfers	all (taken branches, jumps, calls, returns)
 *  branch-to-jump		conditional branches that lead to a direct jump
 *  jump-to-jump		direct jumps that lead to one
 *  call-to-jump		direct calls that lead to one
 *  around-jump		conditional branches that fall into a direct jump, and could only skip it
 *  jump-to-return		direct jumps that lead to a return
 *  call-return			direct calls right before a return
 *  call-end			the same, with instructions in between that only give back the stack: the callee
 *				may still use what the caller has there
 */
#include <inttypes.h>
#include <stdio.h>

#include "libprof/insn/insn.h"
#include "tests/support/counted_tool.h"

struct savings {
	uint64_t branch_to_jump, jump_to_jump, call_to_jump, around_jump, jump_to_return,
		call_return, call_end;
};

/* Decodes the instruction at @vaddr, behind an endbr64. Return: false: it is no code of the file. */
static bool decode(const struct mp_elf *elf, uint64_t vaddr, struct mp_insn *insn)
{
	for (int i = 0; i < 2; i++) {
		const uint8_t *bytes = NULL;
		size_t avail = 16;

		if (vaddr == EXACT_ELSEWHERE || !mp_elf_is_code(elf, vaddr))
			return false;
		while (avail && !(bytes = mp_elf_bytes(elf, vaddr, --avail)))
			;
		if (!avail || mp_insn_decode(bytes, avail, vaddr, insn))
			return false;
		if (!insn->endbr64)
			return true;
		vaddr += insn->len;
	}
	return true;
}

/* Does the branch fall into @jump, and its other way lead right behind that jump? */
static bool is_around(const struct mp_elf *elf, const struct exact_edge *edge,
		      const struct mp_insn *jump)
{
	struct mp_insn branch;

	return decode(elf, edge->from, &branch) && branch.kind == MP_INSN_COND &&
	       branch.target == jump->vaddr + jump->len;
}

/* add $n, %rsp; pop of a register; leave */
static bool gives_stack_back(const struct mp_elf *elf, uint64_t vaddr)
{
	const uint8_t *b = mp_elf_bytes(elf, vaddr, 3);

	if (!b)
		return false;
	return (b[0] == 0x48 && (b[1] == 0x83 || b[1] == 0x81) && b[2] == 0xc4) ||
	       (b[0] & 0xf8) == 0x58 || (b[0] == 0x41 && (b[1] & 0xf8) == 0x58) || b[0] == 0xc9;
}

static void add_call(const struct mp_elf *elf, const struct exact_edge *edge, struct savings *s)
{
	struct mp_insn insn;
	uint64_t behind;

	if (!decode(elf, edge->from, &insn))
		return;
	behind = insn.vaddr + insn.len;
	for (uint64_t at = behind; decode(elf, at, &insn); at = insn.vaddr + insn.len) {
		if (insn.kind == MP_INSN_RET) {
			s->call_return += at == behind ? edge->count : 0;
			s->call_end += edge->count;
		}
		if (!gives_stack_back(elf, insn.vaddr))
			break;
	}
}

static void add_edge(const struct mp_elf *elf, const struct exact_edge *edge, struct savings *s)
{
	struct mp_insn target;

	if (!decode(elf, edge->to, &target))
		return;
	switch (edge->kind) {
	case EXACT_TAKEN: s->branch_to_jump += target.kind == MP_INSN_JUMP ? edge->count : 0; break;
	case EXACT_JUMP:
		s->jump_to_jump += target.kind == MP_INSN_JUMP ? edge->count : 0;
		s->jump_to_return += target.kind == MP_INSN_RET ? edge->count : 0;
		break;
	case EXACT_FALL:
		if (target.kind == MP_INSN_JUMP && is_around(elf, edge, &target))
			s->around_jump += edge->count;
		break;
	case EXACT_CALL:
		s->call_to_jump += target.kind == MP_INSN_JUMP ? edge->count : 0;
		add_call(elf, edge, s);
		break;
	default: break;
	}
}

static void print(const struct exact_counts *counts, const struct savings *s)
{
	printf("instructions %" PRIu64 "\ntransfers %" PRIu64 "\n", counts->nr_insns,
	       counts->nr_transfers);
	printf("branch-to-jump %" PRIu64 "\njump-to-jump %" PRIu64 "\ncall-to-jump %" PRIu64 "\n",
	       s->branch_to_jump, s->jump_to_jump, s->call_to_jump);
	printf("around-jump %" PRIu64 "\njump-to-return %" PRIu64 "\ncall-return %" PRIu64
	       "\ncall-end %" PRIu64 "\n",
	       s->around_jump, s->jump_to_return, s->call_return, s->call_end);
}

static int analyse(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	struct savings savings = {0};

	(void)err;
	for (size_t i = 0; i < counts->nr_edges; i++)
		add_edge(elf, &counts->edges[i], &savings);
	print(counts, &savings);
	return 0;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "jump-targets", MP_ELF_SYMBOLS, analyse);
}
