// SPDX-License-Identifier: Apache-2.0
/*
 * mutate_output - changes an output, and says what verify accepts. For scripts/check/mutate-outputs.
 *
 *	mutate-output ORIGINAL OUTPUT BYTES CHANGES [SEED]
 *
 * BYTES times it replaces one byte: each second time any byte of the file; else one of an owner, which are taken in
 * turns. CHANGES times it makes a change that means something: to a branch, an operand, an instruction, a word of data,
 * a relocation, a dynamic entry, a symbol, a patch, the map, padding, a header.
 *
 * Prints `OWNER: TRIED ACCEPTED` and `KIND OF CHANGE: TRIED ACCEPTED` and, if some were accepted, the reason (for each
 * other reason one more line, with 0 tried); and a line for each that was accepted without a reason, or against it:
 * then the exit status is 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "editor/verify/verify.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"

struct trial {
	struct mp_elf *original, *output;
	struct mp_map *map;
	struct me_owned *owned;
	size_t nr_owned;
	uint64_t bytes[ME_NR_OWNERS], tried[ME_NR_OWNERS], accepted[ME_NR_OWNERS];
	uint8_t *changed;
	uint64_t nr_bad, random;
	const char *reason; /* why the last change that was accepted is harmless; NULL: it is not */
};

static const struct me_owned *owner_at(const struct trial *t, uint64_t off)
{
	size_t lo = 0, hi = t->nr_owned;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->owned[mid].end <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &t->owned[lo];
}

/* The @n-th byte of this owner. */
static uint64_t byte_of(const struct trial *t, uint32_t owner, uint64_t n)
{
	for (size_t i = 0; i < t->nr_owned; i++) {
		uint64_t size = t->owned[i].end - t->owned[i].start;

		if (t->owned[i].owner != owner)
			continue;
		if (n < size)
			return t->owned[i].start + n;
		n -= size;
	}
	return 0;
}

/* Where is decoding of code at @vaddr to begin: at a piece of the map, or a function? 0: nowhere. */
static uint64_t code_start(const struct trial *t, uint64_t vaddr)
{
	uint32_t i = mp_map_piece_at(t->map, vaddr);
	const struct mp_elf *o = t->original;

	if (i < t->map->nr_pieces)
		return mp_map_piece(t->map, i).new_vaddr;
	for (uint32_t k = 0; k < o->nr_fdes; k++)
		if (vaddr - o->fdes[k].start < o->fdes[k].size)
			return o->fdes[k].start;
	return 0;
}

/* Do both words lead to the same code of the original? */
static bool same_place(const struct trial *t, uint64_t a, uint64_t b)
{
	return mp_map_original(t->map, a) == mp_map_original(t->map, b);
}

/* Is the byte in the displacement of a branch or an operand that leads to the same code as before? */
static bool is_same_way(const struct trial *t, uint64_t vaddr)
{
	uint64_t at = code_start(t, vaddr), off;
	struct mp_insn a, b;

	while (at && at <= vaddr) {
		if (!mp_elf_vaddr_to_off(t->output, at, &off) ||
		    mp_insn_decode(t->output->data + off, t->output->size - off, at, &a))
			return false;
		if (vaddr < at + a.len)
			return !mp_insn_decode(t->changed + off, t->output->size - off, at, &b) &&
			       a.len == b.len && a.kind == b.kind && a.target && b.target &&
			       same_place(t, a.target, b.target);
		at += a.len;
	}
	return false;
}

/* Is the byte in a word of 8 bytes that leads to the same code as before? */
static bool is_same_word(const struct trial *t, uint64_t off)
{
	uint64_t a, b, at = off & ~UINT64_C(7);

	memcpy(&a, t->output->data + at, sizeof(a));
	memcpy(&b, t->changed + at, sizeof(b));
	return same_place(t, a, b);
}

static bool is_size_of_symbol(const struct trial *t, uint64_t off, const char *table)
{
	const struct mp_section *sec = mp_elf_section(t->output, table);

	return sec && off - sec->off < sec->size &&
	       (off - sec->off) % sizeof(Elf64_Sym) >= offsetof(Elf64_Sym, st_size);
}

