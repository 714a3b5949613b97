// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_file - compares the output's debug file with the original's: build-id, headers and
 * checksum must be those of the output, the rest as it was. verify calls it when the output is
 * proved.
 *
 * No run depends on this file, but a debugger would show wrong things with another program's.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/debug/verify_debug_file.h"
#include "editor/verify/debug/verify_debug_info.h"
#include "editor/verify/file/verify_rest.h"
#include "editor/verify/file/verify_symbols.h"

static int check_ehdr(const struct vf *vf)
{
	Elf64_Ehdr a = vf->o->ehdr, b = vf->n->ehdr;

	a.e_shoff = b.e_shoff;
	a.e_shnum = b.e_shnum;
	a.e_shstrndx = b.e_shstrndx;
	a.e_phoff = sizeof(Elf64_Ehdr);
	a.e_phentsize = sizeof(Elf64_Phdr);
	a.e_phnum = (uint16_t)vf->program->nr_phdrs;
	if (memcmp(&a, &b, sizeof(a)))
		return vf_refuse(vf, 0, "ELF header changed beyond its tables");
	vf_own(vf, 0, sizeof(b), ME_OWNER_EHDR);
	return 0;
}

/* File offset up to which headers and notes stand where the program has them. */
static uint64_t kept_end(const struct vf *vf, uint64_t end)
{
	for (uint32_t i = 1; i < vf->n->nr_sections; i++) {
		const struct mp_section *b = &vf->n->sections[i];
		const struct mp_section *own = mp_elf_section_at(vf->program, b->vaddr);

		if (!(b->flags & SHF_ALLOC) || b->type != SHT_NOTE)
			continue;
		if (!own || own->vaddr != b->vaddr || own->off != b->off || b->off < end)
			break;
		end = b->off + b->size;
	}
	return end;
}

/* Each header must be the program's, but covers only those bytes that this file has. */
static int check_phdrs(struct vf *vf)
{
	const struct mp_elf *program = vf->program;
	uint64_t end = sizeof(Elf64_Ehdr) + program->nr_phdrs * sizeof(Elf64_Phdr), kept;

	vf->old.alloc_end = end;
	if (end > vf->n->size)
		return vf_refuse(vf, 0, "program headers are cut off");
	kept = kept_end(vf, end);
	for (uint32_t i = 0; i < program->nr_phdrs; i++) {
		Elf64_Phdr a = program->phdrs[i];
		bool first = a.p_type == PT_LOAD && a.p_offset == 0 && a.p_filesz >= kept;
		bool whole = (a.p_type == PT_NOTE || a.p_type == PT_PHDR ||
			      a.p_type == PT_GNU_PROPERTY) &&
			     a.p_offset + a.p_filesz <= kept;

		if (first) {
			a.p_filesz = kept;
		} else if (!whole) {
			a.p_offset = a.p_align > 1 ? a.p_vaddr % a.p_align : 0;
			a.p_filesz = 0;
		}
		if (memcmp(&a, vf->n->data + sizeof(Elf64_Ehdr) + i * sizeof(a), sizeof(a)))
			return vf_refuse(vf, a.p_vaddr, "program header %u is not the program's",
					 i);
	}
	vf_own(vf, sizeof(Elf64_Ehdr), end - sizeof(Elf64_Ehdr), ME_OWNER_PHDRS);
	return 0;
}

static int check_debug_file(struct vf *vf)
{
	int ret = check_ehdr(vf);

	if (!ret)
		ret = check_phdrs(vf);
	if (!ret)
		ret = vf_read_sections(vf);
	if (!ret)
		ret = vf_check_sections(vf);
	if (!ret)
		ret = vf_check_debug_info(vf);
	if (!ret)
		ret = vf_check_symbols(vf);
	if (!ret)
		ret = vf_check_owned(vf);
	free(vf->now.section);
	vf_owned_fini(vf->owned);
	return ret;
}

int vf_check_debug(const struct vf *vf)
{
	struct vf_owned owned = {0};
	struct mp_err why = {""};
	struct vf debug;
	int ret;

	if (!vf->debug)
		return 0;
	debug = (struct vf){
		.o = vf->debug->original,
		.n = vf->debug->output,
		.program = vf->n,
		.code = vf,
		.err = &why,
		.result = vf->result,
		.marks = vf->marks,
		.refusals = vf->refusals,
		.owned = &owned,
		.map = vf->map,
		.now = {.segment = vf->now.segment,
			.moved = vf->now.moved,
			.text = mp_elf_section(vf->debug->output, ".morph.text")},
	};
	ret = check_debug_file(&debug);
	return ret == -EBADMSG ? mp_err_set(vf->err, EBADMSG, "debug file: %s", why.msg) : ret;
}
