// SPDX-License-Identifier: Apache-2.0
/*
 * verify_calls - checks the stubs of an output that samples calls by a clock of calls: the stub at an
 * entry counts down and leads to nothing but the stub that calls the runtime for the same function.
 * Called by verify_count, verify_audit and verify_rest.
 */
#include <stddef.h>
#include <string.h>

#include "editor/base/runtime.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_calls.h"
#include "editor/verify/stubs/verify_flags.h"
#include "libprof/note/call_table.h"

#define DECL_SIZE   6
#define CLOCK_SIZE  12
#define LEA_SIZE    5
#define SAMPLE_SIZE 10

/* Runs before the headers are checked, so it looks at section names alone. */
void vf_find_calls(struct vf *vf)
{
	if (vf->stubs.counters && !vf->stubs.audit_section &&
	    !mp_elf_section(vf->o, MP_CALL_TABLE_SECTION))
		vf->stubs.call_section = mp_elf_section(vf->n, MP_CALL_TABLE_SECTION);
}

bool vf_is_call_section(const struct vf *vf, const struct mp_section *sec)
{
	return vf->stubs.call_section && sec == vf->stubs.call_section &&
	       sec->type == SHT_PROGBITS && !sec->flags && !sec->vaddr && sec->align == 1 &&
	       !sec->link && !sec->info && !sec->entsize;
}

int vf_read_calls(const struct vf *vf)
{
	const struct mp_section *sec = vf->stubs.call_section;
	struct mp_call_table table;

	if (sec->size == sizeof(table))
		memcpy(&table, vf->n->data + sec->off, sizeof(table));
	return sec->size == sizeof(table) && table.version == MP_CALL_TABLE_VERSION
		       ? 0
		       : vf_refuse(vf, vf->stubs.counters->vaddr,
				   "the section that says which calls are sampled is unreadable");
}

/* lea -ME_RED_ZONE(%rsp), %rsp; call the runtime's entry for calls */
static bool is_sample(const struct vf *vf, const uint8_t *b, size_t avail, uint64_t at)
{
	static const uint8_t lea[LEA_SIZE] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-ME_RED_ZONE};

	return avail >= SAMPLE_SIZE && !memcmp(b, lea, sizeof(lea)) && b[LEA_SIZE] == 0xe8 &&
	       vf_displacement_target(b + LEA_SIZE + 1, at + SAMPLE_SIZE) ==
		       vf->stubs.runtime->vaddr + ME_RUNTIME_CALL;
}

uint64_t vf_sample_call(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b = p->old_size ? NULL : mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);

	return b && is_sample(vf, b, p->new_size, p->new_vaddr) ? p->new_vaddr + LEA_SIZE : 0;
}

/* Does the stub that samples calls of @p's function begin at @now? */
static bool samples_same(const struct vf *vf, const struct mp_map_piece *p, uint64_t now)
{
	uint32_t i = mp_map_piece_at(vf->map, now);
	const struct mp_map_piece *to = &vf->map->pieces[i];

	return i < vf->map->nr_pieces && to->new_vaddr == now && to->old_vaddr == p->old_vaddr &&
	       vf_sample_call(vf, to);
}

/* decl left(%rip); js the stub that samples. `dec` leaves the carry as it is. */
static int check_clock(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       size_t avail, uint64_t at)
{
	if (avail < CLOCK_SIZE || b[0] != 0xff || b[1] != 0x0d ||
	    vf_displacement_target(b + 2, at + DECL_SIZE) !=
		    vf->stubs.counters->vaddr + offsetof(struct me_call_clock, left) ||
	    b[DECL_SIZE] != 0x0f || b[DECL_SIZE + 1] != 0x88)
		return vf_refuse(vf, at, "a stub neither counts calls down nor samples one");
	if (!samples_same(vf, p, vf_displacement_target(b + DECL_SIZE + 2, at + CLOCK_SIZE)))
		return vf_refuse(vf, at,
				 "a count of calls does not lead to the stub that samples calls "
				 "of %#llx",
				 (unsigned long long)p->old_vaddr);
	return vf_check_flags(vf, p, false);
}

/* The runtime changes neither registers nor flags, so a stub that samples needs no proof of them. */
int vf_check_call_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next)
{
	size_t avail = p->new_vaddr + p->new_size - at;
	int ret;

	if (is_sample(vf, b, avail, at)) {
		*next = at + SAMPLE_SIZE;
		return at == p->new_vaddr ? 0
					  : vf_refuse(vf, at,
						      "a stub that samples calls is not "
						      "one that jumps lead to");
	}
	ret = check_clock(vf, p, b, avail, at);
	*next = at + CLOCK_SIZE;
	return ret;
}
