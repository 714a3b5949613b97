// SPDX-License-Identifier: Apache-2.0
/*
 * verify - the order of the checks, and the form of a refusal's message.
 *
 * Decides nothing itself. optimize calls it before an output replaces anything; confirm and the
 * tests call it, too. Documentation/verify.md lists the assumptions.
 */
#include "editor/verify/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "editor/verify/verify_private.h"

/* Larger spans are refused: their bitmaps would take too much memory. */
#define VF_SPAN_MAX (1ULL << 30)

int vf_bits_init(struct vf_bits *bits, uint64_t start, uint64_t end)
{
	bits->base = start;
	bits->nr = end > start ? end - start : 0;
	if (bits->nr > VF_SPAN_MAX)
		return -EBADMSG;
	bits->word = calloc(bits->nr / 64 + 1, sizeof(*bits->word));
	return bits->word ? 0 : -ENOMEM;
}

void vf_bits_fini(struct vf_bits *bits)
{
	free(bits->word);
	memset(bits, 0, sizeof(*bits));
}

uint64_t vf_bits_next(const struct vf_bits *bits, uint64_t vaddr, uint64_t end)
{
	uint64_t i, stop, w, last = end;

	if (vaddr < bits->base)
		vaddr = bits->base;
	if (last > bits->base + bits->nr)
		last = bits->base + bits->nr;
	/* Return the caller's @end even if the bitmap ends earlier: callers loop until they
	 * reach it. */
	if (vaddr >= last)
		return end;
	i = vaddr - bits->base;
	stop = last - bits->base;
	w = bits->word[i / 64] & (~0ULL << (i % 64));
	for (i /= 64;; w = bits->word[i]) {
		if (w) {
			i = i * 64 + (uint64_t)__builtin_ctzll(w);
			return i < stop ? bits->base + i : end;
		}
		if (++i * 64 >= stop)
			return end;
	}
}

/* Runs once, for a refusal, so a walk over all symbols is fast enough. */
static const struct mp_symbol *symbol_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_symbol *best = NULL;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->type != STT_FUNC || sym->shndx == SHN_UNDEF || sym->vaddr > vaddr)
			continue;
		if (vaddr - sym->vaddr >= (sym->size ? sym->size : 1))
			continue;
		if (!best || sym->vaddr > best->vaddr)
			best = sym;
	}
	return best;
}

/*
 * Which function has to stay so that the difference at @vaddr is gone? An address in the new segment
 * belongs to a copy, one in data to a table that an operand names.
 * Return: an address in the original's function; 0: not known.
 */
static uint64_t blamed(const struct vf *vf, uint64_t vaddr)
{
	const struct mp_map_piece *p = vf->map ? vf->map->pieces : NULL;
	size_t ref;

	if (!vaddr || vf->program)
		return 0;
	if (vf_is_text(vf, vaddr))
		return vaddr;
	if (vf->segment && p && vaddr >= vf->segment->p_vaddr) {
		uint32_t i = vf_first_piece(vf, vaddr);

		if (i == vf->map->nr_pieces || p[i].new_vaddr > vaddr)
			i = i ? i - 1 : i;
		return i < vf->map->nr_pieces && vaddr >= p[i].new_vaddr &&
				       vaddr - p[i].new_vaddr <= p[i].new_size
			       ? p[i].old_vaddr
			       : 0;
	}
	/* The scan sorts the references. */
	ref = vf->new_eh.nr_fdes ? vf_first_ref(vf, vaddr + 1) : 0;
	return ref ? vf->refs.list[ref - 1].insn : 0;
}

