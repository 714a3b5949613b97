// SPDX-License-Identifier: Apache-2.0
/*
 * emit - puts an output file together: place, copy, unwind, map, patch, then headers.
 * Sections and symbols are in emit_sections.c.
 */
#include "editor/emit/eh_startup.h"
#include "editor/emit/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "editor/emit/audit_ranges.h"
#include "editor/emit/copy.h"
#include "editor/emit/dynsym.h"
#include "editor/emit/emit_private.h"
#include "editor/emit/inlined_frames.h"
#include "editor/emit/old_part.h"
#include "editor/base/runtime.h"
#include "editor/rewrite/leaf.h"
#include "editor/place/audit_code.h"
#include "editor/place/clock_code.h"
#include "editor/place/stub_code.h"
#include "libprof/base/round.h"
#include "libprof/note/edge_table.h"
#include "libprof/note/map.h"

/*
 * Offset in the copy at which a stub calls the runtime, with the stack pointer below the red zone;
 * 0: there is no such call.
 */
static uint8_t call_off(const struct me_placement *placement, const struct me_copy *copy)
{
	const struct me_stub *stub;

	if (!copy->stub)
		return 0;
	stub = &placement->stubs[copy->stub - 1];
	if (stub->checks)
		return (uint8_t)(copy->body_size -
				 me_stub_code_check_call(stub, placement->counters));
	switch (stub->does) {
	case ME_STUB_ENTERS:
		return (uint8_t)(copy->body_size - ME_ENTER_CODE_SIZE + ME_ENTER_CODE_CALL);
	case ME_STUB_LEAVES:
		return (uint8_t)(copy->body_size - ME_LEAVE_CODE_SIZE + ME_LEAVE_CODE_CALL);
	case ME_STUB_TIMES:
		return (uint8_t)(copy->body_size - ME_POINT_CODE_SIZE + ME_POINT_CODE_CALL);
	case ME_STUB_SAMPLES:
		return (uint8_t)(copy->body_size - ME_SAMPLE_CODE_SIZE + ME_SAMPLE_CODE_CALL);
	default: return 0;
	}
}

/* By how many bytes the code for the call at the block's end is longer in the copy. */
static int16_t growth(const struct mp_cfg *cfg, const struct me_copy *copy)
{
	bool call = copy->via_slot ? cfg->blocks[copy->block].term != MP_TERM_TAIL
				   : copy->inlined && !copy->apart;

	return call ? (int16_t)(copy->end_size - ME_LEAF_CALL_SIZE) : 0;
}

/* Choose the addresses of the runtime, the code that answers, the tables of versions and the unwind tables. */
static int place_behind_text(struct me_emitter *e, struct mp_err *err)
{
	int rc;

	e->unwind_vaddr = mp_round_up(e->placement.text_end, 8);
	if (e->added->nr_counters) {
		e->runtime_vaddr = mp_round_up(e->placement.text_end, 16);
		e->unwind_vaddr = mp_round_up(e->runtime_vaddr + me_start_size(), 8);
	}
	rc = me_answers_find(e->cfg, &e->placement, &e->plan->redirects,
			     mp_round_up(e->unwind_vaddr, 16), &e->answers, err);
	if (!rc && e->answers.size)
		e->unwind_vaddr = mp_round_up(e->answers.vaddr + e->answers.size, 8);
	if (!rc && e->added->nr_audited) {
		rc = me_version_tables_find(e->cfg, &e->placement, e->unwind_vaddr,
					    &e->version_tables, err);
		e->unwind_vaddr = mp_round_up(e->unwind_vaddr + e->version_tables.size, 8);
	}
	return rc;
}

_Static_assert((int)ME_NR_VERSIONS == ME_PLACED_VERSIONS, "unwind knows all versions");

