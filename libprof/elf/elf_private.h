// SPDX-License-Identifier: Apache-2.0
/*
 * elf_private - data and functions that the parts of elf share: the source of bytes, and
 * lookup indexes.
 * Included by libprof/elf/elf*.c and libprof/elf/id.c only.
 */
#ifndef MP_ELF_PRIVATE_H
#define MP_ELF_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

/*
 * Larger counts are damage or malice, not programs. The limits bound the memory that a file
 * can make us allocate. The largest browsers stay below a tenth of each.
 */
#define MP_ELF_MAX_SIZE	    (2ull << 30)
#define MP_ELF_MAX_SECTIONS (1u << 17)
/* The kernel starts no program with more. All sections are compared with all segments. */
#define MP_ELF_MAX_PHDRS (65536u / sizeof(Elf64_Phdr))
/* Sections may overlap; they have at most so many times the file's bytes, so that reading them takes linear time. */
#define MP_ELF_MAX_OVERLAP    4u
#define MP_ELF_MAX_SHSTRTAB   (16u << 20)
#define MP_ELF_MAX_SYMBOLS    (1u << 24)
#define MP_ELF_MAX_RELOCS     (1u << 25)
#define MP_ELF_MAX_DYN_RELOCS (1u << 23)
#define MP_ELF_MAX_FDES	      (1u << 24)
#define MP_ELF_MAX_NOTES      (1u << 20)

struct mp_elf_private {
	unsigned int nr_others; /* owners besides the first */
	int fd;			/* -1: the bytes are in elf->data */
	int copy_fd;		/* descriptor of a mapped file, for further mappings; -1: none */
	bool copied;		/* a copy by mp_elf_copy() is no mapping of the file */
	void *map;		/* mp_elf_close() unmaps this */
	size_t map_size;
	char *shstrtab;
	uint8_t *map_note;
	Elf64_Phdr *loads; /* the PT_LOADs alone, ascending p_vaddr */
	uint32_t nr_loads;
	uint32_t main_load;	  /* the largest PT_LOAD: lookups try it first */
	uint32_t *alloc_sections; /* SHF_ALLOC section indexes, ascending vaddr */
	uint32_t nr_alloc_sections;
};

/* Copies file bytes from memory or the descriptor. Return: 0, -EBADMSG beyond the end, -errno. */
int mp_elf_read(const struct mp_elf *elf, uint64_t off, size_t size, void *buf, struct mp_err *err);
/* True if [@off, @off + @size) lies in the file. */
bool mp_elf_in_file(const struct mp_elf *elf, uint64_t off, uint64_t size);

/* Sets elf->start if the entry point is code that the kernel enters. */
void mp_elf_find_start(struct mp_elf *elf);
/* @hash: also hash the code. */
int mp_elf_read_id(struct mp_elf *elf, bool hash, struct mp_err *err);
int mp_elf_read_symbols(struct mp_elf *elf, struct mp_err *err);
int mp_elf_read_relocs(struct mp_elf *elf, struct mp_err *err);
int mp_elf_read_fdes(struct mp_elf *elf, struct mp_err *err);
/* To be called after symbols, relocations and FDEs are read. */
void mp_elf_name_personalities(struct mp_elf *elf);
/* Name of entry @index of .dynsym; NULL: there is none. */
const char *mp_elf_dynamic_name(const struct mp_elf *elf, uint32_t index);
/* ---- elf_personality_code.c ---- */
/*
 * Name of the personality routine at @vaddr, recognised by its code; @of is one FDE that
 * uses it. NULL: not known.
 */
const char *mp_elf_personality_by_code(const struct mp_elf *elf, const struct mp_fde *of,
				       uint64_t vaddr);

#endif
