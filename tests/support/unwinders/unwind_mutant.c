// SPDX-License-Identifier: Apache-2.0
/* unwind_mutant - takes an output's unwind sections apart and writes them again. Called by tests of verify. */
#include "tests/support/unwinders/unwind_mutant.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unwinders/unwinder_bytes.h"
#include "tests/support/unwinders/unwinders.h"

uint32_t unwind_step_size(const uint8_t *p, uint32_t len)
{
	struct bytes b = {.p = p, .end = p + len};
	uint8_t op = bytes_u8(&b);

	switch (op & 0xc0 ? op & 0xc0 : op) {
	case 0x00:
	case 0x40:
	case 0xc0:
	case 0x0a:
	case 0x0b: break;
	case 0x02: bytes_skip(&b, 1); break;
	case 0x03: bytes_skip(&b, 2); break;
	case 0x04: bytes_skip(&b, 4); break;
	case 0x80:
	case 0x06 ... 0x08:
	case 0x0d:
	case 0x0e:
	case 0x13:
	case 0x2e: bytes_uleb(&b); break;
	case 0x05:
	case 0x09:
	case 0x0c:
	case 0x11:
	case 0x12:
	case 0x14:
	case 0x15:
	case 0x2f:
		bytes_uleb(&b);
		bytes_uleb(&b);
		break;
	case 0x10:
	case 0x16: bytes_uleb(&b); /* fall through */
	case 0x0f: bytes_skip(&b, bytes_uleb(&b)); break;
	default: return 0;
	}
	return b.bad ? 0 : (uint32_t)(b.p - p);
}

static uint32_t program_size(const uint8_t *p, uint32_t len)
{
	uint32_t at = 0, end = 0, step;

	while (at < len) {
		step = unwind_step_size(p + at, len - at);
		if (!step)
			return len;
		at += step;
		if (p[at - step])
			end = at;
	}
	return end;
}

static void read_cie(struct bytes *b, struct mutant_entry *e)
{
	e->is_cie = true;
	e->lsda_enc = e->personality_enc = 0xff;
	e->version = bytes_u8(b);
	for (size_t i = 0; i < sizeof(e->letters); i++) {
		e->letters[i] = (char)bytes_u8(b);
		if (!e->letters[i])
			break;
	}
	e->code_align = bytes_uleb(b);
	e->data_align = bytes_sleb(b);
	e->ra = bytes_u8(b);
	bytes_uleb(b);
	for (const char *letter = e->letters + 1; *letter; letter++) {
		if (*letter == 'R') {
			e->fde_enc = bytes_u8(b);
		} else if (*letter == 'L') {
			e->lsda_enc = bytes_u8(b);
		} else if (*letter == 'P') {
			e->personality_enc = bytes_u8(b);
			e->personality = bytes_pointer_at(b, e->personality_enc & 0x7f, 0);
		}
	}
}

static void read_fde(struct bytes *b, const struct mutant_entry *cie, struct mutant_entry *e)
{
	e->start = bytes_pointer_at(b, cie->fde_enc, 0);
	e->size = bytes_fixed(b, 4);
	if (bytes_uleb(b))
		e->lsda = bytes_pointer_at(b, cie->lsda_enc, 0);
}

static bool add(struct unwind_mutant *m, struct mutant_entry e)
{
	if (m->nr == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 64;
		m->entries = reallocarray(m->entries, m->cap, sizeof(*m->entries));
		if (!m->entries)
			return false;
	}
	m->entries[m->nr++] = e;
	return true;
}