static int build_unwind(struct me_emitter *e, struct mp_err *err)
{
	uint32_t nr = e->placement.nr_copies;
	struct me_placed *placed = malloc((nr + 1) * sizeof(*placed));
	struct me_inlined_frames frames;
	int rc;

	if (!placed || me_inlined_frames_init(&frames, e->plan->leaves, e->plan->nr_leaves)) {
		free(placed);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_copy *copy = &e->placement.copies[i];
		const uint32_t *targets = copy->version != ME_VERSION_NEW
						  ? e->placement.of_version[copy->version]
						  : e->placement.target_from_outside;

		placed[i] = (struct me_placed){
			.new_vaddr = copy->new_vaddr,
			.new_size = copy->new_size,
			.block = copy->block,
			.stub = copy->stub,
			.left_out = copy->left_out,
			.grown = growth(e->cfg, copy),
			.passed_by = e->placement.nr_stubs && targets[copy->block] != i,
			.version = copy->version,
			.call_off = call_off(&e->placement, copy),
			.apart = copy->apart,
			.frame = me_inlined_frame(&frames, copy, e->plan->leaves),
		};
		if (copy->falls && i + 1 < nr)
			placed[i].padding =
				(uint32_t)(copy[1].new_vaddr - copy->new_vaddr) - copy->new_size;
	}
	rc = place_behind_text(e, err);
	if (!rc)
		rc = me_unwind_build(e->cfg, placed, nr, e->unwind_vaddr, e->runtime_vaddr,
				     e->answers.vaddr, &e->unwind, err);
	e->out->failed_at = e->unwind.failed_at;
	me_inlined_frames_fini(&frames);
	free(placed);
	return rc;
}

/*
 * Adds a piece for each part of the inlined code of @copy: it comes from the called function, with its branch or
 * return. The piece of the block ends before them.
 */
static void add_parts(const struct me_leaf *leaf, const struct me_copy *copy, struct mp_map *map)
{
	uint64_t vaddr = copy->new_vaddr + copy->body_size;
	uint8_t i = copy->apart ? leaf->nr_near : 0;
	uint8_t end_part = copy->apart ? leaf->nr_parts : leaf->nr_near;

	if (!copy->apart)
		map->pieces[map->nr_pieces - 1].new_size =
			copy->body_size + (leaf->lowers ? ME_LEAF_LOWER_SIZE : 0);
	for (; i < end_part; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];
		uint32_t end = i + 1 < end_part ? part[1].off : copy->new_size - copy->body_size;

		map->pieces[map->nr_pieces++] =
			(struct mp_map_piece){vaddr + part->off, end - part->off,
					      (uint32_t)part->size + part->end_size, part->vaddr};
	}
}

/* Names the call that the pieces from @first on replace: blocks are cut behind such calls. */
static void add_call(const struct me_emitter *e, const struct me_copy *copy, uint32_t first,
		     struct mp_map *map)
{
	const struct mp_block *block = &e->cfg->blocks[copy->block];
	uint32_t callee = e->placement.leaves[copy->leaf].func;

	map->calls[map->nr_calls++] = (struct mp_map_call){first, map->nr_pieces - first,
							   block->vaddr + block->size,
							   e->cfg->funcs[callee].vaddr};
}

/* Return: at least the number of pieces that inlined code needs. *@nr_calls: of calls that it replaces. */
static size_t count_parts(const struct me_emitter *e, size_t *nr_calls)
{
	const struct me_placement *p = &e->placement;
	size_t nr = 0;

	*nr_calls = 0;
	for (uint32_t i = 0; i < p->nr_copies; i++) {
		if (!p->copies[i].inlined)
			continue;
		nr += p->leaves[p->copies[i].leaf].nr_parts;
		++*nr_calls;
	}
	return nr;
}

static int build_map(struct me_emitter *e, struct mp_err *err)
{
	uint32_t nr = e->placement.nr_copies;
	struct mp_map map = {.original = e->elf->id};
	size_t nr_calls, nr_parts = count_parts(e, &nr_calls);
	int rc;

	map.pieces = malloc((nr + nr_parts + 1) * sizeof(*map.pieces));
	map.calls = malloc((nr_calls + 1) * sizeof(*map.calls));
	if (!map.pieces || !map.calls) {
		free(map.pieces);
		free(map.calls);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_copy *copy = &e->placement.copies[i];
		const struct mp_block *block = &e->cfg->blocks[copy->block];
		uint32_t first;

		if (!copy->apart)
			map.pieces[map.nr_pieces++] =
				(struct mp_map_piece){copy->new_vaddr, copy->new_size,
						      copy->stub ? 0 : block->size, block->vaddr};
		first = map.nr_pieces;
		if (copy->inlined) {
			add_parts(&e->placement.leaves[copy->leaf], copy, &map);
			add_call(e, copy, first, &map);
		}
	}
	rc = mp_map_encode(&map, &e->note, &e->note_size, err);
	free(map.pieces);
	free(map.calls);
	e->note_vaddr = mp_round_up(e->unwind_vaddr + e->unwind.size, 8);
	return rc;
}

