// SPDX-License-Identifier: Apache-2.0
/* unwinders - finds FDEs and their CIEs as each unwinder does; unwinder_rows runs their programs. */
#include "tests/support/unwinders/unwinders.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unwinders/unwinder_bytes.h"

const char *const unwinder_names[NR_UNWINDERS] = {"libgcc", "LLVM's libunwind", "libunwind", "gdb"};

struct found_entry {
	uint64_t start, size, vaddr;
};

struct cie {
	struct bytes program;
	uint64_t code_align, ra, personality;
	int64_t data_align;
	uint8_t fde_enc, lsda_enc;
	bool z, signal, indirect;
	const char *dies;
};

struct bytes unwinder_bytes_at(const struct unwinder_image *image, uint64_t vaddr)
{
	struct bytes b = {.vaddr = vaddr, .base = image->base};
	const struct mp_section *sec = mp_elf_section_at(image->elf, vaddr);

	b.p = sec ? mp_elf_bytes(image->elf, vaddr, sec->vaddr + sec->size - vaddr) : NULL;
	b.end = b.p ? b.p + (sec->vaddr + sec->size - vaddr) : NULL;
	b.bad = !b.p;
	return b;
}

/* Letters behind z. libgcc and the older libunwind stop at an unknown one, LLVM's goes on. */
static void read_letters(enum unwinder who, struct bytes *b, const char *letter, struct cie *cie)
{
	for (; *letter && !b->bad; letter++) {
		uint8_t enc;

		switch (*letter) {
		case 'L': cie->lsda_enc = bytes_u8(b); break;
		case 'R': cie->fde_enc = bytes_u8(b); break;
		case 'P':
			enc = bytes_u8(b);
			cie->indirect = enc & 0x80;
			cie->personality = bytes_pointer(b, enc & 0x7f);
			break;
		case 'S': cie->signal = true; break;
		case 'B':
			if (who != UNWINDER_NONGNU)
				break;
			return;
		default:
			if (who != UNWINDER_LLVM)
				return;
		}
	}
}

static void read_cie(const struct unwinder_image *image, enum unwinder who, uint64_t vaddr,
		     struct cie *cie)
{
	struct bytes b = unwinder_bytes_at(image, vaddr);
	uint32_t size = bytes_u32(&b);
	uint8_t version;
	const char *letters;

	*cie = (struct cie){.lsda_enc = 0xff};
	if (b.bad || size < 4 || size > (uint64_t)(b.end - b.p)) {
		cie->dies = "a CIE outside of the section";
		return;
	}
	b.end = b.p + size;
	if (bytes_u32(&b)) {
		cie->dies = "no CIE";
		return;
	}
	version = bytes_u8(&b);
	letters = (const char *)b.p;
	while (bytes_u8(&b))
		;
	if (b.bad || (version != 1 && version != 3)) {
		cie->dies = "version of a CIE";
		return;
	}
	cie->code_align = bytes_uleb(&b);
	cie->data_align = bytes_sleb(&b);
	cie->ra = version == 1 ? bytes_u8(&b) : bytes_uleb(&b);
	if (*letters == 'z') {
		uint64_t len = bytes_uleb(&b);
		struct bytes data = b;

		bytes_skip(&b, len);
		cie->z = true;
		data.end = b.p;
		read_letters(who, &data, letters + 1, cie);
		b.bad |= data.bad;
	} else if (*letters) {
		cie->dies = "augmentation";
	}
	if (b.bad)
		cie->dies = "a CIE that is cut off";
	cie->program = b;
}

/* libgcc looks for the encoding of FDEs in a second way, when it searches the table. */
static uint8_t encoding_by_search(const struct unwinder_image *image, uint64_t cie_vaddr)
{
	struct bytes b = unwinder_bytes_at(image, cie_vaddr + 8);
	uint8_t version = bytes_u8(&b);
	const char *letter = (const char *)b.p;

	while (bytes_u8(&b))
		;
	if (b.bad || *letter != 'z')
		return 0;
	bytes_uleb(&b);
	bytes_sleb(&b);
	if (version == 1)
		bytes_u8(&b);
	else
		bytes_uleb(&b);
	bytes_uleb(&b);
	for (letter++;; letter++) {
		uint8_t enc;

		switch (*letter) {
		case 'R': return bytes_u8(&b);
		case 'P':
			enc = bytes_u8(&b);
			bytes_pointer(&b, enc & 0x0f);
			break;
		case 'L': bytes_u8(&b); break;
		case 'B': break;
		default: return 0;
		}
	}
}

