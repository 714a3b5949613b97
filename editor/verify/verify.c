// SPDX-License-Identifier: Apache-2.0
/*
 * verify - the order of the checks.
 *
 * Decides nothing itself. optimize calls it before an output replaces anything; confirm and the
 * tests call it, too. Documentation/verify.md lists the assumptions.
 */
#include "editor/verify/known/verify_live.h"
#include "editor/verify/verify.h"

#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_inline.h"
#include "editor/verify/code/verify_pieces.h"
#include "editor/verify/code/verify_pointers.h"
#include "editor/verify/code/verify_probe.h"
#include "editor/verify/code/verify_scan.h"
#include "editor/verify/code/verify_tables.h"
#include "editor/verify/code/verify_unwind.h"
#include "editor/verify/debug/verify_debug_file.h"
#include "editor/verify/debug/verify_debug_info.h"
#include "editor/verify/file/verify_diff.h"
#include "editor/verify/file/verify_headers.h"
#include "editor/verify/file/verify_link.h"
#include "editor/verify/file/verify_map_note.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/file/verify_rest.h"
#include "editor/verify/file/verify_symbols.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/read/verify_eh.h"
#include "editor/verify/read/verify_map.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/stubs/verify_count.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_free_registers.h"
#include "editor/verify/marker/verify_marker.h"
#include "editor/verify/stubs/verify_paths.h"
#include "editor/verify/stubs/verify_flags.h"
#include "editor/verify/stubs/verify_threads.h"
#include "editor/verify/stubs/verify_versions.h"

static bool is_in(const Elf64_Phdr *load, uint64_t vaddr)
{
	return load->p_type == PT_LOAD && vaddr - load->p_vaddr < load->p_memsz;
}

static int add_text(struct vf *vf, uint64_t start, uint64_t end)
{
	const Elf64_Phdr *load = vf->o->phdrs;
	struct vf_range *text = vf->old.texts;

	/* The section's bytes are loaded, so one PT_LOAD contains it. */
	while (!is_in(load, start))
		load++;
	while (text < vf->old.texts + vf->old.nr_texts && !is_in(load, text->start))
		text++;
	if (text == vf->old.texts + VF_TEXTS_MAX)
		return vf_refuse(vf, start, "original has code in too many segments");
	if (text == vf->old.texts + vf->old.nr_texts) {
		*text = (struct vf_range){start, end};
		vf->old.nr_texts++;
	}
	text->start = start < text->start ? start : text->start;
	text->end = end > text->end ? end : text->end;
	return 0;
}

static int find_spans(struct vf *vf)
{
	const struct mp_elf *o = vf->o;
	int ret;

	vf->old.text_start = vf->old.image_start = UINT64_MAX;
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
		if (sec->vaddr < vf->old.text_start)
			vf->old.text_start = sec->vaddr;
		if (sec->vaddr + sec->size > vf->old.text_end)
			vf->old.text_end = sec->vaddr + sec->size;
	}
	for (uint32_t i = 0; i < o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &o->phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_vaddr < vf->old.image_start)
			vf->old.image_start = ph->p_vaddr;
		if (ph->p_vaddr + ph->p_filesz > vf->old.image_end)
			vf->old.image_end = ph->p_vaddr + ph->p_filesz;
		if (ph->p_offset + ph->p_filesz > vf->old.alloc_end)
			vf->old.alloc_end = ph->p_offset + ph->p_filesz;
	}
	if (vf->old.text_start >= vf->old.text_end || vf->old.image_start >= vf->old.image_end)
		return vf_refuse(vf, 0, "original has no executable section");
	if (vf->old.image_end - vf->old.image_start > VF_SPAN_MAX ||
	    vf->old.text_end - vf->old.text_start > VF_SPAN_MAX)
		return vf_refuse(vf, vf->old.image_end, "original spans more than 1 GiB");
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
	free(marks->flag_steps);
}