/* Build the new segment: code, unwind tables, map. */
static int build_new_segment(struct me_emitter *e, struct mp_err *err)
{
	int rc;

	e->new_segment_size = e->note_vaddr + e->note_size - e->segment.vaddr;
	if (e->added->nr_counters) {
		e->placement.places.thread = e->runtime_vaddr + ME_RUNTIME_THREAD;
		e->placement.places.enter = e->runtime_vaddr + ME_RUNTIME_ENTER;
		e->placement.places.leave = e->runtime_vaddr + ME_RUNTIME_LEAVE;
		e->placement.places.point = e->runtime_vaddr + ME_RUNTIME_POINT;
		e->placement.places.call = e->runtime_vaddr + ME_RUNTIME_CALL;
	}
	if (e->segment.displaced.size) {
		struct me_displaced *d = &e->segment.displaced;
		uint64_t end = e->segment.vaddr + e->new_segment_size;

		d->new_vaddr = end + ((d->vaddr - end) & (d->align - 1));
		e->new_segment_size = d->new_vaddr + d->size - e->segment.vaddr;
	}
	e->new_segment = calloc(1, e->new_segment_size);
	if (!e->new_segment)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(e->new_segment + (e->unwind_vaddr - e->segment.vaddr), e->unwind.bytes,
	       e->unwind.size);
	memcpy(e->new_segment + (e->note_vaddr - e->segment.vaddr), e->note, e->note_size);
	/* Free these before the old part is built, which takes memory for every patched page. */
	free(e->unwind.bytes);
	free(e->note);
	e->unwind.bytes = e->note = NULL;
	rc = me_copy_write(e->cfg, &e->placement, &e->plan->redirects, e->new_segment,
			   &e->out->failed_at, err);
	return rc ? rc
		  : me_version_tables_write(e->cfg, &e->placement, &e->version_tables,
					    e->segment.vaddr, e->new_segment, err);
}

/* An output is another module, so it needs another build-id: a hash of its bytes. */
static int renew_build_id(struct me_emitter *e, struct mp_err *err)
{
	struct me_old_part part;
	uint32_t len = 0;
	uint8_t *desc = me_emitter_build_id(e, &len);
	int rc;

	if (!len)
		return 0;
	rc = me_old_part_init(&part, e->elf, e->old_part, e->segment.old_end);
	/* Else the id moved to the new segment. */
	if (!rc && desc >= e->old_part && desc < e->old_part + e->segment.old_end)
		me_old_part_note_change(&part, (size_t)(desc - e->old_part), len);
	for (uint32_t done = 0; !rc && done < len; done += sizeof(uint64_t)) {
		uint64_t seed = XXH3_64bits_withSeed(e->new_segment, e->new_segment_size, done);
		uint32_t n = len - done;
		uint64_t hash;

		rc = me_old_part_hash(&part, seed, &hash);
		if (!rc)
			memcpy(desc + done, &hash, n < sizeof(hash) ? n : sizeof(hash));
	}
	me_old_part_fini(&part);
	return rc ? mp_err_code(err, -rc) : 0;
}

/*
 * Move the bytes after the table of program headers to the new segment, and update
 * their program headers.
 */
static void displace(struct me_emitter *e)
{
	const struct me_displaced *d = &e->segment.displaced;

	if (!d->size)
		return;
	memcpy(e->new_segment + (d->new_vaddr - e->segment.vaddr), e->old_part + d->off, d->size);
	memset(e->old_part + d->off, 0, d->size);
	for (uint32_t i = 0; i < e->segment.nr_phdrs; i++) {
		Elf64_Phdr *p = &e->segment.phdrs[i];

		if (i == e->segment.slot || p->p_type == PT_LOAD ||
		    !me_displaced_holds(d, p->p_offset, p->p_filesz))
			continue;
		p->p_vaddr = p->p_vaddr - d->vaddr + d->new_vaddr;
		p->p_paddr = p->p_vaddr;
		p->p_offset = p->p_vaddr - e->segment.vaddr + e->segment.off;
	}
}