static bool read_all(struct unwind_mutant *m, const struct mp_section *sec)
{
	struct unwinder_image image = {.elf = m->good};
	struct bytes b = unwinder_bytes_at(&image, sec->vaddr);
	uint64_t start = b.vaddr;

	while (!b.bad) {
		struct mutant_entry e = {.padding = UINT32_MAX, .put_at = b.vaddr - start};
		uint32_t size = bytes_u32(&b), id;
		struct bytes body = b;

		if (!size)
			break;
		bytes_skip(&b, size);
		body.end = b.p;
		id = bytes_u32(&body);
		if (!id) {
			read_cie(&body, &e);
		} else {
			uint64_t at = body.vaddr - 4 - id - start;

			while (e.cie < m->nr && m->entries[e.cie].put_at != at)
				e.cie++;
			if (e.cie == m->nr)
				return false;
			read_fde(&body, &m->entries[e.cie], &e);
		}
		if (body.bad)
			return false;
		e.program = (uint8_t *)(uintptr_t)body.p;
		e.len = program_size(body.p, (uint32_t)(body.end - body.p));
		if (body.end - body.p - e.len >= 4) /* an assembler's, of the runtime */
			e.padding = (uint32_t)(body.end - body.p) - e.len;
		if (!add(m, e))
			return false;
	}
	return !b.bad;
}

bool unwind_mutant_init(struct unwind_mutant *m, const struct mp_elf *good)
{
	const struct mp_section *eh = mp_elf_section(good, ".eh_frame");
	const struct mp_section *hdr = mp_elf_section(good, ".eh_frame_hdr");
	const struct mp_section *text = mp_elf_section(good, ".morph.text");

	*m = (struct unwind_mutant){.good = good};
	if (!eh || !hdr || !text || !read_all(m, eh))
		return false;
	m->copies = text->vaddr;
	memcpy(m->hdr, good->data + hdr->off, sizeof(m->hdr));
	m->nr_pristine = m->nr;
	m->pristine = calloc(m->nr, sizeof(*m->pristine));
	m->arena = malloc(MUTANT_ARENA);
	m->room = good->size + 2 * MUTANT_ARENA;
	m->bytes = malloc(m->room);
	if (!m->pristine || !m->arena || !m->bytes)
		return false;
	memcpy(m->pristine, m->entries, m->nr * sizeof(*m->entries));
	return true;
}

void unwind_mutant_fini(struct unwind_mutant *m)
{
	free(m->entries);
	free(m->pristine);
	free(m->arena);
	free(m->bytes);
	*m = (struct unwind_mutant){0};
}

void unwind_mutant_reset(struct unwind_mutant *m)
{
	m->nr = m->nr_pristine;
	memcpy(m->entries, m->pristine, m->nr * sizeof(*m->entries));
	memcpy(m->hdr, m->good->data + mp_elf_section(m->good, ".eh_frame_hdr")->off,
	       sizeof(m->hdr));
	m->arena_used = 0;
	m->change_table = NULL;
}

uint8_t *unwind_mutant_alloc(struct unwind_mutant *m, size_t size)
{
	if (size > MUTANT_ARENA - m->arena_used)
		abort();
	m->arena_used += size;
	return m->arena + m->arena_used - size;
}

void unwind_mutant_insert(struct unwind_mutant *m, uint32_t at, struct mutant_entry entry)
{
	if (!add(m, entry))
		abort();
	memmove(&m->entries[at + 1], &m->entries[at], (m->nr - 1 - at) * sizeof(entry));
	m->entries[at] = entry;
	for (uint32_t i = 0; i < m->nr; i++)
		if (!m->entries[i].is_cie && i != at && m->entries[i].cie >= at)
			m->entries[i].cie++;
}

/* ---- writing ------------------------------------------------------------------------------- */

struct out {
	uint8_t *start, *p;
	uint64_t vaddr; /* of @start */
};

static void put(struct out *o, uint64_t v, unsigned int size)
{
	memcpy(o->p, &v, size);
	o->p += size;
}

static void put_uleb(struct out *o, uint64_t v)
{
	do {
		put(o, (v & 0x7f) | (v > 0x7f ? 0x80 : 0), 1);
		v >>= 7;
	} while (v);
}

static void put_sleb(struct out *o, int64_t v)
{
	for (; v < -64 || v > 63; v >>= 7)
		put(o, ((uint64_t)v & 0x7f) | 0x80, 1);
	put(o, (uint64_t)v & 0x7f, 1);
}

static unsigned int pointer_size(uint8_t enc)
{
	static const uint8_t sizes[16] = {8, 1, 2, 4, 8, 4, 4, 4, 4, 1, 2, 4, 8, 4, 4, 4};

	return sizes[enc & 0x0f];
}