int vf_refuse(const struct vf *vf, uint64_t vaddr, const char *fmt, ...)
{
	const struct mp_symbol *sym = symbol_at(vf->o, vaddr);
	char what[160];
	va_list ap;

	if (!sym)
		sym = symbol_at(vf->n, vaddr);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (sym && sym->name)
		mp_err_set(vf->err, EBADMSG, "verify: at %#llx (%.48s+%#llx): %s",
			   (unsigned long long)vaddr, sym->name,
			   (unsigned long long)(vaddr - sym->vaddr), what);
	else
		mp_err_set(vf->err, EBADMSG, "verify: at %#llx: %s", (unsigned long long)vaddr,
			   what);
	vf->refusals->blamed = blamed(vf, vaddr);
	return -EBADMSG;
}

int vf_go_on(const struct vf *vf, int ret)
{
	struct vf_refusals *r = vf->refusals;
	const struct vf_fde *fde;
	uint64_t start;

	if (ret != -EBADMSG || !r->blamed)
		return ret;
	fde = vf_eh_find(&vf->old_eh, r->blamed);
	start = fde ? fde->start : r->blamed;
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->list[i].what.vaddr == start)
			return 0;
	if (r->nr == r->max)
		return ret;
	r->list[r->nr].order = r->nr;
	r->list[r->nr].what.vaddr = start;
	snprintf(r->list[r->nr].what.why, sizeof(r->list[r->nr].what.why), "%.*s",
		 (int)sizeof(r->list[r->nr].what.why) - 1, vf->err->msg);
	r->nr++;
	return 0;
}

static bool is_in(const Elf64_Phdr *load, uint64_t vaddr)
{
	return load->p_type == PT_LOAD && vaddr - load->p_vaddr < load->p_memsz;
}

static int add_text(struct vf *vf, uint64_t start, uint64_t end)
{
	const Elf64_Phdr *load = vf->o->phdrs;
	struct vf_range *text = vf->texts;

	/* The section's bytes are loaded, so one PT_LOAD contains it. */
	while (!is_in(load, start))
		load++;
	while (text < vf->texts + vf->nr_texts && !is_in(load, text->start))
		text++;
	if (text == vf->texts + VF_TEXTS_MAX)
		return vf_refuse(vf, start, "original has code in too many segments");
	if (text == vf->texts + vf->nr_texts) {
		*text = (struct vf_range){start, end};
		vf->nr_texts++;
	}
	text->start = start < text->start ? start : text->start;
	text->end = end > text->end ? end : text->end;
	return 0;
}

static int find_spans(struct vf *vf)
{
	const struct mp_elf *o = vf->o;
	int ret;

	vf->text_start = vf->image_start = UINT64_MAX;
	for (uint32_t i = 0; i < o->nr_sections; i++) {
		const struct mp_section *sec = &o->sections[i];

		if (!(sec->flags & SHF_ALLOC) || !(sec->flags & SHF_EXECINSTR) || !sec->size ||
		    sec->type == SHT_NOBITS)
			continue;
		if (!mp_elf_bytes(o, sec->vaddr, sec->size))
			return vf_refuse(vf, sec->vaddr, "executable section is not loaded");
		ret = add_text(vf, sec->vaddr, sec->vaddr + sec->size);
		if (ret)
			return ret;
		if (sec->vaddr < vf->text_start)
			vf->text_start = sec->vaddr;
		if (sec->vaddr + sec->size > vf->text_end)
			vf->text_end = sec->vaddr + sec->size;
	}
	for (uint32_t i = 0; i < o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &o->phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_vaddr < vf->image_start)
			vf->image_start = ph->p_vaddr;
		if (ph->p_vaddr + ph->p_filesz > vf->image_end)
			vf->image_end = ph->p_vaddr + ph->p_filesz;
		if (ph->p_offset + ph->p_filesz > vf->alloc_end)
			vf->alloc_end = ph->p_offset + ph->p_filesz;
	}
	if (vf->text_start >= vf->text_end || vf->image_start >= vf->image_end)
		return vf_refuse(vf, 0, "original has no executable section");
	if (vf->image_end - vf->image_start > VF_SPAN_MAX ||
	    vf->text_end - vf->text_start > VF_SPAN_MAX)
		return vf_refuse(vf, vf->image_end, "original spans more than 1 GiB");
	return 0;
}

