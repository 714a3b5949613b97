// SPDX-License-Identifier: Apache-2.0
/*
 * eh - reads .eh_frame entries, every byte of which may be hostile; see eh.h.
 */
#include "libprof/elf/eh.h"

#include <errno.h>
#include <string.h>

#include "libprof/base/search.h"

static bool known_encoding(uint8_t enc)
{
	if (enc == MP_EH_PE_OMIT)
		return true;
	switch (enc & 0x0f) {
	case 0x05 ... 0x08:
	case 0x0d ... 0x0f: return false;
	}
	return (enc & 0x70) == 0 || (enc & 0x70) == MP_EH_PE_PCREL;
}

/* Reads the length and id fields. @body: the bytes behind the id, to the entry's end. */
static int entry_header(struct mp_cursor *cur, struct mp_cursor *body, uint64_t *id,
			uint64_t *id_vaddr)
{
	bool wide = false;
	uint64_t length;

	length = mp_cursor_u32(cur);
	if (cur->bad)
		return -EBADMSG;
	if (!length)
		return 0;
	if (length == 0xffffffff) {
		wide = true;
		length = mp_cursor_u64(cur);
	}
	*body = *cur;
	mp_cursor_skip(cur, length);
	if (cur->bad)
		return -EBADMSG;
	body->end = cur->p;
	*id_vaddr = body->vaddr;
	/* The id is as wide as the length, as binutils and elfutils read it. */
	*id = wide ? mp_cursor_u64(body) : mp_cursor_u32(body);
	return body->bad ? -EBADMSG : 1;
}

/*
 * Each letter once, in the order in which compilers write them. libgcc looks for the encoding of FDEs (R) in front of S
 * only.
 */
static bool in_order(const char *letters)
{
	const char *left = "PLRS";

	for (letters++; *letters; letters++) {
		left = strchr(left, *letters);
		if (!left)
			return false;
		left++;
	}
	return true;
}

static int parse_augmentation(struct mp_cursor *body, const char *letters, struct mp_eh_cie *cie)
{
	struct mp_cursor data;
	uint64_t size;

	size = mp_cursor_uleb(body);
	data = *body;
	mp_cursor_skip(body, size);
	if (body->bad)
		return -EBADMSG;
	data.end = body->p;
	cie->augmented = true;
	if (!in_order(letters))
		return -EOPNOTSUPP;
	for (const char *letter = letters + 1; *letter; letter++) {
		switch (*letter) {
		case 'R': cie->fde_enc = mp_cursor_u8(&data); break;
		case 'L': cie->lsda_enc = mp_cursor_u8(&data); break;
		case 'P':
			cie->personality_enc = mp_cursor_u8(&data);
			if (!known_encoding(cie->personality_enc))
				return -EOPNOTSUPP;
			cie->personality = mp_cursor_pointer(&data, cie->personality_enc, 0);
			break;
		default: cie->signal_frame = true;
		}
	}
	if (data.bad)
		return -EBADMSG;
	if (!known_encoding(cie->fde_enc) || cie->fde_enc == MP_EH_PE_OMIT ||
	    !known_encoding(cie->lsda_enc) || (cie->fde_enc & MP_EH_PE_INDIRECT))
		return -EOPNOTSUPP;
	return 0;
}

/* @body: behind the id field. */
static int parse_cie(struct mp_cursor *body, uint64_t vaddr, struct mp_eh_cie *cie)
{
	const uint8_t *letters;
	uint8_t version;
	int ret;

	*cie = (struct mp_eh_cie){
		.vaddr = vaddr,
		.personality_enc = MP_EH_PE_OMIT,
		.lsda_enc = MP_EH_PE_OMIT,
	};
	version = mp_cursor_u8(body);
	letters = body->p;
	while (mp_cursor_u8(body) && !body->bad)
		;
	if (body->bad)
		return -EBADMSG;
	/*
	 * A CIE is read again for each FDE that does not follow it closely. Limit its length, so
	 * that reading stays cheap for any input.
	 */
	if (body->p - letters > 16)
		return -EOPNOTSUPP;
	if (version != 1 && version != 3)
		return -EOPNOTSUPP;
	if (letters[0] && letters[0] != 'z')
		return -EOPNOTSUPP; /* such as "eh" of GCC 2 */
	cie->code_align = mp_cursor_uleb(body);
	cie->data_align = mp_cursor_sleb(body);
	cie->ra_reg = version == 1 ? mp_cursor_u8(body) : mp_cursor_uleb(body);
	if (letters[0]) {
		ret = parse_augmentation(body, (const char *)letters, cie);
		if (ret)
			return ret;
	}
	if (body->bad)
		return -EBADMSG;
	cie->program = body->p;
	cie->program_vaddr = body->vaddr;
	cie->program_size = (size_t)(body->end - body->p);
	return 0;
}