static bool is_free_field(const struct trial *t, uint64_t off)
{
	uint64_t at = off - t->output->ehdr.e_shoff, field = at % sizeof(Elf64_Shdr) / 8 * 8;
	const struct mp_section *sec = &t->output->sections[at / sizeof(Elf64_Shdr)];

	return (field == offsetof(Elf64_Shdr, sh_size) &&
		!strcmp(sec->name, ".gcc_except_table.morph")) ||
	       (field == offsetof(Elf64_Shdr, sh_offset) && !sec->size);
}

/*
 * Stubs keep a number in a register by mov $number, %reg or lea number(%other), %reg. Return: the register; 16: the
 * instruction is neither.
 */
static unsigned int numbered(const uint8_t *b, size_t len)
{
	unsigned int rex = 0;

	if (len && (*b & 0xf0) == 0x40) {
		rex = *b++;
		len--;
	}
	if (len == 5 && (*b & 0xf8) == 0xb8)
		return (*b & 7u) | (rex & 1) << 3;
	return len >= 3 && *b == 0x8d ? (b[1] >> 3 & 7u) | (rex & 4) << 1 : 16;
}

/* Is the byte in an instruction of a stub that sets a number, and still sets one in the same register? */
static bool is_number(const struct trial *t, uint64_t off)
{
	const uint8_t *was = t->output->data, *now = t->changed;
	uint64_t vaddr, at, start;
	struct mp_insn a, b;

	if (owner_at(t, off)->owner != ME_OWNER_STUB ||
	    !mp_elf_off_to_vaddr(t->output, off, &vaddr))
		return false;
	for (at = code_start(t, vaddr); at && at <= vaddr; at += a.len) {
		if (!mp_elf_vaddr_to_off(t->output, at, &start) ||
		    mp_insn_decode(was + start, t->output->size - start, at, &a))
			return false;
		if (vaddr < at + a.len)
			return !mp_insn_decode(now + start, t->output->size - start, at, &b) &&
			       a.len == b.len && numbered(was + start, a.len) < 16 &&
			       numbered(was + start, a.len) == numbered(now + start, a.len);
	}
	return false;
}

/* Is what was accepted what its owner's reason says? */
static bool is_explained(const struct trial *t, uint64_t off, enum me_owner owner)
{
	uint64_t vaddr;

	if (!me_owner_freedom(owner))
		return false;
	switch (owner) {
	case ME_OWNER_OLD:
	case ME_OWNER_COPY:
		if (mp_elf_off_to_vaddr(t->output, off, &vaddr) && is_same_way(t, vaddr))
			return true;
		return owner == ME_OWNER_OLD &&
		       (is_same_word(t, off) || is_size_of_symbol(t, off, ".dynsym"));
	case ME_OWNER_STUB:
		return is_number(t, off) ||
		       (mp_elf_off_to_vaddr(t->output, off, &vaddr) && is_same_way(t, vaddr));
	case ME_OWNER_SYMBOLS: return is_size_of_symbol(t, off, ".symtab");
	case ME_OWNER_SHDRS: return is_free_field(t, off);
	default: return true;
	}
}

/* Return: 0 accepted; -EBADMSG, -ENOEXEC refused; -ENOMEM. */
static int verify(const struct trial *t)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	int rc = mp_elf_open_memory("changed", t->changed, t->output->size, MP_ELF_ALL, &elf, &err);

	if (!rc) {
		rc = me_verify(t->original, elf, NULL, &err);
		mp_elf_close(elf);
	}
	return rc;
}

static uint64_t draw(struct trial *t, uint64_t limit)
{
	return limit ? me_next_random(&t->random) % limit : 0;
}

static int replace_byte(struct trial *t, uint64_t off, uint8_t value)
{
	enum me_owner owner = (enum me_owner)owner_at(t, off)->owner;
	int rc;

	t->changed[off] = value;
	t->tried[owner]++;
	rc = verify(t);
	t->accepted[owner] += !rc;
	if (!rc && !is_explained(t, off, owner)) {
		printf("accepted: %#x instead of %#x at file offset %#" PRIx64 " (%s)\n", value,
		       t->output->data[off], off, me_owner_name(owner));
		t->nr_bad++;
	}
	t->changed[off] = t->output->data[off];
	return rc == -ENOMEM ? rc : 0;
}

