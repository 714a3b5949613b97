// SPDX-License-Identifier: Apache-2.0
/* unwind_source - reads one FDE of the original with rows and exception table, or says why it
 * cannot. Called by unwind_run. */
#include <errno.h>
#include <string.h>

#include "editor/unwind/unwind_private.h"

static const char rust_personality[] = "rust_eh_personality";
static const char c_personality[] = "__gcc_personality_v0";

/* In .symtab a version may follow the name: NAME@VERSION. */
static bool is_named(const char *name, const char *want)
{
	size_t len = strlen(want);

	return !strncmp(name, want, len) && (!name[len] || name[len] == '@');
}

/* These routines read the LSDA as lsda.h describes. Others may keep anything in it. */
static bool known_personality(const char *name)
{
	return name && (is_named(name, "__gxx_personality_v0") || is_named(name, c_personality) ||
			is_named(name, rust_personality));
}

static int refuse(const char **why, const char *reason)
{
	*why = reason;
	return -EPERM;
}

/*
 * A register that the CIE does not mention has its caller's value, with or without
 * DW_CFA_same_value: so a copy's rows have one form of this. The return address has another rule.
 */
static void drop_same_values(const struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
			     struct mp_cfi_table *table)
{
	bool any = false;

	for (uint32_t i = 0; !any && i < rules->nr; i++)
		any = rules->rules[i].kind == MP_CFI_SAME;
	for (uint32_t i = 0; any && i < table->nr; i++)
		for (uint16_t reg = 0; reg < MP_CFI_NR_REGS; reg++)
			if (rules->rules[table->lines[i].row.regs[reg]].kind == MP_CFI_SAME &&
			    !table->initial.regs[reg] && reg != cie->ra_reg)
				table->lines[i].row.regs[reg] = 0;
}

static int load_lsda(struct me_source *source, const struct mp_elf *elf, const char *personality,
		     const char **why)
{
	int rc;

	if (!source->cie.personality)
		return refuse(why, "LSDA without a personality");
	rc = me_lsda_read(elf, source->fde.lsda, source->fde.start, source->fde.size, &source->lsda,
			  why);
	source->lsda.baseless = is_named(personality, c_personality);
	if (rc || !is_named(personality, rust_personality))
		return rc;
	/* Versions of Rust's std disagree about a pc-relative base (lsda_put). */
	if (source->lsda.base_enc != MP_EH_PE_OMIT)
		return refuse(why, "LSDA of Rust with a landing pad base");
	source->lsda.from_start = true;
	return 0;
}

int me_source_load(struct me_source *source, const struct mp_elf *elf, struct mp_cfi_rules *rules,
		   const struct mp_fde *listed, const char **why)
{
	int rc;

	source->listed = NULL;
	if (listed->signal_frame)
		return refuse(why, "signal frame");
	if (mp_eh_read_fde(elf, listed->fde_vaddr, &source->cie, &source->fde))
		return refuse(why, "unreadable CFI");
	rc = mp_cfi_expand(rules, &source->cie, &source->fde, &source->table);
	if (rc)
		return rc == -ENOMEM ? rc : refuse(why, "unreadable CFI");
	drop_same_values(rules, &source->cie, &source->table);
	if (source->cie.personality && !known_personality(listed->personality_name))
		return refuse(why, "unknown personality");
	if (source->fde.lsda) {
		rc = load_lsda(source, elf, listed->personality_name, why);
		if (rc)
			return rc;
	}
	source->listed = listed;
	return 0;
}

void me_source_fini(struct me_source *source)
{
	mp_cfi_table_fini(&source->table);
	me_lsda_fini(&source->lsda);
	source->listed = NULL;
}
