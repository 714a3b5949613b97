// SPDX-License-Identifier: Apache-2.0
/*
 * pointer - finds functions whose address stands only in places that can be changed. Called by
 * optimize. redirect chooses among them; patch and copy change the places.
 */
#include "editor/evidence/pointer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/enclosing.h"
#include "editor/evidence/label.h"
#include "editor/evidence/offset_base.h"
#include "editor/evidence/patch_fit.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/insn/insn.h"

struct finder {
	const struct mp_cfg *cfg;
	struct me_pointers *out;
	uint8_t *barred;		  /* per function */
	uint8_t *exported;		  /* per function: a dynamic symbol is its entry */
	const struct mp_table **switches; /* tables of offsets that only jumps use, by address */
	uint32_t nr_switches;
	struct me_offsets offsets; /* bases of offsets that no known jump uses */
	struct me_labels labels;
	uint32_t capacity;
	bool answers; /* about functions by their addresses: labels stay */
	bool failed;  /* out of memory */
};

static uint32_t entry_at(const struct finder *f, uint64_t vaddr)
{
	uint32_t func;

	if (!mp_elf_is_code(f->cfg->elf, vaddr))
		return MP_NONE;
	func = mp_cfg_func_at(f->cfg, vaddr);
	return func != MP_NONE && f->cfg->funcs[func].vaddr == vaddr ? func : MP_NONE;
}

static void bar(struct finder *f, uint32_t func)
{
	if (func != MP_NONE)
		f->barred[func] = 1;
}

/* Is the decoding of the code at @vaddr certain? Then its operands may be changed. */
static bool is_known_code(const struct finder *f, uint64_t vaddr)
{
	uint32_t block = mp_cfg_block_at(f->cfg, vaddr);

	return block != MP_NONE &&
	       (mp_cfg_block_is_sure(f->cfg, block) ||
		f->cfg->funcs[f->cfg->blocks[block].func].problem == MP_PROBLEM_UNRESOLVED_JUMP);
}

/* Does the code at @vaddr belong to the function that begins at @entry? */
static bool is_own_entry(const struct finder *f, uint64_t vaddr, uint64_t entry)
{
	const struct mp_fde *fde = mp_elf_fde_before(f->cfg->elf, vaddr);

	return mp_cfg_func_at(f->cfg, vaddr) == mp_cfg_func_at(f->cfg, entry) ||
	       (fde && fde->start == entry && vaddr - entry < fde->size);
}

static void add_site(struct finder *f, uint64_t vaddr, uint64_t target, enum me_site_kind kind)
{
	struct me_pointers *out = f->out;

	/*
	 * A function's own entry may be the base of a sum: in the large code model, code finds the GOT by its distance from
	 * the very instruction that takes this address.
	 */
	if (kind != ME_SITE_WORD && entry_at(f, target) != MP_NONE &&
	    mp_elf_is_code(f->cfg->elf, vaddr) && is_own_entry(f, vaddr, target))
		bar(f, entry_at(f, target));
	if (kind != ME_SITE_WORD && mp_elf_is_code(f->cfg->elf, vaddr) &&
	    !is_known_code(f, vaddr)) {
		bar(f, mp_cfg_func_at(f->cfg, target));
		me_labels_forbid(&f->labels, target);
		return;
	}
	if (mp_grow(out->sites, f->capacity, out->nr_sites + 1)) {
		f->failed = true;
		return;
	}
	out->sites[out->nr_sites++] = (struct me_site){vaddr, target, kind};
}

/* Unwind tables hold addresses of code, but programs do not take function addresses from them. */
static bool is_unwind_section(const struct mp_section *s)
{
	return !strcmp(s->name, ".eh_frame") || !strcmp(s->name, ".eh_frame_hdr") ||
	       !strncmp(s->name, ".gcc_except_table", sizeof(".gcc_except_table") - 1);
}

enum operand {
	OPERAND_BRANCH,
	OPERAND_LEA,
	OPERAND_OTHER
};