static int replace_bytes(struct trial *t, uint64_t nr)
{
	uint32_t owners[ME_NR_OWNERS], nr_owners = 0;
	int rc = 0;

	for (size_t i = 0; i < t->nr_owned; i++)
		t->bytes[t->owned[i].owner] += t->owned[i].end - t->owned[i].start;
	for (uint32_t i = 0; i < ME_NR_OWNERS; i++)
		if (t->bytes[i])
			owners[nr_owners++] = i;
	for (uint64_t i = 0; !rc && i < nr; i++) {
		uint32_t owner = owners[draw(t, nr_owners)];
		uint64_t off = i % 2 ? byte_of(t, owner, draw(t, t->bytes[owner]))
				     : draw(t, t->output->size);

		rc = replace_byte(t, off, (uint8_t)(t->output->data[off] + 1 + draw(t, 255)));
	}
	return rc;
}

/* ---- changes that mean something ------------------------------------------------------------- */

/*
 * Each makes one change, and sets @reason to why it is harmless if that is so by what it changed alone. Return: false:
 * there is nothing to change.
 */

static const char any_copy[] = "leads to a copy of the same code, or to its old place",
		  same_code[] = "the original has the same code at both places",
		  old_code[] = "the old code runs as before",
		  other_number[] = "a number that a stub keeps says only what a profile means",
		  no_numbers[] = "nothing names these sections by their numbers",
		  not_reached[] = "control does not arrive there";

/* A random number that often is a likely mistake. */
static uint64_t other_value(struct trial *t, uint64_t value)
{
	switch (draw(t, 8)) {
	case 0: return 0;
	case 1: return value + 1;
	case 2: return value - 1;
	case 3: return value ^ UINT64_C(1) << draw(t, 64);
	case 4: return UINT64_C(1) << draw(t, 64);
	case 5: return value + 4096;
	case 6: return value - 4096;
	default: return me_next_random(&t->random) >> draw(t, 64);
	}
}

static const struct mp_map_piece *any_piece(struct trial *t)
{
	return &t->map->pieces[draw(t, t->map->nr_pieces)];
}

/* An address in code: of a piece, of a block's old place, or nearby. */
static uint64_t any_place(struct trial *t)
{
	const struct mp_map_piece *p = any_piece(t);
	uint64_t at = draw(t, 2) ? p->new_vaddr : p->old_vaddr;

	return draw(t, 4) ? at : at + draw(t, 16);
}

/* A random instruction of copies, stubs or old code. Return: its offset in the file; 0: none was found. */
static uint64_t any_insn(struct trial *t, bool (*want)(const struct mp_insn *),
			 struct mp_insn *insn)
{
	for (int tries = 0; tries < 64; tries++) {
		const struct mp_map_piece *p = any_piece(t);
		bool old = draw(t, 4) == 0;
		uint64_t at = old ? p->old_vaddr : p->new_vaddr, off;
		uint64_t end = at + (old ? p->old_size : p->new_size), found = 0;
		uint32_t nr = 0;

		for (; at < end && mp_elf_vaddr_to_off(t->output, at, &off); at += insn->len) {
			if (mp_insn_decode(t->output->data + off, t->output->size - off, at, insn))
				break;
			/* Each one that is wanted is as likely. */
			if (want(insn) && draw(t, ++nr) == 0)
				found = off;
		}
		if (found && mp_elf_off_to_vaddr(t->output, found, &at) &&
		    !mp_insn_decode(t->output->data + found, t->output->size - found, at, insn))
			return found;
	}
	return 0;
}

static bool is_any(const struct mp_insn *insn)
{
	return !insn->nop;
}

static bool is_branch(const struct mp_insn *insn)
{
	return insn->disp_size && !insn->rip_relative && insn->target;
}

static bool is_cond(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_COND;
}

static bool has_operand(const struct mp_insn *insn)
{
	return insn->rip_relative;
}

static bool put_target(struct trial *t, uint64_t off, const struct mp_insn *insn, uint64_t to)
{
	int64_t disp = (int64_t)(to - insn->vaddr - insn->len);

	if (to == insn->target || disp != (insn->disp_size == 1 ? (int8_t)disp : (int32_t)disp))
		return false;
	memcpy(t->changed + off + insn->disp_off, &disp, insn->disp_size);
	t->reason = same_place(t, insn->target, to) ? any_copy : NULL;
	return true;
}

