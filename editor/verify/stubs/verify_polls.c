// SPDX-License-Identifier: Apache-2.0
/*
 * verify_polls - checks the code of an output that can be polled for its paths: before a block
 * it tests the memory that asks for paths, and a stub writes the block's register there. Called
 * by verify_paths.
 */
#include <stddef.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_polls.h"
#include "editor/verify/stubs/verify_unproved.h"
#include "editor/verify/stubs/verify_unwinder.h"
#include "libprof/note/path_table.h"
#include "libprof/note/polls.h"

struct reader {
	const uint8_t *b;
	size_t avail;
	uint64_t at;
	bool failed;
};

struct note {
	unsigned int reg, scratch;
	unsigned int kept; /* vector register that saves @scratch; 0: none */
	uint32_t block;
};

static unsigned int take(struct reader *r)
{
	if (!r->avail) {
		r->failed = true;
		return 0;
	}
	r->avail--;
	r->at++;
	return *r->b++;
}

static void want(struct reader *r, unsigned int byte)
{
	if (take(r) != byte)
		r->failed = true;
}

static uint32_t take_u32(struct reader *r)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value |= (uint32_t)take(r) << 8 * i;
	return value;
}

/* An operand relative to the next instruction. */
static void want_memory(struct reader *r, uint64_t vaddr)
{
	uint64_t disp = (uint64_t)(int64_t)(int32_t)take_u32(r);

	if (r->at + disp != vaddr)
		r->failed = true;
}

/* Operand of a mov to @disp(@scratch). */
static void want_store(struct reader *r, unsigned int field, unsigned int scratch,
		       unsigned int disp)
{
	want(r, 0x40 | field << 3 | (scratch & 7));
	if ((scratch & 7) == 4)
		want(r, 0x24);
	want(r, disp);
}

/*
 * movq %scratch, %xmm: *@kept is its number, 8 to 15. If @r is not at one, *@kept is 0 and
 * nothing is read. The instructions behind must use the same scratch register.
 */
static void read_keep(struct reader *r, unsigned int *scratch, unsigned int *kept)
{
	const uint8_t *b = r->b;

	*scratch = *kept = 0;
	if (r->avail < 5 || b[0] != 0x66 || (b[1] & 0xfe) != 0x4c || b[2] != 0x0f || b[3] != 0x6e ||
	    b[4] < 0xc0)
		return;
	*kept = 8 + (b[4] >> 3 & 7u);
	*scratch = (b[4] & 7u) | (b[1] & 1u) << 3;
	for (int i = 0; i < 5; i++)
		take(r);
}

/* movq %xmm, %scratch: restores it. */
static void want_back(struct reader *r, unsigned int scratch, unsigned int kept)
{
	want(r, 0x66);
	want(r, 0x4c | scratch >> 3);
	want(r, 0x0f);
	want(r, 0x7e);
	want(r, 0xc0 | (kept & 7) << 3 | (scratch & 7));
}

/*
 * Read the code that poll_code.h describes, instruction by instruction. It writes only within
 * the polls, whatever they contain, and changes nothing else but the flags and n->scratch, or
 * n->kept in its place.
 * Return: false: it is other code.
 */
static bool read_note(const struct vf *vf, struct reader *r, struct note *n)
{
	const uint64_t polls = vf->stubs.counters->vaddr;
	unsigned int op, rex, scratch;
	bool high;

	read_keep(r, &scratch, &n->kept);
	op = take(r);
	high = op == 0x41;
	if (high)
		op = take(r);
	if ((op & 0xf8) != 0xb8 || take_u32(r) != (uint32_t)-16)
		return false;
	n->scratch = (op & 7) | (high ? 8 : 0);
	if (n->kept && scratch != n->scratch)
		return false;
	scratch = n->scratch;
	want(r, 0xf0);
	if (high)
		want(r, 0x44);
	want(r, 0x0f);
	want(r, 0xc1);
	want(r, 0x05 | (scratch & 7) << 3);
	want_memory(r, polls);
	if (high)
		want(r, 0x41);
	want(r, 0x81);
	want(r, 0xe0 | (scratch & 7));
	if (take_u32(r) != 0x3ff0)
		return false;
	want(r, high ? 0x4c : 0x48);
	want(r, 0x03);
	want(r, 0x05 | (scratch & 7) << 3);
	want_memory(r, polls + sizeof(struct mp_polls));
	rex = take(r);
	want(r, 0x89);
	n->reg = (r->avail ? *r->b >> 3 & 7u : 0) | (rex & 4u) << 1;
	if ((rex & ~4u) != (0x48 | (high ? 1u : 0u)))
		return false;
	want_store(r, n->reg & 7, scratch, offsetof(struct mp_poll, number));
	if (high)
		want(r, 0x41);
	want(r, 0xc7);
	want_store(r, 0, scratch, offsetof(struct mp_poll, block));
	n->block = take_u32(r) - 1;
	if (n->kept)
		want_back(r, scratch, n->kept);
	return !r->failed;
}