static void marks_fini(struct vf_marks *marks)
{
	vf_bits_fini(&marks->pointer_kept);
	vf_bits_fini(&marks->pointer_moved);
	vf_bits_fini(&marks->version_table_bytes);
	free(marks->counted);
	free(marks->unproved);
	free(marks->common);
	free(marks->pointer_now);
	free(marks->below);
}

static void vf_fini(struct vf *vf)
{
	mp_map_free(vf->map);
	/* Free this before the unwind data, whose number of FDEs it needs. */
	vf_registers_fini(vf);
	vf_eh_fini(&vf->old_eh);
	vf_eh_fini(&vf->new_eh);
	vf_bits_fini(&vf->grid);
	vf_bits_fini(&vf->target);
	vf_bits_fini(&vf->sure_target);
	vf_bits_fini(&vf->maybe_target);
	vf_bits_fini(&vf->maybe_address);
	vf_bits_fini(&vf->text_ref);
	vf_bits_fini(&vf->data_ref);
	vf_bits_fini(&vf->may_lack);
	vf_bits_fini(&vf->word_ref);
	vf_bits_fini(&vf->label_word);
	vf_bits_fini(&vf->piece_start);
	vf_bits_fini(&vf->cloned);
	free(vf->piece_rank);
	free(vf->by_old);
	free(vf->next_copy);
	free(vf->empty);
	free(vf->inlined);
	free(vf->cuts);
	free(vf->section_now);
	free(vf->refs.list);
	vf_bits_fini(&vf->cold);
	vf_bits_fini(&vf->summed);
	free(vf->names.list);
	free(vf->bases);
	mp_path_table_free(vf->paths);
	mp_audit_table_free(vf->audited);
	free(vf->versions);
	vf_bits_fini(&vf->guarded);
	vf_bits_fini(&vf->exits);
	marks_fini(vf->marks);
}

static int drop_pages(const struct vf *vf)
{
	vf_drop_pages(vf);
	return 0;
}

/* Calls at the end of functions are told by it, before the pieces that stand for calls are found. */
static int read_old_unwind(struct vf *vf)
{
	return vf_eh_read(vf, vf->o, false, &vf->old_eh);
}

static int check(struct vf *vf)
{
	static const struct {
		int (*read)(struct vf *vf); /* also checks what it reads */
		int (*check)(const struct vf *vf);
	} steps[] = {
		{.read = find_spans},
		{.read = vf_read_headers},
		{.read = vf_read_start},
		{.read = vf_read_paths},
		{.read = read_old_unwind},
		{.read = vf_index_pieces},
		{.read = vf_read_audit},
		{.read = vf_scan},
		{.check = vf_check_gs},
		{.read = vf_read_registers},
		{.read = vf_find_markers},
		{.check = vf_make_answers},
		{.check = vf_check_pieces},
		{.read = vf_read_unwind},
		{.check = vf_check_unwind},
		{.check = drop_pages},
		{.check = vf_check_diff},
		{.check = drop_pages},
		{.check = vf_check_table_values},
		{.check = vf_check_eh_refs},
		{.check = vf_check_pointers},
		{.check = vf_check_answers},
		{.check = vf_check_probes},
		{.check = vf_check_moved},
		{.check = drop_pages},
		{.check = vf_check_map_note},
		{.read = vf_read_sections},
		{.check = vf_check_sections},
		{.check = vf_check_link},
		{.check = vf_check_owned},
		{.check = vf_check_debug},
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(steps) / sizeof(steps[0]); i++) {
		ret = steps[i].read ? steps[i].read(vf) : steps[i].check(vf);
		if (!ret && vf->refusals->nr)
			ret = -EBADMSG;
	}
	return ret;
}