static bool change_branch(struct trial *t)
{
	struct mp_insn insn;
	uint64_t off = any_insn(t, is_branch, &insn);

	return off &&
	       put_target(t, off, &insn,
			  insn.disp_size == 1 ? insn.target + draw(t, 32) - 16 : any_place(t));
}

static bool change_operand(struct trial *t)
{
	struct mp_insn insn;
	uint64_t off = any_insn(t, has_operand, &insn);

	return off && put_target(t, off, &insn,
				 draw(t, 2) ? insn.target + draw(t, 64) - 32 : any_place(t));
}

static bool change_condition(struct trial *t)
{
	struct mp_insn insn;
	uint64_t off = any_insn(t, is_cond, &insn);

	if (!off)
		return false;
	t->changed[off + insn.disp_off - 1] ^= (uint8_t)(1 + draw(t, 15));
	return true;
}

static bool change_insn(struct trial *t)
{
	struct mp_insn insn, other;
	uint64_t off = any_insn(t, is_any, &insn), from = any_insn(t, is_any, &other);

	if (!off || !from)
		return false;
	if (draw(t, 2)) {
		memset(t->changed + off, 0x90, insn.len);
		return true;
	}
	if (insn.len != other.len)
		return false;
	memcpy(t->changed + off, t->output->data + from, insn.len);
	t->reason = is_number(t, off) ? other_number : NULL;
	return true;
}

/* The patch of a block: one is taken back, or moves. */
static bool change_patch(struct trial *t)
{
	const struct mp_map_piece *p = any_piece(t);
	const uint8_t *was = mp_elf_bytes(t->original, p->old_vaddr, p->old_size);
	uint64_t off, shift = draw(t, 6);

	if (!was || p->old_size < 10 || !mp_elf_vaddr_to_off(t->output, p->old_vaddr, &off) ||
	    !memcmp(was, t->output->data + off, 9))
		return false;
	memcpy(t->changed + off, was, 9);
	if (shift)
		memcpy(t->changed + off + shift, t->output->data + off, 5);
	else
		t->reason = old_code;
	return true;
}

static bool change_map(struct trial *t)
{
	struct mp_map map = *t->map;
	uint64_t at, a = draw(t, map.nr_pieces), b = draw(t, map.nr_pieces);
	const struct mp_section *note = mp_elf_section(t->output, MP_MAP_SECTION);
	struct mp_map_piece *p;
	uint8_t *bytes = NULL;
	struct mp_err err;
	size_t size;
	bool fits;

	map.pieces = malloc(map.nr_pieces * sizeof(*p));
	if (!map.pieces)
		return false;
	memcpy(map.pieces, t->map->pieces, map.nr_pieces * sizeof(*p));
	p = &map.pieces[a];
	at = p->old_vaddr;
	switch (draw(t, 6)) {
	case 0: p->old_vaddr = map.pieces[b].old_vaddr; break;
	case 1:
		p->old_vaddr = map.pieces[b].old_vaddr;
		map.pieces[b].old_vaddr = at;
		break;
	case 2: p->old_size += (uint32_t)draw(t, 8) - 4; break;
	case 3: p->new_size += (uint32_t)draw(t, 8) - 4; break;
	case 4: p->old_vaddr += draw(t, 32) - 16; break;
	default:
		p->old_vaddr = map.pieces[b].old_vaddr;
		p->old_size = map.pieces[b].old_size;
		break;
	}
	fits = !mp_map_encode(&map, &bytes, &size, &err) && size == note->size;
	if (fits)
		memcpy(t->changed + note->off, bytes, size);
	if (p->old_size == t->map->pieces[a].old_size && a != b) {
		const uint8_t *x = mp_elf_bytes(t->original, at, p->old_size);
		const uint8_t *y = mp_elf_bytes(t->original, p->old_vaddr, p->old_size);

		if (x && y && !memcmp(x, y, p->old_size))
			t->reason = same_code;
	}
	free(bytes);
	free(map.pieces);
	return fits;
}

