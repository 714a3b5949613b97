// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_noreturn - decides which calls do not return.
 * A function of this file is judged by its code alone (it has no way out). A function of
 * another module is judged by a short list of names that the C and C++ standards, POSIX or the ABI
 * reserve; a library may define any other name as it likes. In doubt a call returns: a superfluous edge is harmless. Called by cfg.
 */
#include <errno.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"

/* Chains of tail calls to functions that never return are short; longer ones count as returning. */
#define MAX_ROUNDS 64

static const char *const names[] = {
	"_Exit",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"__assert",
	"__assert_fail",
	"__assert_perror_fail",
	"__chk_fail",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_call_unexpected",
	"__cxa_deleted_virtual",
	"__cxa_pure_virtual",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__libc_start_main",
	"__longjmp_chk",
	"__stack_chk_fail",
	"_exit",
	"_longjmp",
	"abort",
	"exit",
	"longjmp",
	"pthread_exit",
	"quick_exit",
	"siglongjmp",
	"thrd_exit",
};

bool mp_cfg_is_noreturn_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* std::__throw_out_of_range(char const*) and its family. */
	if (strncmp(name, "_ZSt", 4))
		return false;
	name += 4;
	return !strncmp(name + strspn(name, "0123456789"), "__throw_", 8);
}

/* True if the loader fills @cell with one of the functions above. */
static bool is_noreturn_cell(const struct mp_cfg_build *b, uint64_t cell)
{
	const struct mp_elf *elf = b->elf;
	uint32_t lo = mp_search(i, 0, elf->nr_dyn_relocs, elf->dyn_relocs[i].vaddr < cell);

	for (; lo < elf->nr_dyn_relocs && elf->dyn_relocs[lo].vaddr == cell; lo++) {
		const struct mp_reloc *rel = &elf->dyn_relocs[lo];

		if (rel->type != R_X86_64_JUMP_SLOT && rel->type != R_X86_64_GLOB_DAT)
			continue;
		if (rel->sym < elf->nr_symbols - b->first_dynsym)
			return mp_cfg_is_noreturn_name(
				elf->symbols[b->first_dynsym + rel->sym].name);
	}
	return false;
}

/* A stub of the procedure linkage table: [endbr64;] [bnd] jmp *cell(%rip). */
static bool is_noreturn_stub(const struct mp_cfg_build *b, uint32_t at)
{
	uint64_t vaddr = mp_space_vaddr(b->index, at);

	for (int i = 0; i < 2; i++) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 15);
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, 15, vaddr, &insn))
			return false;
		if (insn.kind == MP_INSN_IJUMP)
			return insn.rip_relative && is_noreturn_cell(b, insn.target);
		if (!insn.endbr64)
			return false;
		at += insn.len;
		vaddr += insn.len;
	}
	return false;
}

static bool falls(uint8_t kind)
{
	return kind == MP_INSN_COND || kind == MP_INSN_LOOP;
}

/*
 * True if execution may run over the end of @part. A call at the end does not return,
 * because no code of the function follows it.
 */
static bool falls_out(struct mp_cfg_build *b, const struct mp_part *part)
{
	struct mp_flow *last;
	uint32_t at;

	if (!part->nr_flows)
		return true;
	last = &b->flows[part->first_flow + part->nr_flows - 1];
	/* Skip traps that pad the end. */
	while (last->kind == MP_INSN_TRAP && last > &b->flows[part->first_flow] &&
	       last[-1].at + last[-1].len == last->at)
		last--;
	at = last->at + last->len;
	if (last->kind == MP_INSN_CALL || last->kind == MP_INSN_ICALL) {
		/* Padding may follow inside the range. */
		while (at < part->end) {
			const uint8_t *bytes = mp_space_bytes(b->index, at, 1);
			struct mp_insn insn;

			if (mp_bit(b->index->targets, at) ||
			    mp_insn_decode(bytes, part->end - at, mp_space_vaddr(b->index, at),
					   &insn) ||
			    !(insn.nop || insn.kind == MP_INSN_TRAP))
				return true;
			at += insn.len;
		}
		last->noreturn = true;
		return false;
	}
	return at != part->end || falls(last->kind);
}

struct verdict {
	struct mp_cfg_build *b;
	uint8_t *returns; /* per function */
	mp_bits stub_known, stub;
};

