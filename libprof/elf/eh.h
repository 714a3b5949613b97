// SPDX-License-Identifier: Apache-2.0
/*
 * eh - reads .eh_frame entries (CIE, FDE): bounds and pointers, not call-frame programs. Called by elf_fdes,
 * elf_relocs, libprof/unwind/ and the editor. Formats: LSB Core, "Exception Frames"; DWARF 4, 6.4.
 */
#ifndef MP_EH_H
#define MP_EH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/base/dwarf_cursor.h"
#include "libprof/base/err.h"

struct mp_eh_cie {
	uint64_t vaddr; /* address of the length field */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint64_t personality;	   /* 0: none; see personality_enc for the indirect bit */
	uint8_t personality_enc;   /* MP_EH_PE_OMIT: none */
	uint8_t fde_enc, lsda_enc; /* lsda_enc MP_EH_PE_OMIT: none */
	bool augmented;		   /* starts with z: FDEs have an augmentation length */
	bool signal_frame;
	const uint8_t *program; /* initial instructions */
	uint64_t program_vaddr;
	size_t program_size;
};

struct mp_eh_fde {
	uint64_t vaddr, start, size, lsda; /* lsda 0: none */
	const uint8_t *program;
	uint64_t program_vaddr;
	size_t program_size;
};

/*
 * mp_eh_next - reads the entry at @cur and moves @cur behind it. @first: the start of the
 * region.
 * Return: 1 a CIE, in @cie; 2 an FDE, in @fde, with its CIE in @cie; 0 the terminator (4
 * zero bytes); -EBADMSG damaged; -EOPNOTSUPP an entry with valid bounds but of an unknown
 * kind (augmentation, encoding): reading may go on behind it.
 */
int mp_eh_next(struct mp_cursor *cur, const struct mp_cursor *first, struct mp_eh_cie *cie,
	       struct mp_eh_fde *fde);

/*
 * Reads from @vaddr to the end of its PT_LOAD in the file. Return: false if nothing is
 * loaded there.
 */
bool mp_eh_cursor_at(const struct mp_elf *elf, uint64_t vaddr, struct mp_cursor *cur);

/*
 * Finds .eh_frame: the section, else through PT_GNU_EH_FRAME. @sized: the end is known, and
 * zero words before it are no end. Return: false if there is none.
 */
bool mp_eh_frame_find(const struct mp_elf *elf, struct mp_cursor *cur, bool *sized);

/*
 * The table of PT_GNU_EH_FRAME by which unwinders search for FDEs. What it does not lead to, libgcc does not find: lld's
 * has one row for each address, which may be that of an empty function in front of another one. Other unwinders, and
 * libgcc where the program itself registers .eh_frame, find it all the same.
 */
struct mp_eh_table {
	const uint8_t *rows; /* NULL: there is no such table */
	uint64_t hdr_vaddr;
	uint32_t nr;
	bool sorted;
};

void mp_eh_table_find(const struct mp_elf *elf, struct mp_eh_table *table);

/* Does the table lead to the FDE, which is not empty, from all of its code? True if there is no table. */
bool mp_eh_table_leads(const struct mp_eh_table *table, const struct mp_eh_fde *fde);

/* Reads the FDE at @fde_vaddr (of elf->fdes) again, with its CIE. Return: 0, -EBADMSG. */
int mp_eh_read_fde(const struct mp_elf *elf, uint64_t fde_vaddr, struct mp_eh_cie *cie,
		   struct mp_eh_fde *fde);

#endif