static void write_phdrs(struct me_emitter *e)
{
	uint64_t hdr_vaddr = e->unwind_vaddr + e->unwind.hdr_off;
	Elf64_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = e->segment.off,
		.p_vaddr = e->segment.vaddr,
		.p_paddr = e->segment.vaddr,
		.p_filesz = e->new_segment_size,
		.p_memsz = e->new_segment_size,
		.p_align = e->segment.align,
	};
	Elf64_Phdr eh_frame = {
		.p_type = PT_GNU_EH_FRAME,
		.p_flags = PF_R,
		.p_offset = hdr_vaddr - e->segment.vaddr + e->segment.off,
		.p_vaddr = hdr_vaddr,
		.p_paddr = hdr_vaddr,
		.p_filesz = e->unwind.hdr_size,
		.p_memsz = e->unwind.hdr_size,
		.p_align = 4,
	};
	Elf64_Phdr *phdrs = e->segment.phdrs;
	Elf64_Ehdr ehdr;

	phdrs[e->segment.slot] = load;
	if (e->segment.eh_frame_slot != ME_NO_SLOT)
		phdrs[e->segment.eh_frame_slot] = eh_frame;
	displace(e);
	memcpy(e->old_part + e->elf->ehdr.e_phoff, phdrs, e->segment.nr_phdrs * sizeof(*phdrs));
	memcpy(&ehdr, e->old_part, sizeof(ehdr));
	ehdr.e_phnum = (uint16_t)e->segment.nr_phdrs;
	memcpy(e->old_part, &ehdr, sizeof(ehdr));
}

static int build_old_part(struct me_emitter *e, struct mp_err *err)
{
	int rc;

	e->old_part = mp_elf_copy(e->elf, e->segment.old_end);
	if (!e->old_part)
		return mp_err_set(err, ENOMEM, "out of memory");
	rc = me_patch_image(e->cfg, &e->placement, &e->plan->redirects, e->old_part,
			    e->segment.old_end, &e->out->patches, err);
	if (rc)
		return rc;
	if (e->segment.eh_frame_slot == ME_NO_SLOT) {
		uint64_t eh_frame = e->unwind_vaddr + e->unwind.eh_frame_off;

		eh_frame += me_eh_startup_offset(e->elf,
						 e->new_segment + (eh_frame - e->segment.vaddr),
						 e->unwind.eh_frame_size);
		rc = me_patch_eh_frame(e->cfg, e->old_part, e->segment.old_end, eh_frame, err);
		if (rc)
			return rc;
	}
	if (e->answers.size) {
		rc = me_answers_write(e->cfg, &e->answers,
				      e->new_segment + (e->answers.vaddr - e->segment.vaddr),
				      e->old_part, e->segment.old_end, err);
		if (rc)
			return rc;
	}
	e->out->patches.nr_pointers += me_dynsym_write(e->cfg, &e->placement, &e->plan->redirects,
						       &e->sections, e->old_part,
						       e->segment.old_end);
	write_phdrs(e);
	if (e->added->nr_counters)
		rc = me_start_write(&e->start, e->added,
				    mp_edge_table_hash(e->table, e->table_size), e->runtime_vaddr,
				    e->segment.zeros, e->segment.zeros_size,
				    e->new_segment + (e->runtime_vaddr - e->segment.vaddr),
				    e->old_part, err);
	/* The hash reads all of the old part. */
	return rc ? rc : renew_build_id(e, err);
}

static void summarise(struct me_emitter *e)
{
	const struct me_placement *p = &e->placement;
	struct me_emitted *out = e->out;

	out->text_bytes = p->end - p->base;
	out->hot_bytes =
		(p->first_warm < p->nr_copies ? p->copies[p->first_warm].new_vaddr : p->end) -
		p->base;
	out->segment_bytes = e->new_segment_size;
	for (uint32_t i = 0; i < p->nr_copies; i++) {
		out->copies_bytes += p->copies[i].new_size;
		out->nr_via_slot += p->copies[i].via_slot;
		out->nr_inlined += p->copies[i].inlined && !p->copies[i].apart;
	}
	out->eh_frame_bytes = e->unwind.eh_frame_size + e->unwind.hdr_size;
	out->lsda_bytes = e->unwind.lsda_size;
	out->map_bytes = e->note_size;
	out->nr_inverted = p->nr_inverted;
	out->nr_jumps_added = p->nr_jumps_added;
	out->nr_jumps_dropped = p->nr_jumps_dropped;
	out->nr_redirected = e->plan->redirects.nr_functions;
	out->nr_fdes_new = e->unwind.nr_fdes_new;
	out->slot_replaced = e->segment.price;
}

