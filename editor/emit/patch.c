// SPDX-License-Identifier: Apache-2.0
/*
 * patch - the only code that changes bytes of the original text and tables. eligible decides
 * before whether a function may be touched at all. Called by emit.
 */
#include "editor/emit/patch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/copy.h"
#include "editor/emit/eh_startup.h"
#include "editor/evidence/patch_fit.h"
#include "editor/evidence/table_form.h"
#include "libprof/base/assert.h"
#include "libprof/insn/insn.h"

struct patcher {
	const struct mp_cfg *cfg;
	const struct me_placement *placement;
	uint8_t *image;
	uint64_t image_size;
	struct me_patches *out;
};

/* The image's bytes for [vaddr, vaddr + size), or NULL where the file has none. */
static uint8_t *image_at(const struct patcher *p, uint64_t vaddr, uint64_t size)
{
	uint64_t off;

	if (!mp_elf_bytes(p->cfg->elf, vaddr, size) ||
	    !mp_elf_vaddr_to_off(p->cfg->elf, vaddr, &off))
		return NULL;
	if (off > p->image_size || size > p->image_size - off)
		return NULL;
	return p->image + off;
}

static bool is_copied(const struct patcher *p, uint64_t target)
{
	return me_place_of(p->cfg, p->placement, target) != target;
}

/* If the branch at @vaddr is a rel32 branch to block @to, and @to was copied, lead it to the
 * copy. */
static void retarget(const struct patcher *p, uint64_t vaddr, uint32_t avail, uint32_t to)
{
	uint32_t copy = to == MP_NONE ? MP_NONE : p->placement->target_from_outside[to];
	const uint8_t *old;
	struct mp_insn insn;
	uint8_t *bytes;

	if (copy == MP_NONE)
		return;
	/* The image has the same bytes, but reading it takes memory until the output is written. */
	old = mp_elf_bytes(p->cfg->elf, vaddr, avail);
	if (!old || mp_insn_decode(old, avail, vaddr, &insn))
		return;
	if (insn.kind != MP_INSN_CALL && insn.kind != MP_INSN_JUMP && insn.kind != MP_INSN_COND)
		return;
	if (insn.disp_size != 4 || insn.target != p->cfg->blocks[to].vaddr)
		return;
	bytes = image_at(p, vaddr, avail);
	if (bytes && me_put_rel32(bytes + insn.disp_off, vaddr + insn.len,
				  p->placement->copies[copy].new_vaddr))
		p->out->nr_retargeted++;
}

static bool func_is_understood(const struct mp_cfg *cfg, uint32_t func)
{
	return cfg->funcs[func].problem == MP_PROBLEM_NONE;
}

/* The block that @call enters; MP_NONE: none. */
static uint32_t call_end(const struct mp_cfg *cfg, const struct mp_call *call)
{
	const struct mp_func *callee = call->callee == MP_NONE ? NULL : &cfg->funcs[call->callee];

	uint64_t target = mp_call_target(cfg, call);

	/* Nearly always this is the function's first block. */
	if (callee && callee->nr_blocks && cfg->blocks[callee->first_block].vaddr == target)
		return callee->first_block;
	return mp_cfg_block_starting(cfg, target);
}

/* Gives the input's pages back each time when a loop over all blocks, or calls, has read many. */
static void drop_pages(const struct patcher *p, uint32_t i)
{
	if (i % (1u << 16) == 0)
		mp_elf_drop_pages(p->cfg->elf);
}

static void retarget_old_code(const struct patcher *p)
{
	const struct mp_cfg *cfg = p->cfg;

	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_call *call = &cfg->calls[c];
		const struct mp_block *block = &cfg->blocks[call->block];

		drop_pages(p, c);
		if (!call->tail && mp_cfg_block_is_sure(cfg, call->block))
			retarget(p, mp_call_insn(cfg, call), block->size - (uint32_t)call->offset,
				 call_end(cfg, call));
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		drop_pages(p, b);
		if ((block->term == MP_TERM_COND || block->term == MP_TERM_JUMP ||
		     block->term == MP_TERM_TAIL) &&
		    mp_cfg_block_is_sure(cfg, b))
			retarget(p, block->vaddr + block->size - block->term_len, block->term_len,
				 me_place_end(cfg, b, mp_block_target(block)));
	}
}

/*
 * If the patch that ends at @end cuts an instruction of @block, restore the instruction's rest:
 * that may have been changed to lead to a copy, and verify could not explain half a
 * displacement.
 */
