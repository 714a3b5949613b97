// SPDX-License-Identifier: Apache-2.0
/*
 * verify_audit - checks the stubs of an output in which some functions have two versions: the
 * stub at an entry leads to nothing but the two versions, and the stub at an exit runs on into
 * the exit. verify_versions checks the versions. Called by verify, verify_count and
 * verify_versions. verify_points checks stubs in loops.
 */
#include <stddef.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_audit.h"
#include "editor/verify/stubs/verify_calls.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_points.h"
#include "editor/verify/stubs/verify_threads.h"
#include "libprof/note/audit_table.h"

#define LEA_SIZE   5
#define JMP_SIZE   5
#define ENTER_SIZE 53
#define ENTER_DECL 15
#define ENTER_CALL 29
#define ENTER_CMPB 39
#define LEAVE_SIZE 25
#define LEAVE_CALL 15
#define CALL_SIZE  10

/* Runs before the headers are checked, so it looks at section names alone. */
void vf_find_audit(struct vf *vf)
{
	if (vf->stubs.counters && !mp_elf_section(vf->o, MP_AUDIT_TABLE_SECTION))
		vf->stubs.audit_section = mp_elf_section(vf->n, MP_AUDIT_TABLE_SECTION);
	if (vf->stubs.audit_section && !mp_elf_section(vf->o, ".morph.tables"))
		vf->stubs.version_tables = mp_elf_section(vf->n, ".morph.tables");
}

bool vf_is_audit_section(const struct vf *vf, const struct mp_section *sec)
{
	return vf->stubs.audit_section && sec == vf->stubs.audit_section &&
	       sec->type == SHT_PROGBITS && !sec->flags && !sec->vaddr && sec->align == 1 &&
	       !sec->link && !sec->info && !sec->entsize;
}

static uint64_t slot_of(const struct vf *vf, uint32_t function)
{
	return vf->stubs.counters->vaddr + (uint64_t)function * sizeof(struct me_audit_slot);
}

/* lea -ME_RED_ZONE(%rsp), %rsp */
static bool is_lower(const uint8_t *b)
{
	static const uint8_t lea[LEA_SIZE] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};

	return !memcmp(b, lea, sizeof(lea));
}

/* call @entry of the runtime; test $@number, %eax */
static bool is_call(const struct vf *vf, const uint8_t *b, uint64_t at, uint64_t entry,
		    uint32_t *number)
{
	memcpy(number, b + 6, sizeof(*number));
	return b[0] == 0xe8 &&
	       vf_displacement_target(b + 1, at + 5) == vf->stubs.runtime->vaddr + entry &&
	       b[5] == 0xa9;
}

/* The number at an entry says which function it is, and whether the function has timing points. */
static bool is_entry_number(const struct vf *vf, uint32_t number, uint32_t *function)
{
	*function = number & ~ME_AUDIT_NUMBER_LOOPS;
	return *function < vf->stubs.audited->nr_funcs &&
	       !(number & ME_AUDIT_NUMBER_LOOPS) == !vf->stubs.audited->funcs[*function].nr_points;
}

/* Does a copy of @p's block, or the stub before that copy, start at @now in this version? */
static bool enters_version(const struct vf *vf, const struct mp_map_piece *p, uint64_t now,
			   uint32_t function, uint8_t version)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	const struct vf_version *to = vf_version_at(vf, now);
	uint32_t i;

	if (!to || to->function != function || to->version != version)
		return false;
	i = vf_whole_piece(vf, now);
	return i < vf->map->nr_pieces && pieces[i].old_vaddr == p->old_vaddr &&
	       !vf_is_guarded(vf, now);
}

/*
 * jmp 1f; jmp version A without stubs; jmp version B without stubs; 1: The runtime makes the first
 * jump lead where one of the others does. The first jump's address is such that one store of four
 * bytes is atomic.
 */
static bool are_jumps(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		      uint64_t at, uint32_t function)
{
	static const uint8_t codes[] = {MP_AUDIT_UNTIMED_A, MP_AUDIT_UNTIMED_B};
	uint64_t end = at + JMP_SIZE;

	if (at % 4 || b[0] != 0xe9 || vf_displacement_target(b + 1, end) != at + ENTER_DECL)
		return false;
	for (size_t i = 0; i < sizeof(codes); i++) {
		b += JMP_SIZE;
		end += JMP_SIZE;
		if (b[0] != 0xe9 ||
		    !enters_version(vf, p, vf_displacement_target(b + 1, end), function, codes[i]))
			return false;
	}
	return true;
}

/*
 * These jumps; decl %gs:countdown(%rip); jns 1f; lea -128(%rsp), %rsp; call the runtime; test $function, %eax;
 * 1: cmpb $0, %gs:version(%rip); jne version B; then version A follows, or a jump to it.
 */
