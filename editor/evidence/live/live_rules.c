// SPDX-License-Identifier: Apache-2.0
#include "editor/evidence/live/live_rules.h"

#include <errno.h>
#include <string.h>

#include "editor/evidence/import_use.h"
#include "editor/evidence/patch_fit.h"

/* The words of a table that the loader relocates are data of the process. */
static bool is_constant(const struct mp_elf *elf, const struct mp_table *table)
{
	const struct mp_section *sec = mp_elf_section_at(elf, table->vaddr);

	if (!sec || sec->flags & SHF_WRITE)
		return false;
	for (uint32_t e = 0; table->kind == MP_TABLE_ABS64 && e < table->nr_entries; e++)
		if (mp_elf_dyn_reloc_at(elf, table->vaddr + 8 * (uint64_t)e))
			return false;
	return true;
}

/* Relocations would tell which values of labels may change, but a running process holds old ones. */
static void keep_tables(struct mp_cfg *cfg)
{
	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		if (!is_constant(cfg->elf, &cfg->tables[t]) ||
		    (cfg->elf->relinkable && cfg->tables[t].labels))
			cfg->tables[t].private_refs = false;
}

static void leave_alone(struct me_eligible *eligible, uint32_t func, const char *why)
{
	if (func == MP_NONE || eligible->verdict[func] != ME_ELIGIBLE)
		return;
	eligible->verdict[func] = ME_REFUSED_ASKED;
	eligible->detail[func] = why;
	eligible->nr_eligible--;
}

/*
 * The loader tells by the return address which file asks: which library is the next one, say. It does not know copies.
 */
static int leave_askers(const struct mp_cfg *cfg, struct me_eligible *eligible, struct mp_err *err)
{
	static const char *const names[] = {"dlsym", "dlvsym", "dlopen", "dlmopen"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct me_import_use use;

		me_import_use_find(cfg, names[n], &use);
		if (use.unknown)
			return mp_err_set(
				err, EPERM,
				"for a running process: it uses %s() in a way that is not "
				"understood",
				names[n]);
		for (uint32_t i = 0; i < use.nr_users; i++)
			leave_alone(eligible, use.users[i],
				    "calls a function of the loader that looks who calls");
	}
	return 0;
}

/* The function that unwinders ask for unwind information is changed itself in a live process. */
static void leave_lookup(const struct mp_cfg *cfg, struct me_eligible *eligible)
{
	for (uint32_t i = 0; i < cfg->elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &cfg->elf->symbols[i];

		if (sym->dynamic && sym->shndx != SHN_UNDEF && sym->name &&
		    !strcmp(sym->name, "_dl_find_object"))
			leave_alone(eligible, mp_cfg_func_at(cfg, sym->vaddr),
				    "unwinders ask it where a copy is described");
	}
}

/* A library, or a program that the loader starts: libc is a file of its own then. */
static bool is_dynamic(const struct mp_elf *elf)
{
	const struct mp_section *dynamic = mp_elf_section(elf, ".dynamic");
	const uint8_t *bytes = dynamic ? mp_elf_bytes(elf, dynamic->vaddr, dynamic->size) : NULL;
	Elf64_Dyn dyn;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_INTERP)
			return true;
	for (uint64_t at = 0; bytes && at + sizeof(dyn) <= dynamic->size; at += sizeof(dyn)) {
		memcpy(&dyn, bytes + at, sizeof(dyn));
		if (dyn.d_tag == DT_FLAGS_1 && dyn.d_un.d_val & DF_1_PIE)
			return false;
	}
	return bytes && elf->ehdr.e_type == ET_DYN;
}

static bool has_eh_frame_hdr(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

int me_live_restrict(struct mp_cfg *cfg, struct me_eligible *eligible, struct mp_err *err)
{
	if (!has_eh_frame_hdr(cfg->elf) || !is_dynamic(cfg->elf))
		return mp_err_set(
			err, EPERM,
			"for a running process: it is statically linked, and its unwinder "
			"would not know the copies");
	me_patch_keep_returns(cfg);
	me_patch_keep_entries(cfg);
	keep_tables(cfg);
	leave_lookup(cfg, eligible);
	return leave_askers(cfg, eligible, err);
}