static void restore_rest(const struct patcher *p, const struct mp_block *block, uint64_t end)
{
	const uint8_t *old = mp_elf_bytes(p->cfg->elf, block->vaddr, block->size);
	uint64_t at = block->vaddr;
	struct mp_insn insn = {0};
	uint8_t *rest;

	for (; old && at < end; at += insn.len)
		if (mp_insn_decode(old + (at - block->vaddr), block->vaddr + block->size - at, at,
				   &insn))
			return;
	rest = at > end ? image_at(p, end, at - end) : NULL;
	if (rest)
		memcpy(rest, old + (end - block->vaddr), at - end);
}

/*
 * May a jump be written over the old start of @block? Over padding only if stubs count: a function that
 * is smaller than a jump runs faster where it is, but what runs there is not counted.
 */
static bool has_room(const struct patcher *p, uint32_t block)
{
	return me_patch_fits(p->cfg, block) ||
	       (p->placement->nr_stubs && me_patch_fits_padding(p->cfg, block));
}

/* Is @block the beginning of a function, and is there no jump right behind its only instruction either? */
static bool is_open_entry(const struct patcher *p, uint32_t block)
{
	return (p->cfg->blocks[block].flags & MP_BLOCK_ENTRY) &&
	       !(mp_cfg_is_first_insn(p->cfg, block) &&
		 p->placement->target_from_outside[block + 1] != MP_NONE && has_room(p, block + 1));
}

/*
 * Write a jump over the old start of a copied block. It must lie inside the block, or reach into
 * padding that nothing reaches, and no target may lie in its middle. Return addresses are no
 * problem: a call in these bytes runs only after control came through the block's start, which is
 * now the jump.
 */
static int patch_block(struct patcher *p, const struct me_copy *copy)
{
	const struct mp_block *block = &p->cfg->blocks[copy->block];
	uint64_t start = me_patch_start(p->cfg, block);
	uint8_t *bytes;

	if (!has_room(p, copy->block)) {
		p->out->nr_unpatched++;
		p->out->nr_entries_open += is_open_entry(p, copy->block);
		return 0;
	}
	bytes = image_at(p, start, ME_PATCH_SIZE);
	if (!bytes)
		return -EBADMSG;
	bytes[0] = 0xe9;
	if (!me_put_rel32(bytes + 1, start + ME_PATCH_SIZE, copy->new_vaddr))
		return -ERANGE;
	restore_rest(p, block, start + ME_PATCH_SIZE);
	p->out->patches[p->out->nr_patches++] = (struct me_patch){start, ME_PATCH_SIZE};
	return 0;
}