static int check_enter(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at)
{
	static const uint8_t decl[] = {0x65, 0xff, 0x0d}, jns[] = {0x79, LEA_SIZE + CALL_SIZE};
	uint64_t end = p->new_vaddr + p->new_size, next = at + ENTER_SIZE, slot;
	struct vf_insn jump;
	uint32_t function, number;
	int ret;

	if (next > end || memcmp(b + ENTER_DECL + 7, jns, sizeof(jns)) ||
	    !is_lower(b + ENTER_DECL + 9) ||
	    !is_call(vf, b + ENTER_CALL, at + ENTER_CALL, ME_RUNTIME_ENTER, &number) ||
	    !is_entry_number(vf, number, &function))
		return vf_refuse(vf, at, "the stub at an audited function's entry is malformed");
	slot = slot_of(vf, function);
	if (!are_jumps(vf, p, b, at, function) || memcmp(b + ENTER_DECL, decl, sizeof(decl)) ||
	    vf_displacement_target(b + ENTER_DECL + 3, at + ENTER_DECL + 7) !=
		    slot + offsetof(struct me_audit_slot, countdown) ||
	    !vf_is_compare(b + ENTER_CMPB, at + ENTER_CMPB,
			   slot + offsetof(struct me_audit_slot, version)) ||
	    b[ENTER_SIZE - 6] != 0x0f || b[ENTER_SIZE - 5] != 0x85)
		return vf_refuse(vf, at, "the stub at an audited function's entry is malformed");
	if (vf->stubs.audited->funcs[function].vaddr != p->old_vaddr ||
	    vf_version_at(vf, p->new_vaddr))
		return vf_refuse(vf, at, "a stub enters another function than that at %#llx",
				 (unsigned long long)p->old_vaddr);
	if (!enters_version(vf, p, vf_displacement_target(b + ENTER_SIZE - 4, next), function,
			    MP_AUDIT_B))
		return vf_refuse(vf, at, "a stub does not lead to version B of %#llx",
				 (unsigned long long)p->old_vaddr);
	if (next == end)
		next = vf_falls_to(vf, p);
	else if (vf_decode(b + ENTER_SIZE, end - next, next, &jump) && jump.kind == VF_JMP)
		next = jump.target;
	if (!enters_version(vf, p, next, function, MP_AUDIT_A))
		return vf_refuse(vf, at, "a stub does not lead to version A of %#llx",
				 (unsigned long long)p->old_vaddr);
	ret = vf_check_flags(vf, p, true);
	return ret ? ret : ENTER_SIZE;
}

bool vf_is_leave(const struct vf *vf, const struct mp_map_piece *p)
{
	static const uint8_t je[] = {0x74, LEA_SIZE + CALL_SIZE};
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	const struct vf_version *version = vf_version_at(vf, p->new_vaddr);
	uint32_t function;

	return b && version && version->version < MP_AUDIT_NR_VERSIONS && !p->old_size &&
	       p->new_size == LEAVE_SIZE &&
	       vf_is_compare(b, p->new_vaddr,
			     slot_of(vf, version->function) +
				     offsetof(struct me_audit_slot, timing)) &&
	       !memcmp(b + 8, je, sizeof(je)) && is_lower(b + 10) &&
	       is_call(vf, b + LEAVE_CALL, p->new_vaddr + LEAVE_CALL, ME_RUNTIME_LEAVE,
		       &function) &&
	       function == version->function;
}

uint64_t vf_lower_call(const struct vf *vf, const struct mp_map_piece *p)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	uint64_t call;

	if (vf->stubs.call_section)
		return vf_sample_call(vf, p);
	if (vf->stubs.thread_state && !vf->stubs.audit_section)
		return vf_thread_call(vf, p);
	if (!vf->stubs.audit_section || !b || p->new_size < LEAVE_SIZE)
		return 0;
	if (vf_is_leave(vf, p))
		return p->new_vaddr + LEAVE_CALL;
	call = vf_point_call(vf, p);
	if (call)
		return call;
	call = p->new_vaddr + ENTER_CALL;
	return memcmp(b, endbr64, sizeof(endbr64)) ? call : call + sizeof(endbr64);
}

int vf_check_audit_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
			uint64_t at, uint64_t *next)
{
	int len = LEAVE_SIZE;

	if (vf_is_leave(vf, p) || vf_is_point(vf, p)) {
		int ret = vf_check_flags(vf, p, true);

		if (ret)
			return ret;
		len = (int)p->new_size;
	} else {
		len = check_enter(vf, p, b, at);
		if (len < 0)
			return len;
	}
	*next = at + (uint64_t)len;
	return 0;
}