/* Does the code before the padding at @off end in an instruction behind which control does not go on? */
static bool is_behind_end(const struct trial *t, uint64_t off)
{
	const struct me_owned *code = owner_at(t, off) - 1;
	struct mp_insn insn = {.kind = MP_INSN_OTHER};
	uint64_t at, end, start;

	if (!mp_elf_off_to_vaddr(t->output, code->end - 1, &end))
		return false;
	for (at = code_start(t, end++); at && at < end; at += insn.len)
		if (!mp_elf_vaddr_to_off(t->output, at, &start) ||
		    mp_insn_decode(t->output->data + start, t->output->size - start, at, &insn))
			return false;
	return at == end && (insn.kind == MP_INSN_JUMP || insn.kind == MP_INSN_IJUMP ||
			     insn.kind == MP_INSN_RET || insn.kind == MP_INSN_TRAP);
}

static bool change_padding(struct trial *t)
{
	uint64_t size = t->bytes[ME_OWNER_PADDING], off;

	if (!size)
		return false;
	off = byte_of(t, ME_OWNER_PADDING, draw(t, size));
	t->reason = is_behind_end(t, off) ? not_reached : NULL;
	for (uint64_t end = owner_at(t, off)->end; off < end && draw(t, 8); off++)
		t->changed[off] = draw(t, 2) ? 0xcc : 0x90;
	return true;
}

/* One of the words of @size bytes in the sections that @want wants. Return: its offset; 0: none. */
static uint64_t any_word(struct trial *t, bool (*want)(const struct mp_section *), uint64_t size)
{
	for (int tries = 0; tries < 64; tries++) {
		const struct mp_section *sec =
			&t->output->sections[draw(t, t->output->nr_sections)];

		if (sec->type != SHT_NOBITS && sec->size >= size && want(sec))
			return sec->off + draw(t, sec->size / size) * size;
	}
	return 0;
}

static bool is_data(const struct mp_section *sec)
{
	return sec->flags & SHF_ALLOC && !(sec->flags & SHF_EXECINSTR) && sec->type != SHT_NOTE;
}

static bool is_dynamic(const struct mp_section *sec)
{
	return sec->type == SHT_DYNAMIC;
}

static bool is_relocation(const struct mp_section *sec)
{
	return sec->flags & SHF_ALLOC && (sec->type == SHT_RELA || sec->type == 19);
}

static bool is_symbols(const struct mp_section *sec)
{
	return sec->type == SHT_SYMTAB || sec->type == SHT_DYNSYM;
}

static bool is_note(const struct mp_section *sec)
{
	return sec->type == SHT_NOTE && strcmp(sec->name, MP_MAP_SECTION) != 0;
}

static bool put_word(struct trial *t, uint64_t off, uint64_t value, size_t size)
{
	if (!off || !memcmp(t->changed + off, &value, size))
		return false;
	memcpy(t->changed + off, &value, size);
	return true;
}

static uint64_t word_at(const struct trial *t, uint64_t off)
{
	uint64_t value;

	memcpy(&value, t->output->data + off, sizeof(value));
	return value;
}

static bool change_data(struct trial *t)
{
	uint64_t off = any_word(t, is_data, 8), to = any_place(t);

	if (!off)
		return false;
	t->reason = same_place(t, word_at(t, off), to) ? any_copy : NULL;
	return put_word(t, off, draw(t, 2) ? to : other_value(t, word_at(t, off)),
			draw(t, 2) ? 4 : 8);
}

static bool change_dynamic(struct trial *t)
{
	uint64_t off = any_word(t, is_dynamic, 8);

	return off && put_word(t, off, other_value(t, word_at(t, off)), 8);
}

static bool change_relocation(struct trial *t)
{
	uint64_t off = any_word(t, is_relocation, 8), to = any_place(t);

	if (!off)
		return false;
	if (draw(t, 2))
		return put_word(t, off, other_value(t, word_at(t, off)), 8);
	t->reason = same_place(t, word_at(t, off), to) ? any_copy : NULL;
	return put_word(t, off, to, 8);
}

