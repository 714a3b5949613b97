// SPDX-License-Identifier: Apache-2.0
/*
 * elf - an x86-64 ELF file, checked once, then read as plain arrays.
 * Every offset and size was checked against the file, so later code may index @data without
 * further checks. elf reads code only to recognise personality routines and the program's
 * start (insn and cfg decode the rest), and of unwind information the bounds of FDEs.
 */
#ifndef MP_ELF_H
#define MP_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"

/* 2^24 pieces take some 80 MiB. Larger map notes are neither written nor read. */
#define MP_ELF_MAX_MAP_NOTE (128u << 20)
/* The section of that note (libprof/note/map.h). */
#define MP_MAP_SECTION ".note.morph"
/* A section without bytes: the output may be put into processes that run already. */
#define MP_LIVE_SECTION ".morph.live"

struct mp_section {
	const char *name;
	uint32_t type;	/* SHT_* */
	uint64_t flags; /* SHF_*; without SHF_ALLOC if no segment loads the bytes */
	uint64_t vaddr, off, size, entsize, align;
	uint32_t link, info;
};

struct mp_symbol {
	uint64_t vaddr, size;
	const char *name;
	uint8_t type, bind, other; /* STT_*, STB_*, st_other */
	uint16_t shndx;
	bool dynamic;	/* from .dynsym, not .symtab */
	uint32_t index; /* index in its own table */
};

struct mp_fde {
	uint64_t start, size; /* vaddr range that the FDE covers */
	uint64_t lsda;	      /* vaddr of the LSDA; 0: none */
	uint64_t personality; /* vaddr of the routine, or of the pointer to it; 0: none */
	/*
	 * Name of the routine, if symbols or relocations tell; NULL: none or not known.
	 * Needs MP_ELF_ALL.
	 */
	const char *personality_name;
	uint64_t fde_vaddr; /* address of the FDE's length field */
	uint64_t cie_vaddr;
	bool personality_indirect; /* @personality is the address of a pointer to the routine */
	bool signal_frame;	   /* augmentation S */
};

/* One relocation that --emit-relocs kept, or a dynamic one (@dynamic). Sorted by vaddr. */
struct mp_reloc {
	uint64_t vaddr;	    /* address of the field */
	uint64_t sym_value; /* st_value of the symbol; 0 if undefined */
	int64_t addend;
	uint32_t type;	    /* R_X86_64_* */
	uint32_t sym;	    /* index in the symbol table of the relocation section; 0: none */
	uint16_t sym_shndx; /* SHN_UNDEF: target in another module */
	bool dynamic;
};

struct mp_elf {
	char *path;
	/*
	 * The whole file, mapped privately and read-only. NULL if the file was opened for
	 * its id alone: nothing is mapped then, so that truncating the file cannot raise
	 * SIGBUS.
	 */
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr ehdr;
	Elf64_Phdr *phdrs;
	uint32_t nr_phdrs;
	struct mp_section *sections; /* [0] is the null section */
	uint32_t nr_sections;	     /* 0: no section headers (sstrip) */
	struct mp_symbol *symbols;   /* .symtab, then .dynsym: all entries, defined or not */
	uint32_t nr_symbols;
	struct mp_fde *fdes; /* sorted by start */
	uint32_t nr_fdes;
	uint64_t odd_fde; /* an FDE to which the search table does not lead, or not for all of its code; 0: none */
	struct mp_reloc *relocs; /* static ones (--emit-relocs) against SHF_ALLOC sections */
	uint32_t nr_relocs;
	struct mp_reloc *dyn_relocs; /* .rela.dyn, .rela.plt, DT_RELR expanded */
	uint32_t nr_dyn_relocs;
	uint64_t start;	 /* vaddr where the kernel enters the file; 0: nowhere, as in libraries */
	bool relinkable; /* .rela.text present: linked with --emit-relocs */
	bool has_symtab; /* not stripped */
	struct mp_id id;
	/* The whole section .note.morph in private memory (map reads it); NULL: none. */
	const uint8_t *map_note;
	size_t map_note_size;
	struct mp_elf_private *private_data;
};

enum mp_elf_need {
	MP_ELF_ID = 0, /* headers, sections, id, map note: enough for the daemon */
	MP_ELF_SYMBOLS = 1 << 0,
	MP_ELF_FDES = 1 << 1,
	MP_ELF_RELOCS = 1 << 2,
	MP_ELF_ALL = 7,
	/*
	 * A file of debug information: its loaded parts are in another file. Program
	 * headers are not read, a section need not lie in a segment, and the id is the
	 * build-id alone.
	 */
	MP_ELF_DEBUG = 1 << 3,
	/*
	 * The code is not read, so that the id is the build-id alone. Such an id must not be compared by
	 * mp_id_equal().
	 */
	MP_ELF_UNHASHED = 1 << 4,
};