/* Kind of the instruction with a 4-byte pc-relative field at @field. The bytes decide, not the
 * relocation's type: relaxation changes the bytes alone. */
static enum operand operand_of(const uint8_t *field)
{
	if (field[-1] == 0xe8 || field[-1] == 0xe9)
		return OPERAND_BRANCH;
	if (field[-2] == 0x0f && (field[-1] & 0xf0) == 0x80)
		return OPERAND_BRANCH;
	if (field[-2] == 0x8d && (field[-1] & 0xc7) == 0x05)
		return OPERAND_LEA;
	return OPERAND_OTHER;
}

static void scan_relative_code(struct finder *f, const struct mp_reloc *r)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, r->vaddr - 2, 6);
	int32_t disp;
	uint64_t target;

	if (!bytes) {
		bar(f, mp_cfg_func_at(f->cfg, r->sym_value + r->addend));
		return;
	}
	memcpy(&disp, bytes + 2, sizeof(disp));
	target = r->vaddr + 4 + (int64_t)disp;
	switch (operand_of(bytes + 2)) {
	case OPERAND_BRANCH:
	case OPERAND_LEA: /* found by scan_leas() */ break;
	case OPERAND_OTHER:
		/* The instruction reads code as data, or has an immediate behind the
		 * displacement; or the field is an 8-byte offset. */
		bar(f, mp_cfg_func_at(f->cfg, target));
		bar(f, mp_cfg_func_at(f->cfg, r->sym_value + r->addend));
		bar(f, mp_cfg_func_at(f->cfg, r->sym_value + r->addend + 4));
		break;
	}
}

static int compare_tables(const void *a, const void *b)
{
	const struct mp_table *x = *(const struct mp_table *const *)a;
	const struct mp_table *y = *(const struct mp_table *const *)b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void collect_switches(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;

	f->switches = malloc((cfg->nr_tables + 1) * sizeof(*f->switches));
	f->failed = !f->switches;
	for (uint32_t t = 0; !f->failed && t < cfg->nr_tables; t++) {
		if (cfg->tables[t].kind == MP_TABLE_REL32 && cfg->tables[t].private_refs)
			f->switches[f->nr_switches++] = &cfg->tables[t];
	}
	if (f->nr_switches)
		qsort(f->switches, f->nr_switches, sizeof(*f->switches), compare_tables);
}

/* The table with an entry at @vaddr, or NULL. */
static const struct mp_table *switch_at(const struct finder *f, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, f->nr_switches, f->switches[i]->vaddr <= vaddr);

	if (!lo || (vaddr - f->switches[lo - 1]->vaddr) / 4 >= f->switches[lo - 1]->nr_entries)
		return NULL;
	return f->switches[lo - 1];
}

/* Bar every function that starts in [first, last]. */
static void bar_range(struct finder *f, uint64_t first, uint64_t last)
{
	uint32_t lo = mp_search(i, 0, f->cfg->nr_funcs, f->cfg->funcs[i].vaddr < first);

	for (; lo < f->cfg->nr_funcs && f->cfg->funcs[lo].vaddr <= last; lo++)
		bar(f, lo);
	me_labels_forbid_range(&f->labels, first, last);
}

/*
 * An offset in data that leads to code. In a switch's table it leads to a label. In other
 * tables, for example of offsets to functions, the base is not known, but lies in this section:
 * assemblers have no other way to write an offset with this relocation.
 */
static void scan_offset(struct finder *f, const struct mp_reloc *r, const struct mp_section *s)
{
	const struct mp_table *table = switch_at(f, r->vaddr);
	/* Always called, because a run of offsets may continue behind a known table. */
	uint64_t run = me_offset_base(&f->offsets, r->vaddr), base = table ? table->base : run;
	const uint8_t *bytes = base ? mp_elf_bytes(f->cfg->elf, r->vaddr, 4) : NULL;
	uint64_t value = r->sym_value + r->addend, before = r->vaddr - s->vaddr;
	int32_t word;

	if (bytes) {
		memcpy(&word, bytes, sizeof(word));
		bar(f, entry_at(f, base + (int64_t)word));
		/* If a switch leads to the label, too, either both change or none. */
		if (!table || !me_patch_leads_table(f->cfg, table))
			me_labels_forbid(&f->labels, base + (int64_t)word);
	} else {
		bar_range(f, value > before ? value - before : 0, value + (s->size - before));
	}
}

