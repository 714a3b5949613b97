// SPDX-License-Identifier: Apache-2.0
/*
 * eh - .eh_frame entries (CIE, FDE) and the pointer encodings of exception tables.
 *
 * Bounds and pointers only; call-frame programs are interpreted by the editor. Called by
 * elf_fdes and by the editor's unwind. Formats: LSB Core, "Exception Frames"; DWARF 4, 6.4.
 */
#ifndef MP_EH_H
#define MP_EH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf.h"
#include "libprof/err.h"

#define MP_EH_PE_OMIT	  0xff
#define MP_EH_PE_ABSPTR	  0x00
#define MP_EH_PE_ULEB128  0x01
#define MP_EH_PE_UDATA2	  0x02
#define MP_EH_PE_UDATA4	  0x03
#define MP_EH_PE_UDATA8	  0x04
#define MP_EH_PE_SLEB128  0x09
#define MP_EH_PE_SDATA2	  0x0a
#define MP_EH_PE_SDATA4	  0x0b
#define MP_EH_PE_SDATA8	  0x0c
#define MP_EH_PE_PCREL	  0x10
#define MP_EH_PE_DATAREL  0x30
#define MP_EH_PE_FUNCREL  0x40
#define MP_EH_PE_INDIRECT 0x80

/* Bytes that are read front to back; @vaddr is where @p is loaded. A read beyond @end sets
 * @failed and gives 0, so that a parser may check once at its end. */
struct mp_eh_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr;
	bool failed;
};

uint8_t mp_eh_u8(struct mp_eh_cursor *cur);
uint16_t mp_eh_u16(struct mp_eh_cursor *cur);
uint32_t mp_eh_u32(struct mp_eh_cursor *cur);
uint64_t mp_eh_u64(struct mp_eh_cursor *cur);
uint64_t mp_eh_uleb(struct mp_eh_cursor *cur);
int64_t mp_eh_sleb(struct mp_eh_cursor *cur);
void mp_eh_skip(struct mp_eh_cursor *cur, uint64_t n);
/*
 * An encoded pointer; @datarel is the base of MP_EH_PE_DATAREL (.eh_frame_hdr's address). A stored
 * 0 means "none" and stays 0 whatever it is relative to. The indirect bit is not followed: the
 * result is then the address of the pointer.
 */
uint64_t mp_eh_pointer(struct mp_eh_cursor *cur, uint8_t enc, uint64_t datarel);
/* Bytes of a pointer with a fixed size, 0 for LEB128, omitted or unknown ones. */
unsigned int mp_eh_pointer_size(uint8_t enc);

struct mp_eh_cie {
	uint64_t vaddr; /* of the length field */
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
 * The entry at @cur: moves @cur behind it.
 * Return: 1 CIE in @cie, 2 FDE: its CIE (looked up behind @first, the region's start) in @cie and
 * itself in @fde, 0 terminator (4 zero bytes), -EBADMSG damaged. An entry that is well bounded but
 * of a kind not known (augmentation, encoding) gives -EOPNOTSUPP; reading may go on behind it.
 */
int mp_eh_next(struct mp_eh_cursor *cur, const struct mp_eh_cursor *first, struct mp_eh_cie *cie,
	       struct mp_eh_fde *fde);

/* From @vaddr to the end of its PT_LOAD in the file. Return: false where nothing is loaded. */
bool mp_eh_cursor_at(const struct mp_elf *elf, uint64_t vaddr, struct mp_eh_cursor *cur);

/* Where .eh_frame is: the section, else through PT_GNU_EH_FRAME. @sized: its end is known, and
 * zero words before it do not end it. Return: false where there is none. */
bool mp_eh_frame_find(const struct mp_elf *elf, struct mp_eh_cursor *cur, bool *sized);

/* The FDE at @fde_vaddr (of elf->fdes) once more, with its CIE. Return: 0, -EBADMSG. */
int mp_eh_read_fde(const struct mp_elf *elf, uint64_t fde_vaddr, struct mp_eh_cie *cie,
		   struct mp_eh_fde *fde);

#endif