#define POLL_SIZE 13

/* Is there a stub at @vaddr that leads to the same block as @p and notes its path? */
static bool is_note_of(const struct vf *vf, const struct mp_map_piece *p, uint64_t vaddr)
{
	uint32_t i = mp_map_piece_at(vf->map, vaddr);
	const struct mp_map_piece *to = &vf->map->pieces[i];
	struct reader r = {.at = vaddr};
	struct note note;

	if (i == vf->map->nr_pieces || to->new_vaddr != vaddr || to->old_size ||
	    to->old_vaddr != p->old_vaddr)
		return false;
	r.avail = to->new_size;
	r.b = mp_elf_bytes(vf->n, vaddr, to->new_size);
	return r.b && read_note(vf, &r, &note);
}

/*
 * cmpl $0, left; jg to a note of the same block. The check of the note proves that flags are
 * dead; the poll may lead to no other stub.
 */
int vf_check_poll(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at)
{
	if (!vf->stubs.counters || p->new_vaddr + p->new_size < at + POLL_SIZE || b[0] != 0x83 ||
	    b[1] != 0x3d)
		return 0;
	if (vf_displacement_target(b + 2, at + 7) != vf->stubs.counters->vaddr || b[6] ||
	    b[7] != 0x0f || b[8] != 0x8f)
		return vf_refuse(vf, at, "a stub's poll is malformed");
	if (!is_note_of(vf, p, vf_displacement_target(b + 9, at + POLL_SIZE)))
		return vf_refuse(vf, at,
				 "a poll does not lead to the stub that notes the paths at %#llx",
				 (unsigned long long)p->old_vaddr);
	return POLL_SIZE;
}

/* May the scratch register, or the one that saves it, be overwritten there? */
static int check_scratch(const struct vf *vf, const struct mp_map_piece *p, const struct note *n)
{
	int reads;

	if (!n->kept)
		return vf_check_dead(vf, p, n->scratch);
	if (vf->stubs.named_vectors >> n->kept & 1)
		return vf_refuse(vf, p->new_vaddr,
				 "a stub uses xmm%u, which the program uses as well", n->kept);
	reads = vf_unwinder_reads(vf, p->old_vaddr, n->scratch);
	if (reads < 0)
		return reads;
	if (reads)
		return vf_refuse(vf, p->new_vaddr,
				 "a stub uses register %u, which the unwinder needs at %#llx",
				 n->scratch, (unsigned long long)p->old_vaddr);
	return 0;
}

int vf_check_note(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at)
{
	struct reader r = {b, p->new_vaddr + p->new_size - at, at, false};
	struct note n;
	int ret;

	if (!vf->stubs.counters || !read_note(vf, &r, &n))
		return 0;
	if (n.block >= vf->stubs.paths->nr_blocks ||
	    vf->stubs.paths->blocks[n.block].vaddr != p->old_vaddr ||
	    vf->stubs.paths->blocks[n.block].reg != n.reg || n.scratch == n.reg ||
	    n.scratch == MP_REGISTER_RSP)
		return vf_refuse(vf, p->new_vaddr, "a stub does not note the path number of %#llx",
				 (unsigned long long)p->old_vaddr);
	ret = vf_check_flags(vf, p, true);
	if (!ret)
		ret = check_scratch(vf, p, &n);
	return ret ? ret : (int)(r.at - at);
}