/* Does the loader fill the word with a dynamic symbol's value? Then it changes with the symbol. */
static bool is_filled_by_symbol(const struct finder *f, uint64_t vaddr)
{
	const struct mp_reloc *dynamic = mp_elf_dyn_reloc_at(f->cfg->elf, vaddr);

	return dynamic && dynamic->sym;
}

static void scan_reloc(struct finder *f, const struct mp_reloc *r)
{
	const struct mp_section *s = mp_elf_section_at(f->cfg->elf, r->vaddr);
	uint64_t value = r->sym_value + r->addend;

	if (!s || is_unwind_section(s))
		return;
	switch (r->type) {
	case R_X86_64_64:
		if (entry_at(f, value) != MP_NONE && !is_filled_by_symbol(f, r->vaddr))
			add_site(f, r->vaddr, value,
				 s->flags & SHF_EXECINSTR ? ME_SITE_ABS32 : ME_SITE_WORD);
		if (s->flags & SHF_EXECINSTR) { /* movabs: too rare for a kind of its own */
			bar(f, mp_cfg_func_at(f->cfg, value));
			me_labels_forbid(&f->labels, value);
		} else if (me_labels_may_change(&f->labels, value)) {
			add_site(f, r->vaddr, value, ME_SITE_WORD);
		}
		break;
	case R_X86_64_32:
	case R_X86_64_32S:
		if (entry_at(f, value) != MP_NONE || me_labels_may_change(&f->labels, value))
			add_site(f, r->vaddr, value, ME_SITE_ABS32);
		break;
	default:
		if (s->flags & SHF_EXECINSTR)
			scan_relative_code(f, r);
		else
			scan_offset(f, r, s);
		break;
	}
}

/* Does the block contain a lea with its displacement at @field? */
static bool is_lea_operand(const struct finder *f, uint32_t block, uint64_t field)
{
	const struct mp_block *b = &f->cfg->blocks[block];
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, b->vaddr, b->size);
	struct mp_insn insn;

	for (uint64_t off = 0; bytes && off < b->size && b->vaddr + off < field; off += insn.len) {
		if (mp_insn_decode(bytes + off, b->size - off, b->vaddr + off, &insn))
			return false;
		if (insn.rip_relative && insn.vaddr + insn.disp_off == field)
			return true;
	}
	return false;
}

/*
 * Assemblers resolve a lea of a function in the same section without a relocation, so the code
 * is searched. If the bytes of such a lea lie in code that was not decoded, the function is
 * left alone.
 */
static void scan_leas(struct finder *f, const struct mp_section *s)
{
	const uint8_t *start = mp_elf_bytes(f->cfg->elf, s->vaddr, s->size), *p = start;
	const uint8_t *end, *dropped = start;

	if (!start || s->size < 6)
		return;
	end = start + s->size - 6;
	while (p <= end && (p = memchr(p, 0x8d, (size_t)(end - p) + 1))) {
		uint64_t field = s->vaddr + (uint64_t)(p - start) + 2, target;
		uint32_t func, block;
		int32_t disp;

		p++;
		if (p - dropped >= MP_ELF_READ_AT_ONCE) {
			mp_elf_drop_pages(f->cfg->elf);
			dropped = p;
		}
		if ((*p & 0xc7) != 0x05)
			continue;
		memcpy(&disp, p + 1, sizeof(disp));
		target = field + 4 + (int64_t)disp;
		func = entry_at(f, target);
		if (func == MP_NONE)
			continue;
		block = mp_cfg_block_at(f->cfg, field);
		if (block == MP_NONE || !is_known_code(f, field))
			bar(f, func);
		else if (is_lea_operand(f, block, field))
			add_site(f, field, target, ME_SITE_REL32);
	}
}