/*
 * mp_elf_open - maps @path and reads the parts in @need.
 * Refuses, with a message that names the file and the reason: not ELF, not x86-64, not
 * ET_EXEC or ET_DYN, truncated, tables out of bounds, over 2 GiB.
 * Return: 0, -errno of the file system, -ENOEXEC (no supported ELF file), -EBADMSG
 * (damaged).
 * Ownership: *@out is freed by mp_elf_close(), which takes NULL.
 */
int mp_elf_open(const char *path, unsigned int need, struct mp_elf **out, struct mp_err *err);
/* The same for bytes in memory (fuzzing, verify); @data must outlive the result. */
int mp_elf_open_memory(const char *name, const void *data, size_t size, unsigned int need,
		       struct mp_elf **out, struct mp_err *err);
/* The same for an open descriptor (e.g. /proc/PID/map_files); does not close @fd. */
int mp_elf_open_fd(const char *name, int fd, unsigned int need, struct mp_elf **out,
		   struct mp_err *err);
/*
 * The same with MP_ELF_ID, for a regular file of @size bytes. It only calls pread(), so
 * that a confined process may use it.
 */
int mp_elf_open_sized(const char *name, int fd, uint64_t size, struct mp_elf **out,
		      struct mp_err *err);
/*
 * mp_elf_copy - a writable copy of the file's first @size bytes. Pages of a mapped file
 * take memory only when they are written.
 * Return: NULL if out of memory, @size is 0 or larger than the file. Ownership: munmap() of
 * @size bytes.
 */
uint8_t *mp_elf_copy(const struct mp_elf *elf, size_t size);
/*
 * mp_elf_find_changed - sets the bit of each page of @copy, of @size bytes by mp_elf_copy(), that
 * differs from the file. Other pages, and those of @elf, are given back to the system: a later
 * read loads them again. @changed: a bit for each MP_ELF_PAGE bytes, all 0.
 */
void mp_elf_find_changed(const struct mp_elf *elf, uint8_t *copy, size_t size, uint64_t *changed);
#define MP_ELF_PAGE 4096
/*
 * Returns the memory of the mapped pages to the system; a later read loads them again.
 * NULL: does nothing.
 */
void mp_elf_drop_pages(const struct mp_elf *elf);
/* The same for the pages of @size bytes at @bytes, which lie in elf->data. */
void mp_elf_drop_bytes(const struct mp_elf *elf, const uint8_t *bytes, size_t size);
/*
 * A pass that reads this many bytes of a file should drop what it has read. Mapped pages are
 * memory of the process as long as they are mapped, although the page cache has them anyway.
 */
#define MP_ELF_READ_AT_ONCE (4u << 20)
/* Another owner of @elf: only the last mp_elf_close() frees it. Return: @elf. */
struct mp_elf *mp_elf_share(struct mp_elf *elf);
void mp_elf_close(struct mp_elf *elf);

const struct mp_section *mp_elf_section(const struct mp_elf *elf, const char *name);
/* The section with SHF_ALLOC that holds @vaddr, or NULL. */
const struct mp_section *mp_elf_section_at(const struct mp_elf *elf, uint64_t vaddr);
/*
 * Bytes [@vaddr, @vaddr + @len) as loaded from the file. NULL: unmapped, .bss, beyond the
 * file, or a file opened for its id alone.
 */
const uint8_t *mp_elf_bytes(const struct mp_elf *elf, uint64_t vaddr, size_t len);
/* True if @vaddr is inside a PF_X PT_LOAD. */
bool mp_elf_is_code(const struct mp_elf *elf, uint64_t vaddr);
/* True if @vaddr is inside a PT_LOAD without PF_W, or inside PT_GNU_RELRO. */
bool mp_elf_is_readonly(const struct mp_elf *elf, uint64_t vaddr);
/* Converts file offset <-> link-time address through PT_LOADs. Return: false if there is none. */
bool mp_elf_off_to_vaddr(const struct mp_elf *elf, uint64_t off, uint64_t *vaddr);
bool mp_elf_vaddr_to_off(const struct mp_elf *elf, uint64_t vaddr, uint64_t *off);
/* Static, and the loader's, relocations with vaddr in [start, end): *@n entries from the returned pointer. */
const struct mp_reloc *mp_elf_relocs_in(const struct mp_elf *elf, uint64_t start, uint64_t end,
					uint32_t *n);
const struct mp_reloc *mp_elf_dyn_relocs_in(const struct mp_elf *elf, uint64_t start, uint64_t end,
					    uint32_t *n);
/* The last FDE that begins at @vaddr or before; it may end before @vaddr. NULL: there is none. */
const struct mp_fde *mp_elf_fde_before(const struct mp_elf *elf, uint64_t vaddr);
/* The linker's or the loader's relocation of the field at @vaddr. NULL: there is none. */
const struct mp_reloc *mp_elf_reloc_at(const struct mp_elf *elf, uint64_t vaddr);
const struct mp_reloc *mp_elf_dyn_reloc_at(const struct mp_elf *elf, uint64_t vaddr);
/* Total bytes of executable PT_LOADs in the file: the text size in budgets. */
uint64_t mp_elf_text_size(const struct mp_elf *elf);

#endif