static void put_pointer(struct out *o, uint64_t v, uint8_t enc)
{
	if (v && (enc & 0x70) == 0x10)
		v -= o->vaddr + (uint64_t)(o->p - o->start);
	put(o, v, pointer_size(enc));
}

static void put_cie(struct out *o, const struct mutant_entry *e)
{
	uint8_t *len;

	put(o, 0, 4);
	put(o, e->version, 1);
	memcpy(o->p, e->letters, strlen(e->letters) + 1);
	o->p += strlen(e->letters) + 1;
	put_uleb(o, e->code_align);
	put_sleb(o, e->data_align);
	put(o, e->ra, 1);
	len = o->p;
	put(o, 0, 1);
	for (const char *letter = e->letters + 1; e->letters[0] && *letter; letter++) {
		if (*letter == 'R')
			put(o, e->fde_enc, 1);
		if (*letter == 'L')
			put(o, e->lsda_enc, 1);
		if (*letter == 'P') {
			put(o, e->personality_enc, 1);
			put_pointer(o, e->personality, e->personality_enc);
		}
	}
	*len = (uint8_t)(o->p - len - 1);
}

static void put_fde(struct out *o, const struct unwind_mutant *m, const struct mutant_entry *e)
{
	const struct mutant_entry *cie = &m->entries[e->cie];
	bool lsda = strchr(cie->letters, 'L') && cie->lsda_enc != 0xff;

	put(o, (uint64_t)(o->p - o->start) - cie->put_at, 4);
	put_pointer(o, e->start, cie->fde_enc);
	put(o, e->size, pointer_size(cie->fde_enc));
	put_uleb(o, lsda ? pointer_size(cie->lsda_enc) : 0);
	if (lsda)
		put_pointer(o, e->lsda, cie->lsda_enc);
}

static void put_entries(struct out *o, struct unwind_mutant *m)
{
	for (uint32_t i = 0; i < m->nr; i++) {
		struct mutant_entry *e = &m->entries[i];
		uint8_t *start = o->p;
		uint32_t len;

		e->put_at = (uint64_t)(o->p - o->start);
		put(o, 0, 4);
		if (e->is_cie)
			put_cie(o, e);
		else
			put_fde(o, m, e);
		memcpy(o->p, e->program, e->len);
		o->p += e->len;
		if (e->padding == UINT32_MAX)
			while ((o->p - start) % 4)
				put(o, 0, 1);
		for (uint32_t k = 0; e->padding != UINT32_MAX && k < e->padding; k++)
			put(o, 0, 1);
		len = (uint32_t)(o->p - start) - 4;
		memcpy(start, &len, sizeof(len));
	}
	put(o, 0, 4);
}

struct line {
	uint64_t start, fde;
};