static bool has_static_reloc(const struct finder *f, uint64_t vaddr)
{
	uint32_t nr;
	const struct mp_reloc *r = mp_elf_relocs_in(f->cfg->elf, vaddr, vaddr + 1, &nr);

	return nr > 0 && r->type == R_X86_64_64;
}

/* The linker made the GOT: its entries have no static relocations. */
static void scan_linker_made(struct finder *f)
{
	static const char *const tables[] = {".got", ".got.plt"};
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *r = &elf->dyn_relocs[i];
		uint32_t func = r->type == R_X86_64_RELATIVE ? entry_at(f, r->addend) : MP_NONE;

		if (r->type == R_X86_64_IRELATIVE)
			bar(f, mp_cfg_func_at(f->cfg, r->addend));
		if (func != MP_NONE && !has_static_reloc(f, r->vaddr))
			add_site(f, r->vaddr, r->addend, ME_SITE_WORD);
		if (func == MP_NONE && r->type == R_X86_64_RELATIVE &&
		    me_labels_may_change(&f->labels, (uint64_t)r->addend) &&
		    !has_static_reloc(f, r->vaddr))
			add_site(f, r->vaddr, (uint64_t)r->addend, ME_SITE_WORD);
	}
	/* In a program with fixed addresses these are plain words. */
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		const struct mp_section *s = mp_elf_section(elf, tables[t]);
		const uint8_t *bytes = s ? mp_elf_bytes(elf, s->vaddr, s->size) : NULL;

		for (uint64_t off = 0; bytes && off + 8 <= s->size; off += 8) {
			uint64_t word;

			memcpy(&word, bytes + off, 8);
			if (elf->ehdr.e_type == ET_EXEC)
				bar(f, entry_at(f, word));
		}
	}
}

/* Handle dynamic symbols: other files, and the loader, know functions by them. */
static void scan_dynamic_symbols(struct finder *f)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];
		uint32_t func;

		if (!sym->dynamic || sym->shndx == SHN_UNDEF)
			continue;
		func = entry_at(f, sym->vaddr);
		if (func == MP_NONE)
			continue;
		f->exported[func] = 1;
		if (sym->shndx >= SHN_LORESERVE ||
		    (sym->type != STT_FUNC && sym->type != STT_NOTYPE))
			bar(f, func);
	}
	/* An address relative to the symbol would not lead into the copy. */
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *r = &elf->dyn_relocs[i];

		if (r->sym && r->addend)
			bar(f, mp_cfg_func_at(f->cfg, r->sym_value));
	}
}

/*
 * A label at a function's start may mark the place and not the function: the bound of some
 * text, for example, used in differences. Its address stays.
 */
static void scan_labels(struct finder *f)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (!sym->dynamic && sym->type == STT_NOTYPE && sym->shndx != SHN_UNDEF)
			bar(f, entry_at(f, sym->vaddr));
	}
}

static bool is_text_bound(const char *name)
{
	static const char *const names[] = {"etext", "_etext", "__etext", "__executable_start"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		if (!strcmp(name, names[n]))
			return true;
	}
	return false;
}

/* Code that uses the bounds of the text may compare function addresses with them. */
static bool asks_for_text_bounds(const struct mp_elf *elf)
{
	for (uint32_t i = 0; !elf->relinkable && i < elf->nr_symbols; i++)
		if (elf->symbols[i].dynamic && is_text_bound(elf->symbols[i].name))
			return true;
	for (uint32_t i = 0; i < elf->nr_relocs; i++) {
		uint32_t sym = elf->relocs[i].sym;

		/* Static relocations name symbols of .symtab, which come first. */
		if (sym == 0 || sym >= elf->nr_symbols || elf->symbols[sym].dynamic)
			continue;
		if (is_text_bound(elf->symbols[sym].name))
			return true;
	}
	return false;
}