static bool change_symbol(struct trial *t)
{
	uint64_t off = any_word(t, is_symbols, 8);

	if (!off)
		return false;
	if (is_size_of_symbol(t, off, ".symtab") || is_size_of_symbol(t, off, ".dynsym"))
		t->reason = me_owner_freedom(ME_OWNER_SYMBOLS);
	return put_word(t, off, draw(t, 4) ? other_value(t, word_at(t, off)) : any_place(t), 8);
}

static bool change_note(struct trial *t)
{
	uint64_t off = any_word(t, is_note, 4);

	if (!off)
		return false;
	if (owner_at(t, off)->owner == ME_OWNER_BUILD_ID)
		t->reason = me_owner_freedom(ME_OWNER_BUILD_ID);
	return put_word(t, off, other_value(t, word_at(t, off)), 4);
}

/* Does a header or a symbol name the section by its number? */
static bool has_name_by_number(const struct trial *t, uint64_t section)
{
	const struct mp_elf *n = t->output;
	bool found = section == n->ehdr.e_shstrndx;

	for (uint32_t i = 0; i < n->nr_sections; i++) {
		const struct mp_section *sec = &n->sections[i];

		found |= sec->link == section ||
			 (sec->flags & SHF_INFO_LINK && sec->info == section);
	}
	for (uint32_t i = 0; i < n->nr_symbols; i++)
		found |= n->symbols[i].shndx == section;
	return found;
}

/* A field of the ELF header, of a program header or of a section header; or two headers are exchanged. */
static bool change_header(struct trial *t)
{
	const Elf64_Ehdr *eh = &t->output->ehdr;
	uint64_t table = eh->e_phoff, size = sizeof(Elf64_Phdr), nr = eh->e_phnum, a, b;

	if (draw(t, 8) == 0)
		return put_word(t, 1 + draw(t, sizeof(*eh) - 8), me_next_random(&t->random),
				1 + draw(t, 8));
	if (draw(t, 2)) {
		table = eh->e_shoff;
		size = sizeof(Elf64_Shdr);
		nr = t->output->nr_sections;
	}
	a = table + draw(t, nr) * size;
	b = table + draw(t, nr) * size;
	if (draw(t, 8) == 0) {
		memcpy(t->changed + a, t->output->data + b, size);
		memcpy(t->changed + b, t->output->data + a, size);
		if (table == eh->e_shoff && !has_name_by_number(t, (a - table) / size) &&
		    !has_name_by_number(t, (b - table) / size))
			t->reason = no_numbers;
		return memcmp(t->changed + a, t->output->data + a, size);
	}
	a += draw(t, size / 8) * 8;
	if (table == eh->e_shoff && is_free_field(t, a))
		t->reason = me_owner_freedom(ME_OWNER_SHDRS);
	return put_word(t, a, other_value(t, word_at(t, a)), draw(t, 2) ? 4 : 8);
}

static const struct change {
	const char *name;
	bool (*make)(struct trial *t);
} changes[] = {
	{"branches", change_branch},
	{"conditions", change_condition},
	{"operands", change_operand},
	{"instructions", change_insn},
	{"patches", change_patch},
	{"pieces of the map", change_map},
	{"padding", change_padding},
	{"words of data", change_data},
	{"dynamic entries", change_dynamic},
	{"relocations", change_relocation},
	{"fields of symbols", change_symbol},
	{"notes", change_note},
	{"headers", change_header},
};

enum {
	NR_CHANGES = sizeof(changes) / sizeof(changes[0]),
	NR_REASONS = 8
};

struct tally {
	uint64_t tried, accepted[NR_REASONS];
	const char *reasons[NR_REASONS]; /* of @accepted; NULL: there is none */
};

/* Is every changed byte the original's again? */
static bool is_old_code(const struct trial *t)
{
	for (uint64_t i = 0; i < t->output->size; i++)
		if (t->changed[i] != t->output->data[i] &&
		    (i >= t->original->size || t->changed[i] != t->original->data[i]))
			return false;
	return true;
}

static void print_change(const struct trial *t, const char *name)
{
	uint64_t first = 0, end = t->output->size, vaddr = 0;

	while (t->changed[first] == t->output->data[first])
		first++;
	while (t->changed[end - 1] == t->output->data[end - 1])
		end--;
	mp_elf_off_to_vaddr(t->output, first, &vaddr);
	printf("accepted: %s, file offset %#" PRIx64 ", address %#" PRIx64 ":", name, first, vaddr);
	for (uint64_t i = first; i < end && i < first + 16; i++)
		printf(" %02x", t->output->data[i]);
	printf(" became");
	for (uint64_t i = first; i < end && i < first + 16; i++)
		printf(" %02x", t->changed[i]);
	printf("\n");
}