static void vf_fini(struct vf *vf)
{
	mp_map_free(vf->map);
	/* Free this before the unwind data, whose number of FDEs it needs. */
	vf_registers_fini(vf);
	vf_eh_fini(&vf->old.eh);
	vf_eh_fini(&vf->now.eh);
	vf_bits_fini(&vf->old.grid);
	vf_bits_fini(&vf->old.target);
	vf_bits_fini(&vf->old.sure_target);
	vf_bits_fini(&vf->old.maybe_target);
	vf_bits_fini(&vf->old.maybe_address);
	vf_bits_fini(&vf->old.text_ref);
	vf_bits_fini(&vf->old.data_ref);
	vf_bits_fini(&vf->old.entries);
	vf_bits_fini(&vf->old.may_lack);
	vf_bits_fini(&vf->old.word_ref);
	vf_bits_fini(&vf->old.label_word);
	vf_bits_fini(&vf->index.piece_start);
	vf_bits_fini(&vf->index.cloned);
	free(vf->index.piece_rank);
	free(vf->index.by_old);
	free(vf->index.next_copy);
	free(vf->index.empty);
	free(vf->index.inlined);
	free(vf->old.cuts);
	free(vf->now.section);
	free(vf->old.refs.list);
	vf_bits_fini(&vf->old.cold);
	vf_bits_fini(&vf->old.summed);
	free(vf->old.names.list);
	free(vf->old.bases);
	mp_path_table_free(vf->stubs.paths);
	mp_audit_table_free(vf->stubs.audited);
	mp_edge_table_free(vf->stubs.meter);
	free(vf->stubs.versions);
	free(vf->stubs.returned);
	vf_bits_fini(&vf->stubs.guarded);
	vf_bits_fini(&vf->stubs.exits);
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
	return vf_eh_read(vf, vf->o, false, &vf->old.eh);
}

/* Marks of FDEs. */
static int make_marks(const struct vf *vf)
{
	int ret = vf_make_answers(vf);

	return ret ? ret : vf_make_flag_steps(vf);
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
		{.read = vf_read_returned_flags},
		{.read = vf_mark_live},
		{.check = vf_check_gs},
		{.read = vf_read_registers},
		{.read = vf_find_markers},
		{.check = make_marks},
		{.check = vf_check_pieces},
		{.read = vf_read_unwind},
		{.check = vf_check_unwind},
		{.check = drop_pages},
		{.check = vf_check_diff},
		{.check = drop_pages},
		{.check = vf_check_table_values},
		{.check = vf_check_eh_refs},
		{.check = vf_check_pointers},
		{.check = vf_check_live},
		{.check = vf_check_answers},
		{.check = vf_check_probes},
		{.check = vf_check_moved},
		{.check = drop_pages},
		{.check = vf_check_map_note},
		{.read = vf_read_sections},
		{.check = vf_check_sections},
		{.check = vf_check_debug_info},
		{.check = vf_check_symbols},
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
	[ME_KIND_LAYOUT] = "layout",
	[ME_KIND_COUNTS] = "edges",
	[ME_KIND_THREADS] = "edges+threads",
	[ME_KIND_NUMBERS] = "pep",
	[ME_KIND_POLLS] = "pep+poll",
	[ME_KIND_AUDIT] = "audit",
	[ME_KIND_CALLS] = "calls",
	[ME_KIND_METER] = "meter",
	[ME_KIND_LIVE] = "live",
	[ME_KIND_LIVE_COUNTS] = "live+edges",
	[ME_KIND_LIVE_METER] = "live+meter",
};

const char *me_kind_name(enum me_kind kind)
{
	return (unsigned int)kind < ME_NR_KINDS ? kinds[kind] : NULL;
}

unsigned int me_kinds_find(const char *names)
{
	unsigned int found = 0;
	size_t len;

	for (;; names += len + 1) {
		unsigned int kind = 0;

		len = strcspn(names, ",");
		while (kind < ME_NR_KINDS &&
		       (strlen(kinds[kind]) != len || memcmp(names, kinds[kind], len)))
			kind++;
		if (kind == ME_NR_KINDS)
			return 0;
		found |= 1u << kind;
		if (!names[len])
			return found;
	}
}

/* By the sections of which vf_read_headers() allows those of one kind only. */
static enum me_kind kind_of(const struct vf *vf)
{
	if (vf->stubs.path_section)
		return vf->stubs.counters ? ME_KIND_POLLS : ME_KIND_NUMBERS;
	if (vf->stubs.audit_section)
		return ME_KIND_AUDIT;
	if (vf->stubs.call_section)
		return ME_KIND_CALLS;
	if (!vf->stubs.counters)
		return vf->now.live ? ME_KIND_LIVE : ME_KIND_LAYOUT;
	if (vf->stubs.meter_section)
		return vf->now.live ? ME_KIND_LIVE_METER : ME_KIND_METER;
	if (vf->now.live)
		return ME_KIND_LIVE_COUNTS;
	return vf->stubs.thread_state ? ME_KIND_THREADS : ME_KIND_COUNTS;
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
