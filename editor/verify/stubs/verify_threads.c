// SPDX-License-Identifier: Apache-2.0
/*
 * verify_threads - checks an output whose threads have their own counters: the original must
 * not use %gs, whose base selects them, and stubs compare the stack pointer at functions'
 * entries. Called by verify and verify_count.
 */
#include <stddef.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_threads.h"

/* Largest distance, in bytes of code, between the two numbers of one system call. */
#define VF_CALL_BYTES 96

static bool is_prefix(uint8_t b)
{
	static const uint8_t prefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26,
					   0x2e, 0x36, 0x3e, 0x64, 0x65};

	return memchr(prefixes, b, sizeof(prefixes));
}

/* Does the instruction at @b use %gs or its base? */
static bool uses_gs(const uint8_t *b, const struct vf_insn *insn)
{
	unsigned int i = 0, reg, mod;
	bool rep = false;

	for (; i < insn->len && is_prefix(b[i]); i++) {
		if (b[i] == 0x65)
			return true;
		rep |= b[i] == 0xf3;
	}
	if (i < insn->len && b[i] >= 0x40 && b[i] <= 0x4f)
		i++;
	if (i + 1 >= insn->len)
		return false;
	if (b[i] == 0x8e)
		return (b[i + 1] & 0x38) == 0x28;
	if (b[i] != 0x0f)
		return false;
	switch (b[i + 1]) {
	case 0xa9:						 /* pop %gs */
	case 0xb5: return true;					 /* lgs */
	case 0x01: return i + 2 < insn->len && b[i + 2] == 0xf8; /* swapgs */
	case 0xae:
		reg = i + 2 < insn->len ? b[i + 2] >> 3 & 7u : 0;
		mod = i + 2 < insn->len ? b[i + 2] >> 6 : 0;
		return rep && mod == 3 && (reg == 1 || reg == 3); /* rdgsbase, wrgsbase */
	default: return false;
	}
}

/* Has code near @at the numbers 158 (arch_prctl) and 0x1001 (ARCH_SET_GS)? *@call and *@code:
 * where they were seen last. */
static bool sets_base(const struct vf_insn *insn, uint64_t at, uint64_t *call, uint64_t *code)
{
	if (insn->imm_size != 4 || (insn->imm != 158 && insn->imm != 0x1001))
		return false;
	*(insn->imm == 158 ? call : code) = at;
	return *call && *code && (*call > *code ? *call - *code : *code - *call) < VF_CALL_BYTES;
}

static int check_section(const struct vf *vf, const struct mp_section *sec)
{
	const uint8_t *bytes = mp_elf_bytes(vf->o, sec->vaddr, sec->size);
	uint64_t end = sec->vaddr + sec->size, call = 0, code = 0;

	if (!bytes)
		return vf_refuse(vf, sec->vaddr, "code that cannot be read may use %%gs");
	for (uint64_t at = vf_bits_next(&vf->old.grid, sec->vaddr, end); at < end;
	     at = vf_bits_next(&vf->old.grid, at + 1, end)) {
		const uint8_t *b = bytes + (at - sec->vaddr);
		struct vf_insn insn;

		if (!vf_decode(b, end - at, at, &insn))
			continue;
		if (uses_gs(b, &insn) || sets_base(&insn, at, &call, &code))
			return vf_refuse(vf, at, "the original uses %%gs, which the counters need");
	}
	return 0;
}

int vf_check_gs(const struct vf *vf)
{
	int ret = 0;

	if (!vf->stubs.thread_state)
		return 0;
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++)
		if (vf->o->symbols[i].name && !strcmp(vf->o->symbols[i].name, "arch_prctl"))
			return vf_refuse(vf, vf->o->symbols[i].vaddr,
					 "the original may change the base of %%gs");
	for (uint32_t i = 0; i < vf->o->nr_sections && !ret; i++) {
		const struct mp_section *sec = &vf->o->sections[i];

		if (sec->flags & SHF_ALLOC && sec->flags & SHF_EXECINSTR && sec->size)
			ret = check_section(vf, sec);
	}
	return ret;
}

/* Bytes of the check, and of it up to the call. */
enum {
	CHECK_CALL = 25,
	CHECK = 30
};

/*
 * cmp %rsp, %gs:high(%rip); jb 1f; cmp %rsp, %gs:low(%rip); jbe 2f; 1: lea -128(%rsp), %rsp; call the runtime; 2:
 *
 * This code changes only flags. The runtime's entry changes no register, and raises the stack pointer again. Code that
 * jumps here may have left values below the stack pointer.
 */
static bool is_check(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		     uint64_t at)
{
	static const uint8_t cmp[] = {0x65, 0x48, 0x39, 0x25};

	return vf->stubs.thread_state && at + CHECK <= p->new_vaddr + p->new_size &&
	       !memcmp(b, cmp, sizeof(cmp));
}

int vf_check_thread(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		    uint64_t at)
{
	static const uint8_t cmp[] = {0x65, 0x48, 0x39, 0x25};
	static const uint8_t jb[] = {0x72, 10}, jbe[] = {0x76, 10};
	static const uint8_t lea[] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};
	int ret;

	if (!is_check(vf, p, b, at))
		return 0;
	if (memcmp(b + 8, jb, sizeof(jb)) || memcmp(b + 10, cmp, sizeof(cmp)) ||
	    memcmp(b + 18, jbe, sizeof(jbe)) || memcmp(b + 20, lea, sizeof(lea)) ||
	    b[CHECK_CALL] != 0xe8 ||
	    vf_displacement_target(b + 4, at + 8) !=
		    vf->stubs.thread_state + offsetof(struct me_stack_range, high) ||
	    vf_displacement_target(b + 14, at + 18) !=
		    vf->stubs.thread_state + offsetof(struct me_stack_range, low) ||
	    vf_displacement_target(b + CHECK_CALL + 1, at + CHECK) !=
		    vf->stubs.runtime->vaddr + ME_RUNTIME_THREAD)
		return vf_refuse(vf, at, "a stub's check of the thread is malformed");
	ret = vf_check_flags(vf, p, true);
	return ret ? ret : CHECK;
}

uint64_t vf_thread_call(const struct vf *vf, const struct mp_map_piece *p)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	uint64_t at = p->new_vaddr;

	if (!b || p->old_size || p->new_size < sizeof(endbr64))
		return 0;
	if (!memcmp(b, endbr64, sizeof(endbr64))) {
		b += sizeof(endbr64);
		at += sizeof(endbr64);
	}
	return is_check(vf, p, b, at) ? at + CHECK_CALL : 0;
}
