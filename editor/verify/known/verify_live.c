// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/known/verify_live.h"

void vf_find_live(struct vf *vf)
{
	if (!mp_elf_section(vf->o, MP_LIVE_SECTION))
		vf->now.live = mp_elf_section(vf->n, MP_LIVE_SECTION);
}

bool vf_is_live_section(const struct vf *vf, const struct mp_section *sec)
{
	return sec == vf->now.live && sec->type == SHT_PROGBITS && !sec->size && !sec->flags &&
	       !sec->vaddr && sec->align == 1 && !sec->link && !sec->info && !sec->entsize;
}

/* The loader looks at the return addresses of these calls. */
static int mark_askers(struct vf *vf)
{
	static const char *const names[] = {"dlsym", "dlvsym", "dlopen", "dlmopen"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct vf_uses uses = {0};

		vf_find_uses(vf, names[n], &uses);
		if (uses.unknown)
			return vf_refuse(vf, 0, "for a running process: uses of %s() are not known",
					 names[n]);
		for (uint32_t i = 0; i < uses.nr_users; i++)
			uses.users[i]->flags |= VF_FDE_ASKED;
	}
	return 0;
}

/* Also names of no type: assembly gives them to functions. */
static bool names_code(const struct vf *vf, const struct mp_symbol *sym)
{
	return (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC || sym->type == STT_NOTYPE) &&
	       sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS && vf_is_text(vf, sym->vaddr);
}

static int mark_entries(struct vf *vf)
{
	int ret = vf_bits_init(&vf->old.entries, vf->old.text_start, vf->old.text_end);

	for (uint32_t i = 0; !ret && i < vf->old.eh.nr_fdes; i++)
		if (vf_is_text(vf, vf->old.eh.fdes[i].start))
			vf_bits_set(&vf->old.entries, vf->old.eh.fdes[i].start);
	for (uint32_t i = 0; !ret && i < vf->o->nr_symbols; i++)
		if (names_code(vf, &vf->o->symbols[i]))
			vf_bits_set(&vf->old.entries, vf->o->symbols[i].vaddr);
	return ret;
}

int vf_mark_live(struct vf *vf)
{
	int ret = vf->now.live ? mark_entries(vf) : 0;

	if (ret || !vf->now.live)
		return ret;
	/* In a live process, unwinders' calls of this function are led to other code first. */
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		const struct mp_symbol *sym = &vf->o->symbols[i];
		struct vf_fde *fde;

		if (!sym->dynamic || sym->shndx == SHN_UNDEF || !sym->name ||
		    strcmp(sym->name, "_dl_find_object"))
			continue;
		fde = vf_eh_find(&vf->old.eh, sym->vaddr);
		if (fde)
			fde->flags |= VF_FDE_ASKED;
	}
	return mark_askers(vf);
}

bool vf_is_entry(const struct vf *vf, uint64_t at)
{
	return vf_bits_get(&vf->old.entries, at);
}

bool vf_returns_into(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end)
{
	uint64_t behind = fde->start + fde->size;

	while (at < end && at < behind) {
		const uint8_t *bytes = mp_elf_bytes(vf->o, at, 1);
		struct vf_insn insn;

		if (!bytes || !vf_decode(bytes, behind - at, at, &insn))
			return true;
		at += insn.len;
		if ((insn.kind == VF_CALL || insn.kind == VF_ICALL) && at < end)
			return true;
	}
	return false;
}

int vf_check_live(const struct vf *vf)
{
	if (vf->now.live && (vf->stubs.thread_state || vf->stubs.path_section ||
			     vf->stubs.audit_section || vf->stubs.call_section))
		return vf_refuse(vf, 0, "no output of this kind is for a running process");
	if (vf->now.live && vf->result->report.nr_pointers)
		return vf_refuse(
			vf, 0,
			"for a running process, but addresses of functions or labels changed");
	return 0;
}
