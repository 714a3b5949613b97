// SPDX-License-Identifier: Apache-2.0
/* unwind_source - reads one FDE of the original with rows and exception table, or says why it
 * cannot. Called by unwind_run. */
#include <errno.h>
#include <string.h>

#include "editor/unwind/unwind_private.h"

static const char rust_personality[] = "rust_eh_personality";

/* In .symtab a version may follow the name: NAME@VERSION. */
static bool is_named(const char *name, const char *want)
{
	size_t len = strlen(want);

	return !strncmp(name, want, len) && (!name[len] || name[len] == '@');
}

/* These routines read the LSDA as lsda.h describes. Others may keep anything in it. */
static bool known_personality(const char *name)
{
	return name && (is_named(name, "__gxx_personality_v0") ||
			is_named(name, "__gcc_personality_v0") || is_named(name, rust_personality));
}

/* Versions of Rust's std disagree about a pc-relative base (lsda_put). */
static const char *check_rust(struct me_lsda *lsda)
{
	if (lsda->base_enc != MP_EH_PE_OMIT)
		return "LSDA of Rust with a landing pad base";
	lsda->from_start = true;
	return NULL;
}

/*
 * A register that the CIE does not mention has its caller's value, with or without
 * DW_CFA_same_value: so a copy's rows have one form of this. The return address has another rule.
 */
static void drop_same_values(const struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
			     struct mp_cfi_table *table)
{
	for (uint32_t i = 0; i < table->nr; i++)
		for (uint16_t reg = 0; reg < MP_CFI_NR_REGS; reg++)
			if (rules->rules[table->lines[i].row.regs[reg]].kind == MP_CFI_SAME &&
			    !table->initial.regs[reg] && reg != cie->ra_reg)
				table->lines[i].row.regs[reg] = 0;
}

const char *me_source_load(struct me_source *source, const struct mp_elf *elf,
			   struct mp_cfi_rules *rules, const struct mp_fde *listed)
{
	const char *why;
	int ret;

	source->listed = NULL;
	if (listed->signal_frame)
		return "signal frame";
	if (mp_eh_read_fde(elf, listed->fde_vaddr, &source->cie, &source->fde))
		return "unreadable CFI";
	ret = mp_cfi_expand(rules, &source->cie, &source->fde, &source->table);
	if (ret)
		return ret == -ENOMEM ? "out of memory" : "unreadable CFI";
	drop_same_values(rules, &source->cie, &source->table);
	if (source->cie.personality && !known_personality(listed->personality_name))
		return "unknown personality";
	if (source->fde.lsda) {
		if (!source->cie.personality)
			return "LSDA without a personality";
		why = me_lsda_read(elf, source->fde.lsda, source->fde.start, source->fde.size,
				   &source->lsda);
		if (!why && is_named(listed->personality_name, rust_personality))
			why = check_rust(&source->lsda);
		if (why)
			return why;
	}
	source->listed = listed;
	return NULL;
}

void me_source_fini(struct me_source *source)
{
	mp_cfi_table_fini(&source->table);
	me_lsda_fini(&source->lsda);
	source->listed = NULL;
}