/* Reads the FDE at @vaddr. Return: false: it does not cover @pc. */
static bool read_fde(const struct unwinder_image *image, enum unwinder who, uint64_t vaddr,
		     uint64_t pc, bool searched, struct found_frame *frame)
{
	struct bytes b = unwinder_bytes_at(image, vaddr);
	uint32_t size = bytes_u32(&b), id;
	uint64_t id_vaddr = b.vaddr;
	struct cie cie;

	frame->dies = NULL;
	frame->nr = 0;
	if (b.bad || size < 4 || size > (uint64_t)(b.end - b.p)) {
		frame->dies = "an FDE outside of the section";
		return true;
	}
	b.end = b.p + size;
	id = bytes_u32(&b);
	read_cie(image, who, id_vaddr - id, &cie);
	if (cie.dies) {
		frame->dies = cie.dies;
		return true;
	}
	frame->start = bytes_pointer(&b, cie.fde_enc);
	frame->size = bytes_pointer_at(&b, cie.fde_enc & 0x0f, 0);
	if (searched && who == UNWINDER_LIBGCC &&
	    encoding_by_search(image, id_vaddr - id) != cie.fde_enc)
		frame->dies = "libgcc finds two encodings of FDEs";
	if (pc - frame->start >= frame->size)
		return false;
	frame->lsda = 0;
	if (cie.z) {
		uint64_t len = bytes_uleb(&b);
		struct bytes data = b;

		bytes_skip(&b, len);
		data.end = b.p;
		if (cie.lsda_enc != 0xff)
			frame->lsda = bytes_pointer(&data, cie.lsda_enc);
		b.bad |= data.bad;
	}
	frame->personality = cie.personality;
	frame->indirect = cie.indirect;
	frame->signal = cie.signal;
	frame->ra = cie.ra;
	if (b.bad)
		frame->dies = "an FDE that is cut off";
	if (!frame->dies)
		unwinder_run(who, cie.program.p, (uint64_t)(cie.program.end - cie.program.p), b.p,
			     (uint64_t)(b.end - b.p), cie.code_align, cie.data_align, frame);
	return true;
}

/* ---- finding an FDE ------------------------------------------------------------------------ */

static int by_start(const void *a, const void *b)
{
	const struct found_entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Lists all FDEs in the order of their code. An entry of code that was dropped begins at 0. */
static bool read_entries(struct unwinder_image *image)
{
	struct bytes b = unwinder_bytes_at(image, image->eh_frame);
	struct found_frame frame = {0};
	uint32_t cap = 0;

	b.end = b.p ? b.p + (image->eh_frame_end - image->eh_frame) : NULL;
	while (b.p && b.end - b.p >= 8) {
		uint64_t vaddr = b.vaddr;
		uint32_t size = bytes_u32(&b), id;
		struct bytes entry = b;

		if (!size)
			continue;
		id = bytes_u32(&entry);
		bytes_skip(&b, size);
		if (b.bad)
			break;
		if (!id)
			continue;
		read_fde(image, UNWINDER_GDB, vaddr, 0, false, &frame);
		if (frame.dies || !frame.start || !frame.size)
			continue;
		if (image->nr_entries == cap) {
			cap = cap ? 2 * cap : 64;
			image->entries = reallocarray(image->entries, cap, sizeof(*image->entries));
			if (!image->entries)
				return false;
		}
		image->entries[image->nr_entries++] =
			(struct found_entry){frame.start, frame.size, vaddr};
	}
	found_frame_fini(&frame);
	if (image->nr_entries)
		qsort(image->entries, image->nr_entries, sizeof(*image->entries), by_start);
	return true;
}

bool unwinder_image_init(struct unwinder_image *image, const struct mp_elf *elf)
{
	const struct mp_section *sec = mp_elf_section(elf, ".eh_frame");

	*image = (struct unwinder_image){.elf = elf};
	if (!sec)
		return false;
	if (elf->ehdr.e_type == ET_DYN)
		image->base = 0x5555555540000000;
	image->eh_frame = sec->vaddr;
	image->eh_frame_end = sec->vaddr + sec->size;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			image->hdr = elf->phdrs[i].p_vaddr;
	return read_entries(image);
}

void unwinder_image_fini(struct unwinder_image *image)
{
	free(image->entries);
	*image = (struct unwinder_image){0};
}

uint64_t image_entry_start(const struct unwinder_image *image, uint32_t i)
{
	return image->entries[i].start;
}

static int32_t s32(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			 (uint32_t)p[3] << 24);
}

/* The last entry of the search table that begins at @pc or before. Return: false: there is no such table. */
static bool search_table(const struct unwinder_image *image, uint64_t pc, uint64_t *fde)
{
	struct bytes b = unwinder_bytes_at(image, image->hdr);
	uint8_t version = bytes_u8(&b), enc = bytes_u8(&b), count_enc = bytes_u8(&b),
		table_enc = bytes_u8(&b);
	uint64_t count;
	uint32_t lo = 0, hi;

	bytes_pointer(&b, enc);
	count = bytes_pointer_at(&b, count_enc, 0);
	if (b.bad || version != 1 || table_enc != 0x3b || count > (uint64_t)(b.end - b.p) / 8 ||
	    !count)
		return false;
	hi = (uint32_t)count;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (image->hdr + (uint64_t)(int64_t)s32(b.p + 8 * (uint64_t)mid) <= pc)
			lo = mid;
		else
			hi = mid;
	}
	*fde = image->hdr + (uint64_t)(int64_t)s32(b.p + 8 * (uint64_t)lo + 4);
	return image->hdr + (uint64_t)(int64_t)s32(b.p + 8 * (uint64_t)lo) <= pc;
}

static const struct found_entry *entry_at(const struct unwinder_image *image, uint64_t pc)
{
	uint32_t lo = 0, hi = image->nr_entries;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (image->entries[mid].start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &image->entries[lo - 1] : NULL;
}

bool unwinder_find(const struct unwinder_image *image, enum unwinder who, uint64_t vaddr,
		   struct found_frame *frame)
{
	const struct found_entry *entry;
	uint64_t fde;

	if (image->hdr && who != UNWINDER_GDB)
		return search_table(image, vaddr, &fde) &&
		       read_fde(image, who, fde, vaddr, true, frame);
	entry = entry_at(image, vaddr);
	return entry && read_fde(image, who, entry->vaddr, vaddr, false, frame);
}

void found_frame_fini(struct found_frame *frame)
{
	free(frame->rows);
	*frame = (struct found_frame){0};
}