static bool target_noreturn(struct verdict *v, uint32_t target, uint32_t *func)
{
	uint32_t part;

	*func = MP_NONE;
	if (target == MP_NONE || !mp_space_is_text(v->b->index, target))
		return false;
	part = mp_part_at(v->b->index, target);
	/*
	 * Judge functions by their own code. To the FDEs a whole PLT is one function; judge
	 * its stubs one by one.
	 */
	if (part != MP_NONE) {
		*func = v->b->index->parts[part].func;
		if (v->b->cfg->funcs[*func].problem != MP_PROBLEM_SPECIAL)
			return !v->returns[*func];
	}
	if (!mp_bit(v->stub_known, target)) {
		mp_bit_set(v->stub_known, target);
		if (is_noreturn_stub(v->b, target))
			mp_bit_set(v->stub, target);
	}
	return mp_bit(v->stub, target);
}

/* True if a part has a way out that does not depend on other functions. */
static bool part_returns(struct mp_cfg_build *b, const struct mp_part *part)
{
	bool returns = falls_out(b, part);

	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &b->flows[part->first_flow + i];

		if (f->kind == MP_INSN_RET || f->kind == MP_FLOW_BAD)
			returns = true;
		if (f->kind == MP_INSN_IJUMP && !mp_bit(b->tabled, f->at))
			returns = true;
	}
	return returns;
}

/* True if a direct jump of @part leads to a function that returns. */
static bool part_leaves(struct verdict *v, const struct mp_part *part)
{
	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &v->b->flows[part->first_flow + i];
		uint32_t func;

		if (f->kind != MP_INSN_JUMP && f->kind != MP_INSN_COND && f->kind != MP_INSN_LOOP)
			continue;
		if (f->target >= part->at && f->target < part->end)
			continue;
		if (!target_noreturn(v, f->target, &func) && func != part->func)
			return true;
	}
	return false;
}

static void mark_calls(struct verdict *v)
{
	struct mp_cfg_build *b = v->b;

	for (uint32_t i = 0; i < b->nr_flows; i++) {
		struct mp_flow *f = &b->flows[i];
		uint32_t func;

		if (f->kind == MP_INSN_CALL && target_noreturn(v, f->target, &func)) {
			f->noreturn = true;
		} else if (f->kind == MP_INSN_ICALL && f->slot) {
			const uint8_t *bytes = mp_space_bytes(b->index, f->at, f->len);
			struct mp_insn insn;

			if (bytes &&
			    !mp_insn_decode(bytes, f->len, mp_space_vaddr(b->index, f->at),
					    &insn) &&
			    is_noreturn_cell(b, insn.target))
				f->noreturn = true;
		}
	}
}

int mp_cfg_find_noreturn(struct mp_cfg_build *b)
{
	struct mp_cfg_index *index = b->index;
	struct verdict v = {.b = b};
	bool changed = true;
	int ret = -ENOMEM;

	v.returns = calloc((size_t)b->cfg->nr_funcs + 1, 1);
	v.stub_known = mp_space_bitmap(index);
	v.stub = mp_space_bitmap(index);
	if (!v.returns || !v.stub_known || !v.stub)
		goto out;
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		if (part_returns(b, &index->parts[p]))
			v.returns[index->parts[p].func] = 1;
		mp_space_note_read(b, index->parts[p].end - index->parts[p].at);
	}
	/* A function that jumps to one that returns, returns as well. All others never return. */
	for (unsigned int round = 0; changed; round++) {
		changed = false;
		if (round == MAX_ROUNDS) {
			memset(v.returns, 1, b->cfg->nr_funcs);
			break;
		}
		for (uint32_t p = 0; p < index->nr_parts; p++) {
			const struct mp_part *part = &index->parts[p];

			if (v.returns[part->func] || !part_leaves(&v, part))
				continue;
			v.returns[part->func] = 1;
			changed = true;
		}
	}
	for (uint32_t f = 0; f < b->cfg->nr_funcs; f++)
		if (!v.returns[f])
			b->cfg->funcs[f].flags |= MP_FUNC_NORETURN;
	mark_calls(&v);
	ret = 0;
out:
	free(v.returns);
	free(v.stub_known);
	free(v.stub);
	return ret;
}
