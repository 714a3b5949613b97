// SPDX-License-Identifier: Apache-2.0
/*
 * verify_paths - what an output has besides that keeps path numbers in registers: stubs of one
 * instruction that set such a register and go on; and where it polls, a look at the memory that asks,
 * and stubs that write such a register down there. Called by verify_image, verify_count and
 * verify_rest.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify_priv.h"
#include "libprof/path_table.h"
#include "libprof/polls.h"

/* Before the headers are looked at: is it such an output at all? */
void vf_find_paths(struct vf *vf)
{
	const struct mp_section *paths = mp_elf_section(vf->n, MP_PATH_TABLE_SECTION);

	if (!paths || (!vf->counters && mp_elf_section(vf->n, ".morph.counters")) ||
	    mp_elf_section(vf->o, ".morph.counters") ||
	    mp_elf_section(vf->o, MP_PATH_TABLE_SECTION))
		return;
	vf->path_section = paths;
}

bool vf_is_path_section(const struct vf *vf, const struct mp_section *sec)
{
	return sec == vf->path_section && sec->type == SHT_PROGBITS && !sec->flags && !sec->vaddr &&
	       sec->align == 1 && !sec->link && !sec->info && !sec->entsize;
}

int vf_read_paths(struct vf *vf)
{
	int rc;

	if (!vf->path_section)
		return 0;
	rc = mp_path_table_read(vf->n, &vf->paths, vf->err);
	if (rc == -ENOMEM)
		return rc;
	if (rc)
		return vf_refuse(vf, 0, "nobody can tell what paths the numbers stand for");
	vf->unproved = calloc(vf->map->nr_pieces / 64 + 1, sizeof(*vf->unproved));
	return vf->unproved ? 0 : -ENOMEM;
}

/*
 * mov $imm32, %reg32 or lea disp(%base), %reg, and nothing else that would do the same. Return: its
 * length; 0: it is neither.
 */
static unsigned int read_setter(const uint8_t *b, size_t avail, unsigned int *reg)
{
	unsigned int rex = 0, at = 0, mod, rm;

	if (avail && (b[0] & 0xf0) == 0x40)
		rex = b[at++];
	if (avail >= at + 5 && (b[at] & 0xf8) == 0xb8 && (!at || rex == 0x41)) {
		*reg = (b[at] & 7u) | (rex & 1u) << 3;
		return at + 5;
	}
	/* REX.W and no index register; with rsp, and r12, for a base comes a SIB byte. */
	if (!at || (rex & 0xfa) != 0x48 || avail < at + 3 || b[at] != 0x8d)
		return 0;
	mod = b[at + 1] >> 6;
	rm = b[at + 1] & 7u;
	*reg = (b[at + 1] >> 3 & 7u) | (rex & 4u) << 1;
	at += 2;
	if (rm == 4 && b[at++] != 0x24)
		return 0;
	if (mod != 1 && mod != 2)
		return 0;
	at += mod == 1 ? 1 : 4;
	return at <= avail ? at : 0;
}

/* The table says which register holds the number in the block that the stub leads to. */
static bool is_in_table(const struct vf *vf, uint64_t old_vaddr, unsigned int reg)
{
	uint32_t block = mp_path_table_block_at(vf->paths, old_vaddr);

	return block != MP_NONE && vf->paths->blocks[block].vaddr == old_vaddr &&
	       vf->paths->blocks[block].reg == reg;
}

static void check_dead(struct vf *vf, const struct mp_map_piece *p, unsigned int reg)
{
	size_t i = (size_t)(p - vf->map->pieces);

	if (!vf_register_is_dead(vf, p->old_vaddr, reg))
		__atomic_fetch_or(&vf->unproved[i / 64], 1ULL << (i % 64), __ATOMIC_RELAXED);
}

/* Where the displacement at @b leads, of an instruction that ends at @end. */
static uint64_t led_to(const uint8_t *b, uint64_t end)
{
	int32_t disp;

	memcpy(&disp, b, sizeof(disp));
	return end + (uint64_t)(int64_t)disp;
}

#define POLL_SIZE 13

static bool is_poll(const struct vf *vf, const uint8_t *b, size_t avail)
{
	return vf->counters && avail >= POLL_SIZE && b[0] == 0x83 && b[1] == 0x3d;
}

/* cmpl $0, left; jg to another stub on the way to the same block. */
static int check_poll(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at)
{
	uint64_t to = led_to(b + 9, at + POLL_SIZE);
	uint32_t i = mp_map_piece_at(vf->map, to);
	const struct mp_map_piece *notes = &vf->map->pieces[i];

	if (led_to(b + 2, at + 7) != vf->counters->vaddr || b[6] || b[7] != 0x0f || b[8] != 0x8f)
		return vf_refuse(vf, at, "a stub that polls something else");
	if (i == vf->map->nr_pieces || notes->new_vaddr != to || notes->old_size ||
	    notes->old_vaddr != p->old_vaddr)
		return vf_refuse(vf, at, "a poll does not lead to a stub on the way to %#llx",
				 (unsigned long long)p->old_vaddr);
	if (!vf_flags_are_dead(vf, p->old_vaddr, true))
		return vf_refuse(vf, at, "polls where flags are read at %#llx",
				 (unsigned long long)p->old_vaddr);
	return 0;
}

