// SPDX-License-Identifier: Apache-2.0
/*
 * verify_versions - checks that the versions of an audited function stay apart, and that control
 * leaves the two that are timed through a stub that ends the timing. That each piece is a faithful
 * copy is verify_pieces' task. Called by verify and verify_pieces.
 *
 * An exit, and a block with a timing point, is *guarded*: no branch, table, pointer or exception table may lead to its copy
 * (vf_is_copy() denies that it is one), so control comes from the stub before it alone.
 */
#include <errno.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_audit.h"
#include "editor/verify/stubs/verify_points.h"
#include "editor/verify/stubs/verify_versions.h"
#include "libprof/note/audit_table.h"

static int compare(const void *a, const void *b)
{
	const struct vf_version *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

bool vf_is_other_version(const struct vf *vf, uint64_t vaddr, uint64_t other)
{
	const struct vf_version *a = vf_version_at(vf, vaddr), *b = vf_version_at(vf, other);

	return a && b && a->function == b->function && a->version != b->version;
}

/* Does a copy of the code at @old exist in a version of @function? */
static bool is_inside(const struct vf *vf, uint64_t old, uint32_t function)
{
	const struct mp_map_piece *p = vf_piece_from(vf, old);
	const struct vf_version *version = p ? vf_version_at(vf, p->new_vaddr) : NULL;

	return version && version->function == function;
}

/* The last instruction of the original of @p. Return: its address; 0: cannot be read. */
static uint64_t last_insn(const struct vf *vf, const struct mp_map_piece *p, struct vf_insn *insn)
{
	uint64_t at = p->old_vaddr, end = at + p->old_size;

	for (;; at += insn->len) {
		const uint8_t *b = mp_elf_bytes(vf->o, at, end - at);

		if (!b || !vf_decode(b, end - at, at, insn))
			return 0;
		if (at + insn->len >= end)
			return at;
	}
}

/* Most instructions before a trap; compilers let a null pointer be read before. */
#define MAX_BEFORE_TRAP 8

/* ud0, ud1, ud2, hlt, int3. Clang's ud1 has a prefix, since its address says which check failed. */
static bool traps(const uint8_t *b)
{
	if (b[0] == 0xf4 || b[0] == 0xcc)
		return true;
	b += b[0] == 0x67;
	return b[0] == 0x0f && (b[1] == 0x0b || b[1] == 0xb9 || b[1] == 0xff);
}

/* Does the code end the process, unless a signal handler goes on? No branch and no call comes
 * before the trap. */
static bool is_trap(const struct vf *vf, uint64_t at)
{
	const uint8_t *b;
	struct vf_insn insn;

	for (unsigned int n = 0; n <= MAX_BEFORE_TRAP; n++, at += insn.len) {
		b = mp_elf_bytes(vf->o, at, 3);
		if (!b)
			return false;
		if (traps(b))
			return true;
		b = vf_is_text(vf, at) ? mp_elf_bytes(vf->o, at, 15) : NULL;
		if (!b || !vf_decode(b, 15, at, &insn) || insn.kind != VF_OTHER)
			return false;
	}
	return false;
}

/* How control leaves @p's original. */
enum way {
	STAYS,	 /* it does not, or by a trap, or in a call that does not return */
	LEAVES,	 /* always */
	UNCLEAR, /* only sometimes */
};

/* Does the stub at an exit precede the copy? Else its indirect jump must be a switch. */
static bool has_leave(const struct vf *vf, const struct mp_map_piece *p)
{
	return p > vf->map->pieces && p[-1].old_vaddr == p->old_vaddr && vf_is_leave(vf, p - 1);
}

static bool is_timed(const struct vf_version *version)
{
	return version->version < MP_AUDIT_NR_VERSIONS;
}

/* Does the indirect jump at the end of @p leave its function? Versions without stubs leave where
 * those with stubs do. */
static bool jumps_away(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct vf_version *version = vf_version_at(vf, p->new_vaddr);

	return version && is_timed(version) ? has_leave(vf, p)
					    : vf_bits_get(&vf->stubs.exits, p->old_vaddr);
}

bool vf_is_switch(const struct vf *vf, const struct mp_map_piece *p)
{
	struct vf_insn insn;

	/* A block with a timing point is guarded, too. */
	return last_insn(vf, p, &insn) && (insn.kind == VF_IJMP_REG || insn.kind == VF_IJMP_MEM) &&
	       !jumps_away(vf, p);
}

static enum way way_of(const struct vf *vf, const struct mp_map_piece *p, uint32_t function)
{
	uint64_t end = p->old_vaddr + p->old_size, at;
	struct vf_insn insn;

	at = last_insn(vf, p, &insn);
	if (!at)
		return UNCLEAR;
	switch (insn.kind) {
	case VF_STOP: return is_trap(vf, at) ? STAYS : LEAVES;
	case VF_IJMP_REG:
	case VF_IJMP_MEM: return jumps_away(vf, p) ? LEAVES : STAYS;
	case VF_JMP:
		return is_inside(vf, insn.target, function) ? STAYS
		       : is_trap(vf, insn.target)	    ? STAYS
							    : LEAVES;
	case VF_JCC:
		if (!is_inside(vf, insn.target, function) && !is_trap(vf, insn.target))
			return UNCLEAR;
		break;
	case VF_CALL:
	case VF_ICALL: return STAYS;
	default: break;
	}
	return is_inside(vf, end, function) || is_trap(vf, end) ? STAYS : UNCLEAR;
}

static int read_ranges(struct vf *vf)
{
	const struct mp_audit_table *table = vf->stubs.audited;

	vf->stubs.versions = calloc((size_t)table->nr_ranges + 1, sizeof(*vf->stubs.versions));
	if (!vf->stubs.versions)
		return -ENOMEM;
	for (uint32_t f = 0; f < table->nr_funcs; f++)
		for (uint32_t i = 0; i < table->funcs[f].nr_ranges; i++) {
			const struct mp_audited_range *range =
				&table->ranges[table->funcs[f].first_range + i];

			vf->stubs.versions[vf->stubs.nr_versions++] = (struct vf_version){
				range->vaddr, range->vaddr + range->size, f, range->version};
		}
	qsort(vf->stubs.versions, vf->stubs.nr_versions, sizeof(*vf->stubs.versions), compare);
	if (vf_bits_init(&vf->stubs.guarded, vf->now.text->vaddr,
			 vf->now.text->vaddr + vf->now.text->size) ||
	    vf_bits_init(&vf->stubs.exits, vf->old.text_start, vf->old.text_end))
		return -ENOMEM;
	for (uint32_t i = 0; i < vf->map->nr_pieces; i++)
		if (vf->map->pieces[i].old_size && has_leave(vf, &vf->map->pieces[i]))
			vf_bits_set(&vf->stubs.exits, vf->map->pieces[i].old_vaddr);
	return 0;
}

int vf_read_audit(struct vf *vf)
{
	int ret;

	if (!vf->stubs.audit_section)
		return 0;
	ret = read_ranges(vf);
	for (uint32_t i = 0; !ret && i < vf->map->nr_pieces; i++) {
		const struct mp_map_piece *p = &vf->map->pieces[i];
		const struct vf_version *version = vf_version_at(vf, p->new_vaddr);

		/* A branch to an empty piece leads to the next one: check_closed() looks there. */
		if (!version || !p->old_size || !p->new_size)
			continue;
		switch (way_of(vf, p, version->function)) {
		case STAYS:
			if (is_timed(version) &&
			    vf_point_at(vf, version->function, p->old_vaddr) != UINT32_MAX)
				vf_bits_set(&vf->stubs.guarded, p->new_vaddr);
			break;
		case LEAVES:
			if (is_timed(version))
				vf_bits_set(&vf->stubs.guarded, p->new_vaddr);
			break;
		default:
			ret = vf_go_on(vf, vf_refuse(vf, p->old_vaddr,
						     "an audited function has an exit that cannot "
						     "be timed"));
		}
	}
	return ret;
}

/* Is @p, a copy in a version, an exit? */
static bool is_exit(const struct vf *vf, const struct mp_map_piece *p,
		    const struct vf_version *version)
{
	if (!is_timed(version))
		return way_of(vf, p, version->function) == LEAVES;
	return vf_is_guarded(vf, p->new_vaddr) &&
	       vf_point_at(vf, version->function, p->old_vaddr) == UINT32_MAX;
}

/* Each stub belongs to a version, except those at entries. */
bool vf_enters_versions(const struct vf *vf, uint64_t now)
{
	uint32_t i = vf_first_piece(vf, now);
	const struct mp_map_piece *p = &vf->map->pieces[i];

	return vf->stubs.audit_section && i < vf->map->nr_pieces && p->new_vaddr == now &&
	       !p->old_size && p->new_size && !vf_version_at(vf, now);
}

/* The targets of the branches at the end of copy @p: up to two addresses. */
static uint32_t find_targets(const struct vf *vf, const struct mp_map_piece *p, uint64_t *to)
{
	uint64_t at = p->new_vaddr + vf->marks->common[p - vf->map->pieces];
	uint64_t end = p->new_vaddr + p->new_size;
	struct vf_insn insn, last;
	uint32_t nr = 0;

	while (at < end) {
		const uint8_t *b = mp_elf_bytes(vf->n, at, end - at);

		if (!b || !vf_decode(b, end - at, at, &insn))
			return nr;
		if (insn.kind == VF_JCC || insn.kind == VF_JMP)
			to[nr++] = insn.target;
		if (insn.kind == VF_JMP || nr == 2)
			return nr;
		at += insn.len;
	}
	if (last_insn(vf, p, &last) && last.kind != VF_STOP && last.kind != VF_IJMP_REG &&
	    last.kind != VF_IJMP_MEM)
		to[nr++] = vf_falls_to(vf, p);
	return nr;
}

/* Does control that leaves a version for @now come to a trap: in old code, or in a copy of it? */
static bool leads_to_trap(const struct vf *vf, uint64_t now)
{
	uint32_t i = vf_whole_piece(vf, now);

	/* A stub goes on to its block. */
	return is_trap(vf, now) ||
	       (i < vf->map->nr_pieces && is_trap(vf, vf->map->pieces[i].old_vaddr));
}

/*
 * Control stays in the version, but for exits, traps outside of it, and behind a call that does not
 * return.
 */
static int check_closed(const struct vf *vf, const struct mp_map_piece *p,
			const struct vf_version *version)
{
	uint64_t to[2];
	uint32_t nr = is_exit(vf, p, version) ? 0 : find_targets(vf, p, to);
	struct vf_insn last;

	for (uint32_t i = 0; i < nr; i++) {
		const struct vf_version *next = vf_version_at(vf, to[i]);

		if (next && next->function == version->function &&
		    next->version == version->version)
			continue;
		if (!next && leads_to_trap(vf, to[i]))
			continue;
		if ((!next || next->function != version->function) && last_insn(vf, p, &last) &&
		    (last.kind == VF_CALL || last.kind == VF_ICALL))
			continue;
		return vf_refuse(vf, p->new_vaddr,
				 next && next->function == version->function
					 ? "one version of an audited function leads to the other"
					 : "control leaves an audited function past its stubs");
	}
	return 0;
}

/* The stub at the exit, or at the timing point, stands before it and runs on into it. */
static int check_guard(const struct vf *vf, const struct mp_map_piece *p,
		       const struct vf_version *version)
{
	const struct mp_map_piece *stub = p - 1;
	bool exit = is_exit(vf, p, version);

	if (exit ? !has_leave(vf, p) || vf_falls_to(vf, stub) != p->new_vaddr
		 : p == vf->map->pieces || stub->old_vaddr != p->old_vaddr ||
			    !vf_is_point(vf, stub) || vf_falls_to(vf, stub) != p->new_vaddr)
		return vf_refuse(vf, p->new_vaddr,
				 exit ? "an exit of an audited function has no stub that ends the "
					"timing"
				      : "a timing point of an audited function has no stub");
	return 0;
}

int vf_check_versions(const struct vf *vf)
{
	uint64_t entered[MP_AUDIT_MAX_FUNCTIONS / 64] = {0};
	int ret = 0;

	if (!vf->stubs.audit_section)
		return 0;
	for (uint32_t i = 0; !ret && i < vf->map->nr_pieces; i++) {
		const struct mp_map_piece *p = &vf->map->pieces[i];
		const struct vf_version *version = vf_version_at(vf, p->new_vaddr);

		if (!version) {
			/* A stub that belongs to no version is that at an entry. */
			for (uint32_t f = 0; !p->old_size && f < vf->stubs.audited->nr_funcs; f++)
				if (vf->stubs.audited->funcs[f].vaddr == p->old_vaddr)
					entered[f / 64] |= 1ull << f % 64;
			continue;
		}
		if (!p->old_size || !p->new_size)
			continue;
		ret = check_closed(vf, p, version);
		if (!ret && vf_is_guarded(vf, p->new_vaddr))
			ret = check_guard(vf, p, version);
		ret = vf_go_on(vf, ret);
	}
	for (uint32_t f = 0; !ret && f < vf->stubs.audited->nr_funcs; f++)
		if (!(entered[f / 64] >> f % 64 & 1))
			ret = vf_refuse(vf, vf->stubs.audited->funcs[f].vaddr,
					"no stub enters this audited function");
	return ret;
}

const struct mp_map_piece *vf_version_walk(const struct vf *vf, uint32_t function,
					   struct vf_version_walk *walk)
{
	const struct mp_audited_func *func = &vf->stubs.audited->funcs[function];
	const struct mp_map_piece *pieces = vf->map->pieces;

	for (; walk->range < func->nr_ranges; walk->range++) {
		const struct mp_audited_range *range =
			&vf->stubs.audited->ranges[func->first_range + walk->range];
		uint32_t first = vf_first_piece(vf, range->vaddr);

		if (walk->next < first)
			walk->next = first;
		if (walk->next < vf->map->nr_pieces &&
		    pieces[walk->next].new_vaddr < range->vaddr + range->size) {
			walk->version = range->version;
			return &pieces[walk->next++];
		}
	}
	return NULL;
}