static int parse_fde(struct mp_cursor *body, uint64_t vaddr, const struct mp_eh_cie *cie,
		     struct mp_eh_fde *fde)
{
	struct mp_cursor data;
	uint64_t size;

	*fde = (struct mp_eh_fde){.vaddr = vaddr};
	fde->start = mp_cursor_pointer(body, cie->fde_enc, 0);
	/* The size has the format of the start, but no base. */
	fde->size = mp_cursor_pointer(body, cie->fde_enc & 0x0f, 0);
	if (cie->augmented) {
		size = mp_cursor_uleb(body);
		data = *body;
		mp_cursor_skip(body, size);
		if (body->bad)
			return -EBADMSG;
		data.end = body->p;
		fde->lsda = mp_cursor_pointer(&data, cie->lsda_enc, 0);
		if (data.bad)
			return -EBADMSG;
	}
	if (body->bad || fde->size > UINT64_MAX - fde->start)
		return -EBADMSG;
	fde->program = body->p;
	fde->program_vaddr = body->vaddr;
	fde->program_size = (size_t)(body->end - body->p);
	return 0;
}

/* Finds the CIE that an FDE's id field at @id_vaddr points back to. */
static int find_cie(const struct mp_cursor *first, uint64_t id_vaddr, uint64_t id,
		    struct mp_eh_cie *cie)
{
	struct mp_cursor cur = *first, body;
	uint64_t cie_vaddr, cie_id, cie_id_vaddr;
	int ret;

	if (id > id_vaddr - first->vaddr)
		return -EBADMSG;
	cie_vaddr = id_vaddr - id;
	if (cie->program && cie->vaddr == cie_vaddr)
		return 0; /* the CIE that was read last: most FDEs follow their CIE */
	cie->program = NULL;
	mp_cursor_skip(&cur, cie_vaddr - first->vaddr);
	ret = entry_header(&cur, &body, &cie_id, &cie_id_vaddr);
	if (ret <= 0 || cie_id)
		return -EBADMSG;
	return parse_cie(&body, cie_vaddr, cie);
}

int mp_eh_next(struct mp_cursor *cur, const struct mp_cursor *first, struct mp_eh_cie *cie,
	       struct mp_eh_fde *fde)
{
	struct mp_cursor body;
	uint64_t vaddr = cur->vaddr, id, id_vaddr;
	int ret;

	ret = entry_header(cur, &body, &id, &id_vaddr);
	if (ret <= 0)
		return ret;
	if (!id) {
		ret = parse_cie(&body, vaddr, cie);
		if (ret)
			cie->program = NULL;
		return ret ? ret : 1;
	}
	ret = find_cie(first, id_vaddr, id, cie);
	if (ret) {
		cie->program = NULL;
		return ret;
	}
	ret = parse_fde(&body, vaddr, cie, fde);
	return ret ? ret : 2;
}

bool mp_eh_cursor_at(const struct mp_elf *elf, uint64_t vaddr, struct mp_cursor *cur)
{
	for (uint32_t i = 0; elf->data && i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_LOAD || vaddr < phdr->p_vaddr ||
		    vaddr - phdr->p_vaddr >= phdr->p_filesz)
			continue;
		cur->p = elf->data + phdr->p_offset + (vaddr - phdr->p_vaddr);
		cur->end = elf->data + phdr->p_offset + phdr->p_filesz;
		cur->vaddr = vaddr;
		cur->bad = false;
		return true;
	}
	return false;
}