static int compare_patches(const void *a, const void *b)
{
	const struct me_patch *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static bool are_sorted(const struct me_patches *patches)
{
	for (uint64_t i = 1; i < patches->nr_patches; i++)
		if (compare_patches(&patches->patches[i - 1], &patches->patches[i]) > 0)
			return false;
	return true;
}

/* The place of a dynamic relocation's addend in .rela.dyn, by the address that is relocated. */
struct addend {
	uint64_t vaddr;
	uint8_t *field;
};

struct addends {
	struct addend *entries;
	size_t nr;
};

static int compare_addends(const void *a, const void *b)
{
	const struct addend *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int collect_addends(const struct patcher *p, struct addends *out)
{
	const struct mp_section *rela = mp_elf_section(p->cfg->elf, ".rela.dyn");
	const uint8_t *old;
	uint8_t *bytes;

	*out = (struct addends){0};
	if (!rela || rela->type != SHT_RELA || !(bytes = image_at(p, rela->vaddr, rela->size)))
		return 0;
	old = mp_elf_bytes(p->cfg->elf, rela->vaddr, rela->size);
	out->entries = malloc((rela->size / sizeof(Elf64_Rela) + 1) * sizeof(*out->entries));
	if (!out->entries)
		return -ENOMEM;
	for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= rela->size; off += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, old + off, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
			out->entries[out->nr++] = (struct addend){
				r.r_offset, bytes + off + offsetof(Elf64_Rela, r_addend)};
	}
	/* Sorting needs as much memory again; linkers have sorted most of these. */
	for (size_t i = 1; i < out->nr; i++) {
		if (compare_addends(&out->entries[i - 1], &out->entries[i]) <= 0)
			continue;
		qsort(out->entries, out->nr, sizeof(*out->entries), compare_addends);
		break;
	}
	return 0;
}

/* A switch may lead to the function's entry, whose address patch_pointers() handles. */
static bool is_entry(const struct patcher *p, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(p->cfg, target);

	return func != MP_NONE && p->cfg->funcs[func].vaddr == target;
}

/* May an entry with @target lead to the copy? @table: in a file without relocations, which do
 * not tell labels; else NULL. */
static bool may_lead_on(const struct patcher *p, const struct mp_table *table, uint64_t target)
{
	return is_copied(p, target) &&
	       (!table || (me_table_form_holds(p->cfg, table, target) && !is_entry(p, target)));
}

static bool patch_entry_abs64(const struct patcher *p, const struct addends *addends,
			      const struct mp_table *table, uint64_t vaddr)
{
	struct addend key = {vaddr, NULL}, *rel;
	uint8_t *word = image_at(p, vaddr, 8);
	uint64_t value, target;

	if (!word)
		return false;
	memcpy(&value, word, 8);
	rel = addends->nr
		      ? bsearch(&key, addends->entries, addends->nr, sizeof(key), compare_addends)
		      : NULL;
	if (rel) {
		memcpy(&target, rel->field, 8);
		if (!may_lead_on(p, table, target))
			return false;
		if (value == target) {
			value = me_place_of(p->cfg, p->placement, target);
			memcpy(word, &value, 8);
		}
		target = me_place_of(p->cfg, p->placement, target);
		memcpy(rel->field, &target, 8);
		return true;
	}
	if (!may_lead_on(p, table, value))
		return false;
	value = me_place_of(p->cfg, p->placement, value);
	memcpy(word, &value, 8);
	return true;
}

static bool patch_entry_rel32(const struct patcher *p, uint64_t base, const struct mp_table *table,
			      uint64_t vaddr)
{
	const uint8_t *old = mp_elf_bytes(p->cfg->elf, vaddr, 4);
	uint8_t *word = image_at(p, vaddr, 4);
	uint64_t target;
	int32_t rel;

	if (!word)
		return false;
	memcpy(&rel, old, 4);
	target = base + (int64_t)rel;
	/* Few entries lead to copies, so only now the image is read: see retarget(). */
	return may_lead_on(p, table, target) && !is_entry(p, target) && !memcmp(word, old, 4) &&
	       me_put_rel32(word, base, me_place_of(p->cfg, p->placement, target));
}

static int patch_pointers(struct patcher *p, const struct me_redirects *redirects,
			  const struct addends *addends)
{
	mp_assert(mp_ascends(redirects->sites, redirects->nr_sites, vaddr));
	for (uint32_t i = 0; i < redirects->nr_sites; i++) {
		const struct me_site *site = &redirects->sites[i];
		uint64_t now = me_place_value(p->cfg, p->placement, site->target);
		uint64_t relative_to = site->kind == ME_SITE_REL32 ? site->vaddr + 4 : 0;
		uint8_t *field;

		/* The label has no copy, or an empty one. */
		if (now == site->target)
			continue;
		if (site->kind == ME_SITE_WORD) {
			if (!patch_entry_abs64(p, addends, NULL, site->vaddr))
				return -EBADMSG;
		} else {
			field = image_at(p, site->vaddr, 4);
			if (!field)
				return -EBADMSG;
			if (!me_put_rel32(field, relative_to, now))
				return -ERANGE;
		}
		p->out->nr_pointers++;
	}
	return 0;
}

/* Tables whose words are label values are left to patch_pointers(). */
static void patch_tables(struct patcher *p, const struct me_redirects *redirects,
			 const struct addends *addends)
{
	for (uint32_t t = 0; t < p->cfg->nr_tables; t++) {
		const struct mp_table *table = &p->cfg->tables[t];
		const struct mp_table *form = p->cfg->elf->relinkable ? NULL : table;
		uint64_t vaddr = table->vaddr;

		drop_pages(p, t << 8);
		if (!func_is_understood(p->cfg, table->func) ||
		    (table->kind == MP_TABLE_ABS64 && redirects->labels &&
		     redirects->labels[table->func]))
			continue;
		if (!me_patch_leads_table(p->cfg, table)) {
			/* A table has no block if it is one of several that its jump may use. */
			p->out->nr_tables_kept += table->block != MP_NONE &&
						  p->placement->target_from_outside[table->block] !=
							  MP_NONE;
			continue;
		}
		for (uint32_t e = 0; e < table->nr_entries; e++) {
			if (table->kind == MP_TABLE_REL32)
				p->out->nr_table_entries += patch_entry_rel32(
					p, table->base, form, vaddr + 4 * (uint64_t)e);
			else
				p->out->nr_table_entries += patch_entry_abs64(
					p, addends, form, vaddr + 8 * (uint64_t)e);
		}
	}
}

int me_patch_image(const struct mp_cfg *cfg, const struct me_placement *placement,
		   const struct me_redirects *redirects, uint8_t *image, uint64_t image_size,
		   struct me_patches *out, struct mp_err *err)
{
	struct patcher p = {cfg, placement, image, image_size, out};
	struct addends addends;
	int rc;

	*out = (struct me_patches){0};
	out->patches = malloc((placement->nr_copies + 1) * sizeof(*out->patches));
	if (!out->patches)
		return mp_err_set(err, ENOMEM, "out of memory");
	/* Branches first, so that no patch is taken for one. */
	retarget_old_code(&p);
	rc = collect_addends(&p, &addends);
	if (!rc) {
		patch_tables(&p, redirects, &addends);
		rc = patch_pointers(&p, redirects, &addends);
	}
	free(addends.entries);
	/* In the order of blocks, which is nearly that of addresses. */
	for (uint32_t b = 0; !rc && b < cfg->nr_blocks; b++) {
		drop_pages(&p, b);
		if (placement->target_from_outside[b] != MP_NONE &&
		    !(cfg->blocks[b].flags & MP_BLOCK_CUT))
			rc = patch_block(&p, &placement->copies[placement->target_from_outside[b]]);
	}
	if (rc) {
		me_patches_fini(out);
		return mp_err_set(err, -rc,
				  rc == -ENOMEM	  ? "out of memory"
				  : rc == -ERANGE ? "a patch does not reach the new segment"
						  : "a pointer lies outside the file's data");
	}
	/* Sorting needs as much memory again; most files' patches are sorted already. */
	if (!are_sorted(out))
		qsort(out->patches, out->nr_patches, sizeof(*out->patches), compare_patches);
	mp_assert(are_sorted(out));
	return 0;
}

/* Without relocations: change the two operands in the start-up file's code. */
static int patch_eh_startup(struct patcher *p, uint64_t vaddr, struct mp_err *err)
{
	struct me_eh_startup found;
	uint32_t word = (uint32_t)vaddr;

	if (me_eh_startup_find(p->cfg->elf, &found) || vaddr > INT32_MAX)
		return mp_err_set(err, EPERM,
				  "has neither PT_GNU_EH_FRAME nor a start-up file that "
				  "registers .eh_frame");
	for (int i = 0; i < 2; i++) {
		uint8_t *field = image_at(p, found.fields[i], sizeof(word));

		/* The operand must be in no function: a function might move, and its copy would
		 * have another one. */
		if (!field || mp_cfg_func_at(p->cfg, found.fields[i]) != MP_NONE)
			return mp_err_set(err, EPERM,
					  "the start-up file that registers .eh_frame has an "
					  "unknown form");
		memcpy(field, &word, sizeof(word));
	}
	return 0;
}

int me_patch_eh_frame(const struct mp_cfg *cfg, uint8_t *image, uint64_t image_size, uint64_t vaddr,
		      struct mp_err *err)
{
	const struct mp_section *old = mp_elf_section(cfg->elf, ".eh_frame");
	struct patcher p = {.cfg = cfg, .image = image, .image_size = image_size};
	uint32_t nr_found = 0;

	if (!cfg->elf->relinkable)
		return patch_eh_startup(&p, vaddr, err);
	for (uint32_t i = 0; old && i < cfg->elf->nr_relocs; i++) {
		const struct mp_reloc *r = &cfg->elf->relocs[i];
		uint32_t word = (uint32_t)vaddr;
		uint8_t *field;

		if (r->sym_value + r->addend - old->vaddr >= old->size ||
		    !mp_elf_is_code(cfg->elf, r->vaddr))
			continue;
		if ((r->type != R_X86_64_32 && r->type != R_X86_64_32S) || vaddr > INT32_MAX ||
		    !(field = image_at(&p, r->vaddr, sizeof(word))))
			return mp_err_set(err, EPERM,
					  "a reference to .eh_frame at %#llx cannot be "
					  "changed",
					  (unsigned long long)r->vaddr);
		memcpy(field, &word, sizeof(word));
		nr_found++;
	}
	if (!nr_found)
		return mp_err_set(err, EPERM,
				  "has neither PT_GNU_EH_FRAME nor a start-up file that "
				  "registers .eh_frame");
	return 0;
}

void me_patches_fini(struct me_patches *patches)
{
	free(patches->patches);
	patches->patches = NULL;
}
