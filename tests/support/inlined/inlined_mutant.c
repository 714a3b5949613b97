// SPDX-License-Identifier: Apache-2.0
/* inlined_mutant - changes outputs with functions in place of calls; see inlined_output.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/inlined/inlined_output.h"

enum {
	INSN_MAX = 15,
	NOP = 0x90
};

bool inlined_mutant_init(struct inlined_mutant *m, const struct inlined_output *of)
{
	size_t pieces = of->map->nr_pieces * sizeof(*of->map->pieces);
	size_t calls = of->map->nr_calls * sizeof(*of->map->calls);

	*m = (struct inlined_mutant){.of = of, .bytes = malloc(of->output.size), .map = *of->map};
	m->map.pieces = malloc(pieces);
	m->map.calls = malloc(calls + 1);
	if (!m->bytes || !m->map.pieces || !m->map.calls)
		return false;
	inlined_mutant_reset(m);
	return true;
}

void inlined_mutant_fini(struct inlined_mutant *m)
{
	free(m->bytes);
	free(m->map.pieces);
	free(m->map.calls);
}

void inlined_mutant_reset(struct inlined_mutant *m)
{
	const struct mp_map *map = m->of->map;

	memcpy(m->bytes, m->of->output.data, m->of->output.size);
	memcpy(m->map.pieces, map->pieces, map->nr_pieces * sizeof(*map->pieces));
	memcpy(m->map.calls, map->calls, map->nr_calls * sizeof(*map->calls));
	m->map_changed = false;
}

/* Return: the byte at @vaddr; NULL: none. */
static uint8_t *at(struct inlined_mutant *m, uint64_t vaddr)
{
	uint64_t off;

	return mp_elf_vaddr_to_off(m->of->good, vaddr, &off) && off < m->of->output.size
		       ? m->bytes + off
		       : NULL;
}

static bool change_byte(struct inlined_mutant *m, uint64_t n, uint8_t value)
{
	const struct inlined_range *range = m->of->ranges;

	if (!m->of->nr_bytes)
		return false;
	for (n %= m->of->nr_bytes; n >= range->size; range++)
		n -= range->size;
	m->bytes[range->off + n] = value;
	return true;
}

static bool swap(struct inlined_mutant *m, const struct mp_insn *a, const struct mp_insn *b)
{
	uint8_t both[2 * INSN_MAX], *p = at(m, a->vaddr);

	if (b->vaddr != a->vaddr + a->len || !p)
		return false;
	memcpy(both, p + a->len, b->len);
	memcpy(both + b->len, p, a->len);
	memcpy(p, both, (size_t)a->len + b->len);
	return true;
}

static bool copy(struct inlined_mutant *m, const struct mp_insn *to, uint32_t n)
{
	const struct inlined_output *x = m->of;
	uint8_t *p = at(m, to->vaddr);

	for (uint32_t k = 0; p && k < x->nr_insns; k++) {
		const struct mp_insn *from = &x->insns[(n + k) % x->nr_insns];
		const uint8_t *b = mp_elf_bytes(x->good, from->vaddr, from->len);

		if (from->len != to->len || !b || !memcmp(p, b, to->len))
			continue;
		memcpy(p, b, to->len);
		return true;
	}
	return false;
}

static bool aim(struct inlined_mutant *m, const struct mp_insn *branch, uint32_t n)
{
	const struct inlined_output *x = m->of;
	uint64_t place = n % 2 ? x->insns[n / 2 % x->nr_insns].vaddr
			       : x->map->pieces[n / 2 % x->map->nr_pieces].new_vaddr;
	int64_t distance = (int64_t)(place - branch->vaddr - branch->len);
	uint8_t *p = at(m, branch->vaddr);

	if (!p ||
	    (branch->kind != MP_INSN_COND && branch->kind != MP_INSN_JUMP &&
	     branch->kind != MP_INSN_CALL) ||
	    distance != (branch->disp_size == 1 ? (int8_t)distance : (int32_t)distance))
		return false;
	for (uint8_t i = 0; i < branch->disp_size; i++)
		p[branch->disp_off + i] = (uint8_t)((uint64_t)distance >> 8 * i);
	return true;
}

static bool change_condition(struct inlined_mutant *m, const struct mp_insn *branch,
			     uint8_t condition)
{
	uint8_t *p = at(m, branch->vaddr);

	if (!p || branch->kind != MP_INSN_COND)
		return false;
	p += branch->disp_off - 1;
	*p = (uint8_t)((*p & 0xf0) | (condition & 15));
	return true;
}

/* A small number other than 0. */
static int32_t step(uint32_t n)
{
	int32_t by = (int32_t)(n % 32) - 16;

	return by < 0 ? by : by + 1;
}

static bool move_edge(struct inlined_mutant *m, uint32_t i, int32_t by)
{
	struct mp_map_piece *p = &m->map.pieces[i];

	if (i + 1 >= m->map.nr_pieces || (int64_t)p->new_size + by < 0 ||
	    (int64_t)p[1].new_size - by < 0)
		return false;
	p->new_size += (uint32_t)by;
	p->old_size += (uint32_t)by;
	p[1].new_size -= (uint32_t)by;
	p[1].old_size -= (uint32_t)by;
	p[1].new_vaddr += (uint64_t)(int64_t)by;
	p[1].old_vaddr += (uint64_t)(int64_t)by;
	m->map_changed = true;
	return true;
}