/* Reads the header of PT_GNU_EH_FRAME. @hdr then stands at the count; *@frame: the address of .eh_frame. */
static bool open_hdr(const struct mp_elf *elf, struct mp_cursor *hdr, uint8_t enc[3],
		     uint64_t *hdr_vaddr, uint64_t *frame)
{
	const Elf64_Phdr *phdr = NULL;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			phdr = &elf->phdrs[i];
	}
	if (!phdr)
		return false;
	hdr->p = mp_elf_bytes(elf, phdr->p_vaddr, phdr->p_filesz);
	if (!hdr->p)
		return false;
	hdr->end = hdr->p + phdr->p_filesz;
	hdr->vaddr = *hdr_vaddr = phdr->p_vaddr;
	hdr->bad = false;
	if (mp_cursor_u8(hdr) != 1)
		return false;
	for (int i = 0; i < 3; i++)
		enc[i] = mp_cursor_u8(hdr);
	*frame = mp_cursor_pointer(hdr, enc[0], phdr->p_vaddr);
	return !hdr->bad;
}

static bool find_through_hdr(const struct mp_elf *elf, struct mp_cursor *cur)
{
	uint64_t hdr_vaddr, vaddr;
	struct mp_cursor hdr;
	uint8_t enc[3];

	return open_hdr(elf, &hdr, enc, &hdr_vaddr, &vaddr) && vaddr &&
	       !(enc[0] & MP_EH_PE_INDIRECT) && mp_eh_cursor_at(elf, vaddr, cur);
}

/* Bytes of a row: where the code of an FDE starts, and the FDE, both relative to the header. */
#define ROW 8

static uint64_t row_word(const struct mp_eh_table *table, uint32_t row, unsigned int off)
{
	int32_t word;

	memcpy(&word, table->rows + (size_t)row * ROW + off, sizeof(word));
	return table->hdr_vaddr + (uint64_t)(int64_t)word;
}

void mp_eh_table_find(const struct mp_elf *elf, struct mp_eh_table *table)
{
	struct mp_cursor hdr;
	uint64_t frame;
	uint8_t enc[3];

	*table = (struct mp_eh_table){.sorted = true};
	if (!elf->data || !open_hdr(elf, &hdr, enc, &table->hdr_vaddr, &frame) ||
	    enc[1] != MP_EH_PE_UDATA4 || enc[2] != (MP_EH_PE_DATAREL | MP_EH_PE_SDATA4))
		return;
	table->nr = mp_cursor_u32(&hdr);
	if (hdr.bad || !table->nr || table->nr > (uint64_t)(hdr.end - hdr.p) / ROW)
		return;
	table->rows = hdr.p;
	for (uint32_t i = 1; i < table->nr; i++)
		table->sorted &= row_word(table, i - 1, 0) <= row_word(table, i, 0);
}

bool mp_eh_table_leads(const struct mp_eh_table *table, const struct mp_eh_fde *fde)
{
	uint32_t next;

	if (!table->rows)
		return true;
	/* If several rows have the same address, unwinders take the last of them. */
	next = mp_search(i, 0, table->nr, row_word(table, i, 0) <= fde->start);
	return next && row_word(table, next - 1, 4) == fde->vaddr &&
	       (next == table->nr || row_word(table, next, 0) >= fde->start + fde->size);
}

bool mp_eh_frame_find(const struct mp_elf *elf, struct mp_cursor *cur, bool *sized)
{
	const struct mp_section *sec = mp_elf_section(elf, ".eh_frame");

	*sized = false;
	if (!elf->data)
		return false;
	if (!sec || sec->type == SHT_NOBITS || !(sec->flags & SHF_ALLOC))
		return find_through_hdr(elf, cur);
	cur->p = elf->data + sec->off;
	cur->end = cur->p + sec->size;
	cur->vaddr = sec->vaddr;
	cur->bad = false;
	*sized = true;
	return true;
}

int mp_eh_read_fde(const struct mp_elf *elf, uint64_t fde_vaddr, struct mp_eh_cie *cie,
		   struct mp_eh_fde *fde)
{
	struct mp_cursor first, cur;
	bool sized;

	if (!mp_eh_frame_find(elf, &first, &sized) || fde_vaddr < first.vaddr)
		return -EBADMSG;
	cur = first;
	mp_cursor_skip(&cur, fde_vaddr - first.vaddr);
	cie->program = NULL;
	return mp_eh_next(&cur, &first, cie, fde) == 2 ? 0 : -EBADMSG;
}