struct reader {
	const uint8_t *b;
	size_t avail;
	uint64_t at;
	bool failed;
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

/* mov to what @scratch leads to, and @disp more. */
static void want_store(struct reader *r, unsigned int field, unsigned int scratch,
		       unsigned int disp)
{
	want(r, 0x40 | field << 3 | (scratch & 7));
	if ((scratch & 7) == 4)
		want(r, 0x24);
	want(r, disp);
}

/*
 * What poll_code.h tells of, instruction by instruction: the place is within the polls whatever is in
 * them, and nothing is changed but it, the flags and @*scratch. Return: false: it is not that.
 */
static bool read_note(const struct vf *vf, struct reader *r, unsigned int *scratch,
		      unsigned int *reg, uint32_t *block)
{
	const uint64_t polls = vf->counters->vaddr;
	unsigned int op = take(r), rex = 0;
	bool high = op == 0x41;

	if (high)
		op = take(r);
	if ((op & 0xf8) != 0xb8 || take_u32(r) != (uint32_t)-16)
		return false;
	*scratch = (op & 7) | (high ? 8 : 0);
	want(r, 0xf0);
	if (high)
		want(r, 0x44);
	want(r, 0x0f);
	want(r, 0xc1);
	want(r, 0x05 | (*scratch & 7) << 3);
	want_memory(r, polls);
	if (high)
		want(r, 0x41);
	want(r, 0x81);
	want(r, 0xe0 | (*scratch & 7));
	if (take_u32(r) != 0x3ff0)
		return false;
	want(r, high ? 0x4c : 0x48);
	want(r, 0x03);
	want(r, 0x05 | (*scratch & 7) << 3);
	want_memory(r, polls + sizeof(struct mp_polls));
	rex = take(r);
	want(r, 0x89);
	*reg = (r->avail ? *r->b >> 3 & 7u : 0) | (rex & 4u) << 1;
	if ((rex & ~4u) != (0x48 | (high ? 1u : 0u)))
		return false;
	want_store(r, *reg & 7, *scratch, offsetof(struct mp_poll, number));
	if (high)
		want(r, 0x41);
	want(r, 0xc7);
	want_store(r, 0, *scratch, offsetof(struct mp_poll, block));
	*block = take_u32(r) - 1;
	return !r->failed;
}

static int check_note(struct vf *vf, const struct mp_map_piece *p, unsigned int scratch,
		      unsigned int reg, uint32_t block)
{
	if (block >= vf->paths->nr_blocks || vf->paths->blocks[block].vaddr != p->old_vaddr ||
	    vf->paths->blocks[block].reg != reg || scratch == reg || scratch == MP_REGISTER_RSP)
		return vf_refuse(vf, p->new_vaddr, "a stub writes no number of %#llx",
				 (unsigned long long)p->old_vaddr);
	if (!vf_flags_are_dead(vf, p->old_vaddr, true))
		return vf_refuse(vf, p->new_vaddr, "notes where flags are read at %#llx",
				 (unsigned long long)p->old_vaddr);
	check_dead(vf, p, scratch);
	return 0;
}

static int check_setter(struct vf *vf, const struct mp_map_piece *p, uint64_t at, unsigned int reg)
{
	if (reg == MP_REGISTER_RSP || !is_in_table(vf, p->old_vaddr, reg))
		return vf_refuse(vf, at, "a stub sets a register that holds no number at %#llx",
				 (unsigned long long)p->old_vaddr);
	check_dead(vf, p, reg);
	return 0;
}

int vf_check_path_stub(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at,
		       uint64_t *next)
{
	const uint64_t end = p->new_vaddr + p->new_size;
	struct reader r = {b, end - at, at, false};
	unsigned int reg = MP_NO_REGISTER, scratch, len;
	uint32_t block;
	int ret;

	if (vf->counters && read_note(vf, &r, &scratch, &reg, &block)) {
		*next = r.at;
		return check_note(vf, p, scratch, reg, block);
	}
	len = read_setter(b, end - at, &reg);
	ret = len ? check_setter(vf, p, at, reg) : 0;
	*next = at + len;
	if (!ret && is_poll(vf, b + len, end - *next)) {
		ret = check_poll(vf, p, b + len, *next);
		*next += POLL_SIZE;
	} else if (!ret && !len) {
		ret = vf_refuse(vf, at, "a stub that neither sets a register nor polls");
	}
	return ret;
}

static void note_unproved(struct vf *vf, uint64_t old_vaddr)
{
	struct me_verify_report *r = vf->report;
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, old_vaddr);
	uint64_t start = fde ? fde->start : old_vaddr;

	for (uint32_t i = 0; i < r->nr_unproved; i++)
		if (r->unproved[i] == start)
			return;
	if (r->nr_unproved < ME_MAX_UNPROVED)
		r->unproved[r->nr_unproved++] = start;
}

int vf_check_unproved(struct vf *vf)
{
	const struct mp_map_piece *first = NULL;

	for (uint32_t i = 0; vf->unproved && i < vf->map->nr_pieces; i++) {
		if (!(vf->unproved[i / 64] >> (i % 64) & 1))
			continue;
		first = first ? first : &vf->map->pieces[i];
		note_unproved(vf, vf->map->pieces[i].old_vaddr);
	}
	return first ? vf_refuse(vf, first->new_vaddr,
				 "a stub sets a register that is read from %#llx on",
				 (unsigned long long)first->old_vaddr)
		     : 0;
}