/* Choose the new segment, and the addresses of all copies in it. */
static int place_copies(struct me_emitter *e, struct mp_err *err)
{
	const struct me_plan *plan = e->plan;
	const struct me_instrumentation *added = e->added;
	int rc = me_segment_choose(e->elf, plan->page_log2 ? UINT64_C(1) << plan->page_log2 : 0,
				   plan->live_at, &e->segment, err);

	if (!rc && added->nr_counters) {
		rc = me_start_find(e->elf, &e->start, err);
		if (!rc)
			rc = me_segment_reserve(e->elf, &e->segment, me_start_counters_size(added),
						err);
	}
	if (!rc)
		rc = me_sections_build(e->elf, &e->segment.displaced, &e->sections, err);
	if (!rc)
		rc = me_place(e->cfg, plan, added, e->segment.vaddr, &e->placement, err);
	if (!rc && added->nr_audited)
		rc = me_audit_ranges_encode(e->cfg, added->nr_audited, &e->placement,
					    &e->audit_table, &e->table_size, err);
	e->table = added->nr_audited ? e->audit_table : added->table;
	if (!added->nr_audited)
		e->table_size = added->table_size;
	e->placement.places.counters = e->segment.zeros;
	e->placement.places.state = e->segment.zeros + e->segment.zeros_size - ME_RUNTIME_PAGE;
	return rc;
}

int me_emitter_new(const struct mp_cfg *cfg, const struct me_plan *plan,
		   const struct me_instrumentation *added, struct me_emitter **out,
		   struct mp_err *err)
{
	static const struct me_instrumentation no_stubs;
	struct me_emitter *e = calloc(1, sizeof(*e));
	int rc;

	*out = NULL;
	if (!e)
		return mp_err_set(err, ENOMEM, "out of memory");
	e->cfg = cfg;
	e->elf = cfg->elf;
	e->plan = plan;
	e->added = added ? added : &no_stubs;
	rc = place_copies(e, err);
	if (rc)
		me_emitter_free(e);
	else
		*out = e;
	return rc;
}

const struct me_placement *me_emitter_placement(const struct me_emitter *e)
{
	return &e->placement;
}

/* Build the bytes that are loaded: the new segment and the old part. */
static int build_loaded(struct me_emitter *e, struct mp_err *err)
{
	int rc = build_unwind(e, err);

	if (!rc)
		rc = build_map(e, err);
	if (!rc)
		rc = build_new_segment(e, err);
	if (!rc)
		rc = build_old_part(e, err);
	if (!rc) {
		me_emitter_place_sections(e);
		me_emitter_move_sections(e);
	}
	return rc;
}

void me_emitter_free(struct me_emitter *e)
{
	if (!e)
		return;
	me_segment_fini(&e->segment);
	me_placement_fini(&e->placement);
	me_sections_fini(&e->sections);
	me_version_tables_fini(&e->version_tables);
	me_answers_fini(&e->answers);
	me_debug_free(e->debug);
	free(e->unwind.bytes);
	free(e->link);
	free(e->audit_table);
	free(e->note);
	if (e->old_part)
		munmap(e->old_part, e->segment.old_end);
	free(e->new_segment);
	free(e);
}

int me_emitter_write(struct me_emitter *e, const struct mp_elf *debug, const char *name,
		     struct me_emitted *out, struct mp_err *err)
{
	int rc;

	*out = (struct me_emitted){0};
	e->out = out;
	rc = build_loaded(e, err);
	if (!rc)
		rc = me_emitter_build_rest(e, debug, name, err);
	if (rc)
		me_emitted_fini(out);
	else
		summarise(e);
	return rc;
}

void me_emitted_fini(struct me_emitted *emitted)
{
	me_output_parts_fini(&emitted->output);
	me_output_parts_fini(&emitted->debug_output);
	me_patches_fini(&emitted->patches);
}
