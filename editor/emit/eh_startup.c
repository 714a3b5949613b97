// SPDX-License-Identifier: Apache-2.0
/*
 * eh_startup - recognises crtbeginT.o's functions in .init_array and .fini_array:
 *
 *	mov $FUNCTION, %eax	weak: 0 if the program has no unwinder
 *	test %rax, %rax
 *	je ...
 *	mov $LABEL, %edi	the operand to change
 *	call FUNCTION
 *
 * Other instructions may lie between. Both functions must be there and name the same label.
 */
#include "editor/emit/eh_startup.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libprof/elf/eh.h"
#include "libprof/insn/insn.h"

enum {
	MAX_INSNS = 24, /* these functions are short */
	MOV_EAX = 0xb8,
	MOV_EDI = 0xbf,
};

/*
 * Return: the address of the operand that names the label; 0 if the code at @at is not
 * such a function.
 */
static uint64_t read_function(const struct mp_elf *elf, const struct mp_section *eh_frame,
			      uint64_t at, uint64_t *label)
{
	uint64_t weak = 0, field = 0;

	for (int i = 0; i < MAX_INSNS; i++) {
		uint64_t avail = 15;
		const uint8_t *bytes = mp_elf_bytes(elf, at, avail);
		struct mp_insn insn;
		uint32_t word = 0;

		if (!bytes || !mp_elf_is_code(elf, at) || mp_insn_decode(bytes, avail, at, &insn))
			return 0;
		if (insn.len == 5)
			memcpy(&word, bytes + 1, sizeof(word));
		if (insn.len == 5 && bytes[0] == MOV_EAX)
			weak = word;
		if (insn.len == 5 && bytes[0] == MOV_EDI) {
			field = at + 1;
			*label = word;
		}
		if (insn.kind == MP_INSN_CALL) {
			if (field && insn.target == weak &&
			    *label - eh_frame->vaddr < eh_frame->size)
				return field;
			field = weak = 0;
		}
		if (mp_insn_ends_block(&insn) && insn.kind != MP_INSN_COND)
			return 0;
		at += insn.len;
	}
	return 0;
}

/* Return: true if exactly one function of section @name is such a function. */
static bool read_array(const struct mp_elf *elf, const char *name,
		       const struct mp_section *eh_frame, uint64_t *field, uint64_t *label)
{
	const struct mp_section *array = mp_elf_section(elf, name);
	const uint8_t *words = array ? mp_elf_bytes(elf, array->vaddr, array->size) : NULL;
	uint32_t nr = 0;

	for (uint64_t off = 0; words && off + 8 <= array->size; off += 8) {
		uint64_t function, found, named = 0;

		memcpy(&function, words + off, sizeof(function));
		found = read_function(elf, eh_frame, function, &named);
		if (!found)
			continue;
		nr++;
		*field = found;
		*label = named;
	}
	return nr == 1;
}

int me_eh_startup_find(const struct mp_elf *elf, struct me_eh_startup *out)
{
	const struct mp_section *eh_frame = mp_elf_section(elf, ".eh_frame");
	uint64_t back = 0;

	*out = (struct me_eh_startup){0};
	if (!eh_frame || elf->ehdr.e_type != ET_EXEC)
		return -ENOENT;
	if (!read_array(elf, ".init_array", eh_frame, &out->fields[0], &out->label) ||
	    !read_array(elf, ".fini_array", eh_frame, &out->fields[1], &back) || back != out->label)
		return -ENOENT;
	return 0;
}

/* The label that code passes to the unwinder; 0: there is none. */
static uint64_t find_label(const struct mp_elf *elf)
{
	const struct mp_section *old = mp_elf_section(elf, ".eh_frame");
	struct me_eh_startup found;

	if (!elf->relinkable)
		return me_eh_startup_find(elf, &found) ? 0 : found.label;
	for (uint32_t i = 0; old && i < elf->nr_relocs; i++) {
		const struct mp_reloc *r = &elf->relocs[i];
		uint64_t to = r->sym_value + (uint64_t)r->addend;

		if (to - old->vaddr < old->size && mp_elf_is_code(elf, r->vaddr))
			return to;
	}
	return 0;
}

size_t me_eh_startup_offset(const struct mp_elf *elf, const uint8_t *bytes, size_t size)
{
	uint64_t label = find_label(elf);
	struct mp_cursor first, cur;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;
	size_t off = 0;
	bool sized;

	if (!label || !mp_eh_frame_find(elf, &first, &sized))
		return 0;
	cur = first;
	while (cur.p < cur.end && cur.vaddr < label && off + 4 <= size) {
		int kind = mp_eh_next(&cur, &first, &cie, &fde);
		uint32_t length;

		if (kind < 0)
			return 0;
		/* FDEs of code that the linker dropped were not copied. */
		if (!kind || (kind == 2 && (!fde.start || !fde.size)))
			continue;
		memcpy(&length, bytes + off, sizeof(length));
		off += 4 + (size_t)length;
	}
	return off < size ? off : 0;
}