static bool change_call(struct inlined_mutant *m, uint32_t i, uint32_t how)
{
	struct mp_map_call *call = &m->map.calls[i];
	const struct mp_map_call *other = &m->of->map->calls[how / 8 % m->map.nr_calls];

	switch (how % 8) {
	case 0: call->back = other->back; break;
	case 1: call->callee = other->callee; break;
	case 2: call->back += (uint64_t)step(how / 8); break;
	case 3: call->callee += (uint64_t)step(how / 8); break;
	case 4: call->nr++; break;
	case 5: call->nr -= call->nr > 1; break;
	case 6: call->first++; break;
	default: call->first -= call->first > 0; break;
	}
	m->map_changed = true;
	return true;
}

/* The first two words behind an FDE's start: its length and the CIE. Then come the start and the size. */
static uint8_t *fde_bounds(struct inlined_mutant *m, const struct mp_fde *fde)
{
	return at(m, fde->fde_vaddr + 8);
}

static void add_to(uint8_t *word, int32_t by)
{
	uint32_t now;

	memcpy(&now, word, sizeof(now));
	now += (uint32_t)by;
	memcpy(word, &now, sizeof(now));
}

/* Moves the edge between two FDEs of copies, in .eh_frame and in the search table. */
static bool move_rows(struct inlined_mutant *m, uint64_t vaddr, int32_t by)
{
	const struct mp_elf *good = m->of->good;
	const struct mp_section *header = mp_elf_section(good, ".eh_frame_hdr");
	uint8_t *entry = header ? at(m, header->vaddr + 12) : NULL, *first, *next;

	for (uint32_t i = 0; entry && i + 1 < good->nr_fdes; i++, entry += 8) {
		const struct mp_fde *fde = &good->fdes[i];

		if (vaddr - fde->start >= fde->size)
			continue;
		first = fde_bounds(m, fde);
		next = fde_bounds(m, fde + 1);
		if (!first || !next)
			return false;
		add_to(first + 4, by);
		if (fde[1].start != fde->start + fde->size)
			return true;
		add_to(next, by);
		add_to(next + 4, -by);
		add_to(entry + 8, by);
		return true;
	}
	return false;
}

bool inlined_mutate(struct inlined_mutant *m, enum inlined_change how, uint32_t a, uint32_t b)
{
	const struct inlined_output *x = m->of;
	uint32_t i = a % x->nr_insns, piece = a % x->map->nr_pieces;
	const struct mp_insn *insn = &x->insns[i];

	switch (how) {
	case INLINED_BYTE: return change_byte(m, a, (uint8_t)b);
	case INLINED_NOPS:
		if (!at(m, insn->vaddr))
			return false;
		memset(at(m, insn->vaddr), NOP, insn->len);
		return true;
	case INLINED_SWAP: return i + 1 < x->nr_insns && swap(m, insn, insn + 1);
	case INLINED_COPY: return copy(m, insn, b);
	case INLINED_AIM: return aim(m, insn, b);
	case INLINED_CONDITION: return change_condition(m, insn, (uint8_t)b);
	case INLINED_PIECE:
		m->map.pieces[piece].old_vaddr = x->map->pieces[b % x->map->nr_pieces].old_vaddr;
		m->map_changed = true;
		return true;
	case INLINED_EDGE: return move_edge(m, piece, step(b));
	case INLINED_CALL: return change_call(m, a % x->map->nr_calls, b);
	case INLINED_ROWS: return move_rows(m, x->map->pieces[piece].new_vaddr, step(b));
	default: return false;
	}
}

/* The section and the segment end with the note, so they become as small as it is. */
static void put_map(struct inlined_mutant *m, const uint8_t *bytes, size_t size)
{
	const struct mp_elf *good = m->of->good;
	const struct mp_section *note = mp_elf_section(good, MP_MAP_SECTION);
	uint64_t header =
		good->ehdr.e_shoff + (uint64_t)(note - good->sections) * sizeof(Elf64_Shdr);
	Elf64_Phdr ph;

	memset(m->bytes + note->off, 0, note->size);
	memcpy(m->bytes + note->off, bytes, size);
	memcpy(m->bytes + header + offsetof(Elf64_Shdr, sh_size), &size, sizeof(size));
	for (uint32_t i = 0; i < good->nr_phdrs; i++) {
		uint8_t *where = m->bytes + good->ehdr.e_phoff + i * sizeof(ph);

		memcpy(&ph, where, sizeof(ph));
		if (ph.p_type != PT_LOAD || ph.p_offset + ph.p_filesz != note->off + note->size)
			continue;
		ph.p_filesz = ph.p_memsz = note->off + size - ph.p_offset;
		memcpy(where, &ph, sizeof(ph));
	}
}

bool inlined_mutant_finish(struct inlined_mutant *m)
{
	const struct mp_section *note = mp_elf_section(m->of->good, MP_MAP_SECTION);
	struct mp_err err;
	uint8_t *bytes;
	size_t size;

	if (!m->map_changed)
		return true;
	if (!note || mp_map_encode(&m->map, &bytes, &size, &err))
		return false;
	if (size <= note->size)
		put_map(m, bytes, size);
	free(bytes);
	return size <= note->size;
}