/* Counts what was accepted by its reason. A kind of change has few. */
static void count(struct tally *tally, const char *reason)
{
	size_t i = 0;

	while (i < NR_REASONS - 1 && tally->accepted[i] && tally->reasons[i] != reason)
		i++;
	tally->reasons[i] = reason;
	tally->accepted[i]++;
}

static void print_tally(const char *name, const struct tally *tally)
{
	for (size_t i = 0; i < NR_REASONS && (tally->accepted[i] || (!i && tally->tried)); i++)
		printf("%s: %" PRIu64 " %" PRIu64 "%s%s\n", name, i ? 0 : tally->tried,
		       tally->accepted[i], tally->accepted[i] ? ": " : "",
		       !tally->accepted[i] ? ""
		       : tally->reasons[i] ? tally->reasons[i]
					   : "?");
}

static int make_changes(struct trial *t, uint64_t nr)
{
	struct tally tallies[NR_CHANGES] = {0};
	uint64_t tries = 50 * nr;
	int rc = 0;

	for (uint64_t i = 0; rc != -ENOMEM && i < nr && tries; tries--) {
		uint32_t k = (uint32_t)draw(t, NR_CHANGES);

		t->reason = NULL;
		if (changes[k].make(t) &&
		    memcmp(t->changed, t->output->data, t->output->size) != 0) {
			rc = verify(t);
			i++;
			tallies[k].tried++;
			if (!rc && !t->reason && is_old_code(t))
				t->reason = old_code;
			if (!rc)
				count(&tallies[k], t->reason);
			if (!rc && !t->reason) {
				print_change(t, changes[k].name);
				t->nr_bad++;
			}
		}
		memcpy(t->changed, t->output->data, t->output->size);
	}
	for (int k = 0; k < NR_CHANGES; k++)
		print_tally(changes[k].name, &tallies[k]);
	return rc == -ENOMEM ? rc : 0;
}

static int open_all(struct trial *t, char **argv, struct mp_err *err)
{
	int rc = mp_elf_open(argv[1], MP_ELF_ALL, &t->original, err);

	if (!rc)
		rc = mp_elf_open(argv[2], MP_ELF_ALL, &t->output, err);
	if (!rc)
		rc = mp_map_read(t->output, &t->map, err);
	if (!rc)
		rc = me_verify_owners(t->original, t->output, &t->owned, &t->nr_owned, err);
	if (rc)
		return rc;
	t->changed = malloc(t->output->size + 8);
	if (!t->changed)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(t->changed, t->output->data, t->output->size);
	return 0;
}

int main(int argc, char **argv)
{
	struct mp_err err = {""};
	struct trial t = {0};
	int rc;

	if (argc < 5) {
		fprintf(stderr, "usage: mutate-output ORIGINAL OUTPUT BYTES CHANGES [SEED]\n");
		return 2;
	}
	t.random = argc > 5 ? strtoull(argv[5], NULL, 10) << 32 : 0;
	rc = open_all(&t, argv, &err);
	if (!rc)
		rc = replace_bytes(&t, strtoull(argv[3], NULL, 10));
	if (!rc)
		rc = make_changes(&t, strtoull(argv[4], NULL, 10));
	if (rc)
		fprintf(stderr, "mutate-output: %s\n", *err.msg ? err.msg : strerror(-rc));
	for (int i = 0; !rc && i < ME_NR_OWNERS; i++)
		if (t.tried[i])
			printf("%s: %" PRIu64 " %" PRIu64 "%s%s\n", me_owner_name(i), t.tried[i],
			       t.accepted[i], t.accepted[i] ? ": " : "",
			       t.accepted[i] ? me_owner_freedom(i) ? me_owner_freedom(i) : "?"
					     : "");
	mp_map_free(t.map);
	mp_elf_close(t.output);
	mp_elf_close(t.original);
	free(t.owned);
	free(t.changed);
	return rc || t.nr_bad;
}