static const char *const kinds[ME_NR_KINDS] = {
	[ME_KIND_LAYOUT] = "layout",  [ME_KIND_COUNTS] = "edges", [ME_KIND_NUMBERS] = "pep",
	[ME_KIND_POLLS] = "pep,poll", [ME_KIND_AUDIT] = "audit",  [ME_KIND_CALLS] = "calls",
};

const char *me_kind_name(enum me_kind kind)
{
	return (unsigned int)kind < ME_NR_KINDS ? kinds[kind] : NULL;
}

int me_kind_find(const char *name)
{
	for (int i = 0; i < ME_NR_KINDS; i++)
		if (!strcmp(name, kinds[i]))
			return i;
	return -1;
}

/* By the sections of which vf_read_headers() allows those of one kind only. */
static enum me_kind kind_of(const struct vf *vf)
{
	if (vf->path_section)
		return vf->counters ? ME_KIND_POLLS : ME_KIND_NUMBERS;
	if (vf->audit_section)
		return ME_KIND_AUDIT;
	if (vf->call_section)
		return ME_KIND_CALLS;
	return vf->counters ? ME_KIND_COUNTS : ME_KIND_LAYOUT;
}

/* Says which functions were refused, if the last refusal is one of them. */
static void report_refused(const struct vf *vf, struct me_verify_report *report)
{
	(void)vf_go_on(vf, -EBADMSG);
	if (!vf->refusals->blamed)
		return;
	report->nr_refused = vf->refusals->nr;
	for (uint32_t i = 0; i < report->nr_refused; i++)
		report->refused[i] = vf->refusals->list[i].what;
}

int me_verify(const struct mp_elf *original, const struct mp_elf *output,
	      struct me_verify_report *report, struct mp_err *err)
{
	return me_verify_parallel(original, output, NULL, 1, report, err);
}

static int verify(const struct mp_elf *original, const struct mp_elf *output,
		  const struct me_verify_debug *debug, unsigned int nr_threads,
		  struct vf_owned *owned, struct me_verify_report *report, struct mp_err *err)
{
	struct vf_result result = {0};
	struct vf_marks marks = {0};
	struct vf_refusals refusals = {.max = ME_MAX_REFUSED};
	struct mp_err ignored;
	struct vf vf = {.o = original,
			.n = output,
			.debug = debug,
			.err = err ? err : &ignored,
			.result = &result,
			.marks = &marks,
			.owned = owned,
			.refusals = &refusals,
			.nr_threads = nr_threads};
	int ret;

	if (report)
		*report = result.report;
	ret = mp_map_read(output, &vf.map, err);
	if (ret == -ENOENT)
		return mp_err_set(err, EBADMSG, "verify: the output carries no map note");
	if (ret)
		return ret;
	ret = check(&vf);
	if (ret == -EBADMSG)
		report_refused(&vf, &result.report);
	if (ret == -ENOMEM)
		mp_err_set(err, ENOMEM, "verify: out of memory");
	result.report.kind = kind_of(&vf);
	for (size_t i = 0; !ret && i < owned->nr; i++)
		result.report.owned[owned->list[i].owner] +=
			owned->list[i].end - owned->list[i].start;
	if (report)
		*report = result.report;
	vf_fini(&vf);
	return ret;
}

int me_verify_parallel(const struct mp_elf *original, const struct mp_elf *output,
		       const struct me_verify_debug *debug, unsigned int nr_threads,
		       struct me_verify_report *report, struct mp_err *err)
{
	struct vf_owned owned = {0};
	int ret = verify(original, output, debug, nr_threads, &owned, report, err);

	vf_owned_fini(&owned);
	return ret;
}

int me_verify_owners(const struct mp_elf *original, const struct mp_elf *output,
		     struct me_owned **list, size_t *nr, struct mp_err *err)
{
	struct vf_owned owned = {0};
	int ret = verify(original, output, NULL, 1, &owned, NULL, err);

	*list = owned.list;
	*nr = owned.nr;
	return ret;
}
