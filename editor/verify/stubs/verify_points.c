// SPDX-License-Identifier: Apache-2.0
/*
 * verify_points - checks the stubs at timing points in loops of audited functions. A stub counts in
 * memory of its own version, and leads to the same block in either version, or in its own version
 * without stubs, whatever the runtime does. The runtime's call spares the red zone. Called by
 * verify_audit, verify_versions and verify_unwind.
 *
 * A block with a timing point is guarded, as an exit is: control comes to it from the stub before
 * it, or from the stub of the same point in the other version.
 */
#include <stddef.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_points.h"
#include "libprof/note/audit_table.h"

/* decl 7; jns 2; lea 5; call 5; test 5; cmpb 8; jne 6; cmpb 8; jne 6 */
enum {
	LEA = 9,
	CALL = 14,
	TEST = 19,
	CMPB = 24,
	JCC = 32,
	DECIDED = 38,
	JNE = 46,
	SIZE = 52,
};

#define RSP 7

uint32_t vf_point_at(const struct vf *vf, uint32_t function, uint64_t old_vaddr)
{
	const struct mp_audited_func *f = &vf->stubs.audited->funcs[function];

	for (uint32_t i = 0; i < f->nr_points; i++)
		if (vf->stubs.audited->points[f->first_point + i].vaddr == old_vaddr)
			return i;
	return UINT32_MAX;
}

/* Does the block of @p in version @version start at @now? */
static bool is_block_of(const struct vf *vf, const struct mp_map_piece *p, uint64_t now,
			uint32_t function, uint8_t version)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	const struct vf_version *to = vf_version_at(vf, now);
	uint32_t i;

	if (!to || to->function != function || to->version != version)
		return false;
	i = vf_whole_piece(vf, now);
	return i < vf->map->nr_pieces && pieces[i].old_vaddr == p->old_vaddr && pieces[i].old_size;
}

/* The number that the stub's instruction `test` must hold; UINT32_MAX: there is no such point. */
static uint32_t number_of(const struct vf *vf, const struct vf_version *version, uint32_t point)
{
	const struct mp_audited_func *f = &vf->stubs.audited->funcs[version->function];
	uint32_t rounds;

	if (point >= f->nr_points || point >= ME_AUDIT_MAX_POINTS)
		return UINT32_MAX;
	rounds = vf->stubs.audited->points[f->first_point + point].rounds;
	if (!rounds || rounds > ME_AUDIT_MAX_ROUNDS)
		return UINT32_MAX;
	return version->function | point << ME_AUDIT_NUMBER_POINT |
	       (uint32_t)version->version << ME_AUDIT_NUMBER_VERSION |
	       rounds << ME_AUDIT_NUMBER_ROUNDS;
}

bool vf_is_compare(const uint8_t *b, uint64_t at, uint64_t byte)
{
	static const uint8_t cmpb[] = {0x65, 0x80, 0x3d};

	return !memcmp(b, cmpb, sizeof(cmpb)) && vf_displacement_target(b + 3, at + 8) == byte &&
	       !b[7];
}

static bool has_code(const struct vf *vf, const struct vf_version *version, uint32_t point,
		     const uint8_t *b, uint64_t at)
{
	static const uint8_t decl[] = {0x65, 0xff, 0x0d}, jns[] = {0x79, SIZE - LEA};
	static const uint8_t lea[] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};
	static const uint8_t jne[] = {0x0f, 0x85};
	const uint8_t jcc[] = {0x0f, version->version == MP_AUDIT_A ? 0x85 : 0x84};
	uint64_t slot = vf->stubs.counters->vaddr +
			(uint64_t)version->function * sizeof(struct me_audit_slot);
	uint64_t left = slot + offsetof(struct me_audit_slot, points) +
			point * sizeof(struct me_audit_point) +
			offsetof(struct me_audit_point, left) + version->version * sizeof(int32_t);
	uint32_t number;

	memcpy(&number, b + TEST + 1, sizeof(number));
	return !memcmp(b, decl, sizeof(decl)) && vf_displacement_target(b + 3, at + 7) == left &&
	       !memcmp(b + 7, jns, sizeof(jns)) && !memcmp(b + LEA, lea, sizeof(lea)) &&
	       b[CALL] == 0xe8 &&
	       vf_displacement_target(b + CALL + 1, at + TEST) ==
		       vf->stubs.runtime->vaddr + ME_RUNTIME_POINT &&
	       b[TEST] == 0xa9 && number == number_of(vf, version, point) &&
	       vf_is_compare(b + CMPB, at + CMPB, slot + offsetof(struct me_audit_slot, version)) &&
	       !memcmp(b + JCC, jcc, sizeof(jcc)) &&
	       vf_is_compare(b + DECIDED, at + DECIDED,
			     slot + offsetof(struct me_audit_slot, decided)) &&
	       !memcmp(b + JNE, jne, sizeof(jne));
}

bool vf_is_point(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct vf_version *version = vf_version_at(vf, p->new_vaddr);
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	uint64_t at = p->new_vaddr;
	uint32_t point;

	if (!b || !version || version->version >= MP_AUDIT_NR_VERSIONS || p->old_size ||
	    p->new_size != SIZE)
		return false;
	point = vf_point_at(vf, version->function, p->old_vaddr);
	return point != UINT32_MAX && has_code(vf, version, point, b, at) &&
	       is_block_of(vf, p, vf_displacement_target(b + JCC + 2, at + DECIDED),
			   version->function, !version->version) &&
	       is_block_of(vf, p, vf_displacement_target(b + JNE + 2, at + SIZE), version->function,
			   version->version == MP_AUDIT_A ? MP_AUDIT_UNTIMED_A
							  : MP_AUDIT_UNTIMED_B) &&
	       is_block_of(vf, p, vf_falls_to(vf, p), version->function, version->version);
}

uint64_t vf_point_call(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf->stubs.audit_section && vf_is_point(vf, p) ? p->new_vaddr + CALL : 0;
}

uint64_t vf_point_call_end(uint64_t call)
{
	return call + TEST - CALL;
}

static bool depends_on_registers(const struct vf_rule *rule)
{
	return rule->kind == VF_RULE_EXPR || rule->kind == VF_RULE_VAL_EXPR ||
	       rule->kind == VF_RULE_REGISTER;
}

bool vf_row_is_lower(const struct vf_row *old, const struct vf_row *now)
{
	struct vf_row want = *old;

	if (old->cfa.kind != VF_RULE_OFFSET)
		return false;
	for (int i = 0; i < VF_NR_REGS; i++)
		if (depends_on_registers(&old->reg[i]))
			return false;
	if (want.cfa_reg == RSP)
		want.cfa.off += ME_RED_ZONE;
	return vf_row_equal(&want, now);
}