static int compare_sites(const void *a, const void *b)
{
	const struct me_site *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* May the address @target, of a function's entry or of a label, change? */
static bool may_change(const struct finder *f, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(f->cfg, target);

	if (f->cfg->funcs[func].vaddr == target)
		return f->out->functions[func] & ME_POINTERS_MAY_CHANGE;
	/* Without relocations, an offset in data may lead to this label, too: then it stays. */
	return !f->answers && me_labels_may_change(&f->labels, target) &&
	       (f->cfg->elf->relinkable || !mp_cfg_is_weak_target(f->cfg, target));
}

/* A larger gap before a function is not read. */
#define GAP_MAX 4096u

/*
 * Do bytes that are no padding stand right before the function at @vaddr? Whoever has its address may read them: hashes
 * of its type, which are checked before calls (-fsanitize=kcfi), or a table. The start-up files' code there ends in a
 * direct jump.
 */
static bool has_prefix(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);
	const struct mp_fde *fde = mp_elf_fde_before(elf, vaddr - 1);
	uint64_t at = sec ? sec->vaddr : vaddr, before = fde ? fde->start + fde->size : 0;
	const uint8_t *bytes;
	bool prefix = false;
	struct mp_insn insn;

	at = before > at ? before : at;
	if (at >= vaddr)
		return false;
	bytes = vaddr - at <= GAP_MAX ? mp_elf_bytes(elf, at, vaddr - at) : NULL;
	for (uint64_t k = 0; bytes && k < vaddr - at; k += insn.len) {
		bool known = !mp_insn_decode(bytes + k, vaddr - at - k, at + k, &insn);

		if (!bytes[k] || !known)
			insn.len = 1;
		if (known && insn.kind == MP_INSN_JUMP && mp_elf_is_code(elf, insn.target))
			prefix = false;
		else if (bytes[k] && bytes[k] != 0xcc && !(known && insn.nop))
			prefix = true;
	}
	return prefix || !bytes;
}

/* Compilers align functions to so many bytes, if nothing else is asked for. */
#define USUAL_ALIGN 16u
/* That of the section with copies: no copy is aligned to more. */
#define MAX_ALIGN_LOG2 6u

uint8_t me_pointer_align_log2(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);
	uint64_t most = sec && sec->align > USUAL_ALIGN ? sec->align : USUAL_ALIGN;
	uint8_t keep = 0;

	while (UINT64_C(1) << keep < most && !(vaddr >> keep & 1))
		keep++;
	return keep;
}

static void keep_what_may_change(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	struct me_pointers *out = f->out;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		if (!f->barred[i] && !(cfg->funcs[i].flags & MP_FUNC_IFUNC) &&
		    cfg->funcs[i].vaddr != cfg->elf->ehdr.e_entry &&
		    me_pointer_align_log2(cfg->elf, cfg->funcs[i].vaddr) <= MAX_ALIGN_LOG2 &&
		    !has_prefix(cfg->elf, cfg->funcs[i].vaddr))
			out->functions[i] |= ME_POINTERS_MAY_CHANGE;
		if (f->exported[i])
			out->functions[i] |= ME_POINTERS_EXPORTED;
	}
	for (uint32_t s = 0; s < out->nr_sites; s++) {
		if (may_change(f, out->sites[s].target))
			out->sites[nr++] = out->sites[s];
	}
	out->nr_sites = nr;
	if (nr)
		qsort(out->sites, nr, sizeof(*out->sites), compare_sites);
}

static void scan_code(struct finder *f)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		if (elf->sections[i].flags & SHF_EXECINSTR && elf->sections[i].type == SHT_PROGBITS)
			scan_leas(f, &elf->sections[i]);
	}
}

/* Add rip-relative operands with labels' addresses. Absolute ones have relocations. */
static void scan_labelled(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_label_refs; i++) {
		const struct mp_label_ref *ref = &cfg->label_refs[i];

		if (ref->rip_relative && me_labels_may_change(&f->labels, ref->target))
			add_site(f, ref->insn_vaddr + ref->field_off, ref->target, ME_SITE_REL32);
	}
}