static int by_start(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool put_table(struct out *o, const struct unwind_mutant *m, uint64_t eh, uint64_t hdr)
{
	struct line *lines = calloc(m->nr + 1, sizeof(*lines));
	uint32_t nr = 0;
	uint8_t *table;

	if (!lines)
		return false;
	for (uint32_t i = 0; i < m->nr; i++)
		if (!m->entries[i].is_cie && m->entries[i].start && m->entries[i].size)
			lines[nr++] = (struct line){m->entries[i].start, eh + m->entries[i].put_at};
	if (nr)
		qsort(lines, nr, sizeof(*lines), by_start);
	memcpy(o->p, m->hdr, sizeof(m->hdr));
	o->p += sizeof(m->hdr);
	put(o, eh - (hdr + 4), 4);
	put(o, nr, 4);
	table = o->p - 8;
	for (uint32_t i = 0; i < nr; i++) {
		put(o, lines[i].start - hdr, 4);
		put(o, lines[i].fde - hdr, 4);
	}
	free(lines);
	if (m->change_table)
		m->change_table(table, nr, m->table_how);
	return true;
}

static void align(struct out *o, uint64_t to)
{
	while ((o->vaddr + (uint64_t)(o->p - o->start)) % to)
		put(o, 0, 1);
}

/* New places of the sections behind the segment, and of the section headers */
static void move_headers(struct unwind_mutant *m, uint64_t end, uint64_t by)
{
	Elf64_Ehdr *ehdr = (void *)m->bytes;
	Elf64_Shdr *sh;

	if (ehdr->e_shoff >= end)
		ehdr->e_shoff += by;
	sh = (void *)(m->bytes + ehdr->e_shoff);
	for (unsigned int i = 1; i < ehdr->e_shnum; i++)
		if (sh[i].sh_offset >= end && !(sh[i].sh_flags & SHF_ALLOC))
			sh[i].sh_offset += by;
}

static void set_section(struct unwind_mutant *m, uint64_t was, uint64_t off, uint64_t vaddr,
			uint64_t size)
{
	Elf64_Ehdr *ehdr = (void *)m->bytes;
	Elf64_Shdr *sh = (void *)(m->bytes + ehdr->e_shoff);

	for (unsigned int i = 1; i < ehdr->e_shnum; i++)
		if (sh[i].sh_addr == was && sh[i].sh_flags & SHF_ALLOC &&
		    sh[i].sh_addr >= m->copies) {
			sh[i].sh_offset = off;
			sh[i].sh_addr = vaddr;
			sh[i].sh_size = size;
			return;
		}
}

bool unwind_mutant_finish(struct unwind_mutant *m)
{
	const struct mp_section *eh = mp_elf_section(m->good, ".eh_frame");
	const struct mp_section *hdr = mp_elf_section(m->good, ".eh_frame_hdr");
	const struct mp_section *note = mp_elf_section(m->good, ".note.morph");
	uint64_t was_end = note->off + note->size, hdr_at, note_at, end, by;
	struct out o = {m->bytes + eh->off, m->bytes + eh->off, eh->vaddr};
	Elf64_Phdr *ph;
	size_t eh_size, hdr_size;

	memcpy(m->bytes, m->good->data, m->good->size);
	put_entries(&o, m);
	eh_size = (size_t)(o.p - o.start);
	align(&o, 8);
	hdr_at = (uint64_t)(o.p - o.start);
	if (!put_table(&o, m, eh->vaddr, eh->vaddr + hdr_at))
		return false;
	hdr_size = (size_t)(o.p - o.start) - hdr_at;
	align(&o, 8);
	note_at = (uint64_t)(o.p - o.start);
	if (hdr_at == hdr->vaddr - eh->vaddr && hdr_size == hdr->size && eh_size == eh->size &&
	    note_at <= note->vaddr - eh->vaddr) {
		memcpy(o.p, m->good->data + (o.p - m->bytes),
		       m->good->size - (size_t)(o.p - m->bytes));
		m->size = m->good->size;
		return true;
	}
	memcpy(o.p, m->good->data + note->off, note->size);
	o.p += note->size;
	end = (uint64_t)(o.p - m->bytes);
	by = end > was_end ? (end - was_end + 63) & ~63ull : -((was_end - end) & ~63ull);
	if (m->good->size + by > m->room)
		return false;
	memset(o.p, 0, was_end + by - end);
	memcpy(m->bytes + was_end + by, m->good->data + was_end, m->good->size - was_end);
	m->size = m->good->size + by;
	move_headers(m, was_end, by);
	set_section(m, note->vaddr, eh->off + note_at, eh->vaddr + note_at, note->size);
	set_section(m, hdr->vaddr, eh->off + hdr_at, eh->vaddr + hdr_at, hdr_size);
	set_section(m, eh->vaddr, eh->off, eh->vaddr, eh_size);
	ph = (void *)(m->bytes + m->good->ehdr.e_phoff);
	for (unsigned int i = 0; i < m->good->nr_phdrs; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr <= m->copies &&
		    m->copies - ph[i].p_vaddr < ph[i].p_filesz) {
			if (ph[i].p_offset + ph[i].p_filesz != was_end)
				return false;
			ph[i].p_filesz = ph[i].p_memsz = end - ph[i].p_offset;
		}
		if (ph[i].p_type != PT_GNU_EH_FRAME)
			continue;
		ph[i].p_offset = eh->off + hdr_at;
		ph[i].p_vaddr = ph[i].p_paddr = eh->vaddr + hdr_at;
		ph[i].p_filesz = ph[i].p_memsz = hdr_size;
	}
	return true;
}