static void find_all(struct finder *f)
{
	for (uint32_t i = 0; i < f->cfg->elf->nr_relocs; i++)
		scan_reloc(f, &f->cfg->elf->relocs[i]);
	scan_code(f);
	scan_linker_made(f);
	scan_dynamic_symbols(f);
	scan_labels(f);
	scan_labelled(f);
}

/* A word may hold the distance from itself to a function: a relative pointer, which leads to the old address. */
static void scan_own_distances(struct finder *f, const struct mp_section *s)
{
	const uint8_t *bytes = mp_elf_bytes(f->cfg->elf, s->vaddr, s->size);
	const struct mp_func *funcs = f->cfg->funcs;
	uint64_t low = funcs[0].vaddr, span = funcs[f->cfg->nr_funcs - 1].vaddr - low;

	for (uint64_t off = -s->vaddr & 3; bytes && off + 4 <= s->size; off += 4) {
		uint64_t to = s->vaddr + off;
		int32_t word;

		memcpy(&word, bytes + off, sizeof(word));
		to += (uint64_t)(int64_t)word;
		if (to - low <= span)
			bar(f, entry_at(f, to));
	}
}

/*
 * In a position-independent file without relocations: an exported function whose address no
 * code takes is known only by its dynamic symbols. Calls of it, also those through this file's
 * PLT, use them.
 */
static void find_exported(struct finder *f)
{
	const struct mp_cfg *cfg = f->cfg;

	scan_code(f);
	scan_linker_made(f);
	scan_labelled(f);
	for (uint32_t s = 1; cfg->nr_funcs && s < cfg->elf->nr_sections; s++) {
		const struct mp_section *sec = &cfg->elf->sections[s];

		if (sec->type == SHT_PROGBITS && sec->flags & SHF_ALLOC &&
		    !(sec->flags & SHF_EXECINSTR) && !is_unwind_section(sec))
			scan_own_distances(f, sec);
	}
	for (uint32_t s = 0; s < f->out->nr_sites; s++)
		bar(f, entry_at(f, f->out->sites[s].target));
	scan_dynamic_symbols(f);
	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		if (!f->exported[i])
			f->barred[i] = 1;
	/* Operands other than lea, and tables of offsets, name these. */
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY && cfg->blocks[b].flags & MP_BLOCK_NAMED)
			f->barred[cfg->blocks[b].func] = 1;
}

int me_pointers_find(const struct mp_cfg *cfg, struct me_pointers *out, struct mp_err *err)
{
	struct finder f = {.cfg = cfg, .out = out, .offsets = {.cfg = cfg}};
	bool relinkable = cfg->elf->relinkable;
	struct me_import_use asks;

	*out = (struct me_pointers){0};
	out->functions = calloc(cfg->nr_funcs + 1, 1);
	f.barred = calloc(cfg->nr_funcs + 1, 1);
	f.exported = calloc(cfg->nr_funcs + 1, 1);
	f.failed = !out->functions || !f.barred || !f.exported || me_labels_init(cfg, &f.labels);
	if (!f.failed)
		collect_switches(&f);
	f.answers = me_enclosing_answered(cfg, &asks);
	/* The table of answers has new addresses of exported functions alone. */
	if (!f.failed && (relinkable ? !f.answers : cfg->elf->ehdr.e_type == ET_DYN) &&
	    !asks_for_text_bounds(cfg->elf)) {
		if (relinkable)
			find_all(&f);
		else
			find_exported(&f);
		if (!f.failed)
			keep_what_may_change(&f);
	}
	free(f.barred);
	free(f.exported);
	free(f.switches);
	me_labels_fini(&f.labels);
	me_offsets_fini(&f.offsets);
	if (f.failed) {
		me_pointers_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

void me_pointers_fini(struct me_pointers *pointers)
{
	free(pointers->functions);
	free(pointers->sites);
	*pointers = (struct me_pointers){0};
}
