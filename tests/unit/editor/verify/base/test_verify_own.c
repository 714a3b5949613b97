// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_own - each byte of an output has one owner, the new segment's header has no free bits, and a map that is
 * made to cost time does not.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_map.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/read/verify_piece_index.h"
#include "tests/unit/verify_pair.h"

#define MUTANTS "g++ -O2 tests/data/mutants.cc"

TEST_EACH(verify_names_an_owner_of_each_byte, 9)
{
	static const enum pair_kind kinds[] = {PAIR_PLAIN, PAIR_COUNTS,	 PAIR_THREADS,
					       PAIR_PATHS, PAIR_POLLS,	 PAIR_AUDITS,
					       PAIR_CALLS, PAIR_INLINED, PAIR_METER};
	static const enum me_kind want[] = {ME_KIND_LAYOUT,  ME_KIND_COUNTS, ME_KIND_THREADS,
					    ME_KIND_NUMBERS, ME_KIND_POLLS,  ME_KIND_AUDIT,
					    ME_KIND_CALLS,   ME_KIND_LAYOUT, ME_KIND_METER};
	struct me_owned *owned;
	struct mp_err err;
	uint64_t at = 0;
	struct pair p;
	size_t nr;

	pair_make(&p, MUTANTS, 3, kinds[_i]);
	ck_assert_int_eq(p.report.kind, want[_i]);
	ck_assert_int_eq(me_verify_owners(p.original, p.good, &owned, &nr, &err), 0);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(owned[i].start, at);
		ck_assert_uint_gt(owned[i].end, at);
		at = owned[i].end;
	}
	ck_assert_uint_eq(at, p.good->size);
	at = 0;
	for (int i = 0; i < ME_NR_OWNERS; i++) {
		ck_assert_ptr_nonnull(me_owner_name(i));
		at += p.report.owned[i];
	}
	ck_assert_uint_eq(at, p.good->size);
	free(owned);
	pair_free(&p);
}

/* Of other alignments, the kernel would keep more address bits at 0, or not start the program. */
TEST(verify_refuses_another_alignment_or_place_of_the_segment)
{
	struct mp_err err;
	struct pair p;
	Elf64_Phdr *ph;

	pair_build(&p, MUTANTS, 0);
	ph = (Elf64_Phdr *)(p.bytes + p.good->ehdr.e_phoff);
	while (ph->p_type != PT_LOAD || ph->p_vaddr != mp_elf_section(p.good, ".morph.text")->vaddr)
		ph++;
	ck_assert_uint_eq(ph->p_align, 4096);
	for (unsigned int log2 = 0; log2 < 64; log2++) {
		ph->p_align = UINT64_C(1) << log2;
		ck_assert_int_eq(pair_verify(&p, p.size, &err), log2 == 12 ? 0 : -EBADMSG);
		ph->p_align |= 1 << 12;
		ck_assert_int_eq(pair_verify(&p, p.size, &err), log2 == 12 ? 0 : -EBADMSG);
	}
	ph->p_align = 0;
	pair_refused(&p, "misaligned");
	/* A segment that begins in the middle of a page maps the bytes before it, too. */
	ph->p_vaddr += 64;
	ph->p_paddr += 64;
	ph->p_offset += 64;
	ph->p_filesz -= 64;
	ph->p_memsz -= 64;
	ck_assert_int_ne(pair_verify(&p, p.size, &err), 0);
	pair_free(&p);
}

TEST(verify_refuses_bytes_behind_the_last_owner)
{
	struct mp_err err;
	struct mp_elf *longer;
	struct pair p;
	uint8_t *bytes;

	pair_build(&p, MUTANTS, 0);
	bytes = calloc(1, p.size + 8);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, p.bytes, p.size);
	ck_assert_int_eq(mp_elf_open_memory("longer", bytes, p.size + 8, MP_ELF_ALL, &longer, &err),
			 0);
	ck_assert_int_eq(me_verify(p.original, longer, NULL, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "belong to no section"));
	mp_elf_close(longer);
	free(bytes);
	pair_free(&p);
}

/* One int3 becomes a no-op, or one no-op becomes two shorter ones. */
TEST(verify_refuses_other_padding)
{
	struct me_owned *owned;
	uint32_t nr_tried = 0;
	struct mp_err err;
	struct pair p;
	size_t nr;

	pair_build(&p, MUTANTS, 3);
	ck_assert_int_eq(me_verify_owners(p.original, p.good, &owned, &nr, &err), 0);
	for (size_t i = 0; i < nr; i++) {
		if (owned[i].owner != ME_OWNER_PADDING || owned[i].end - owned[i].start < 2)
			continue;
		p.bytes[owned[i].start] = 0x90;
		pair_refused(&p, "neither a copy nor a stub");
		nr_tried++;
	}
	ck_assert_uint_gt(nr_tried, 0);
	free(owned);
	pair_free(&p);
}

/* ---- maps that are made to cost time --------------------------------------------------------- */

#define NR_EMPTY 400000u

/* The parts of a context that the index of pieces needs. Ends with close_index(). */
static void open_index(struct vf *vf, const struct pair *p, struct mp_err *err)
{
	const struct mp_section *text = mp_elf_section(p->original, ".text");

	*vf = (struct vf){.o = p->original, .n = p->good, .err = err, .nr_threads = 1};
	vf->now.text = mp_elf_section(p->good, ".morph.text");
	vf->old.text_start = text->vaddr;
	vf->old.text_end = text->vaddr + text->size;
	vf->old.texts[vf->old.nr_texts++] = (struct vf_range){vf->old.text_start, vf->old.text_end};
	vf->result = calloc(1, sizeof(*vf->result));
	vf->marks = calloc(1, sizeof(*vf->marks));
	vf->refusals = calloc(1, sizeof(*vf->refusals));
	vf->map = calloc(1, sizeof(*vf->map));
	ck_assert(vf->result && vf->marks && vf->refusals && vf->map);
	vf->map->pieces = calloc(NR_EMPTY + 3, sizeof(*vf->map->pieces));
	ck_assert_ptr_nonnull(vf->map->pieces);
}

static void close_index(struct vf *vf)
{
	free(vf->map->pieces);
	free(vf->map);
	free(vf->marks->common);
	free(vf->marks->pointer_now);
	free(vf->marks);
	free(vf->refusals);
	free(vf->result);
	vf_bits_fini(&vf->index.piece_start);
	vf_bits_fini(&vf->index.cloned);
	free(vf->index.piece_rank);
	free(vf->index.by_old);
	free(vf->index.next_copy);
	free(vf->index.empty);
	free(vf->index.inlined);
}

/* If each question looked at each piece, this test would not end. */
TEST(pieces_at_one_address_are_not_compared_one_by_one)
{
	uint64_t at, other;
	struct mp_err err;
	struct pair p;
	struct vf vf;

	pair_build(&p, MUTANTS, 0);
	open_index(&vf, &p, &err);
	at = vf.now.text->vaddr;
	other = vf.old.text_start + 1;
	for (uint32_t i = 0; i < NR_EMPTY; i++)
		vf.map->pieces[vf.map->nr_pieces++] =
			(struct mp_map_piece){at, 0, 1, vf.old.text_start};
	vf.map->pieces[vf.map->nr_pieces++] =
		(struct mp_map_piece){at, 1, 1, vf.old.text_start + 2};
	vf.map->pieces[vf.map->nr_pieces++] = (struct mp_map_piece){at + 1, 0, 1, other};
	vf.map->pieces[vf.map->nr_pieces++] = (struct mp_map_piece){at + 1, 1, 1, other};
	ck_assert_int_eq(vf_index_pieces(&vf), 0);
	for (uint32_t i = 0; i < NR_EMPTY; i++) {
		ck_assert(!vf_is_copy(&vf, other, at));
		ck_assert(vf_is_copy(&vf, other, at + 1));
		ck_assert(vf_is_copy(&vf, vf.old.text_start, at));
	}
	ck_assert(vf_is_copy(&vf, vf.old.text_start + 2, at));
	close_index(&vf);
	pair_free(&p);
}

/* Is @at the start of a block that has a copy? */
static bool find_block(const struct pair *p, uint64_t at, struct mp_map_piece *block)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (p->map->pieces[i].old_vaddr == at) {
			*block = p->map->pieces[i];
			return true;
		}
	return false;
}

/* The first part of a block of the original, up to a direct call of another block, and that block. */
static void find_call(const struct pair *p, struct mp_map_piece *caller,
		      struct mp_map_piece *callee)
{
	struct vf_insn insn;

	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		*caller = p->map->pieces[i];
		for (uint32_t k = 0; k < caller->old_size; k += insn.len) {
			uint64_t at = caller->old_vaddr + k;

			if (!vf_decode(mp_elf_bytes(p->original, at, 1), caller->old_size - k, at,
				       &insn))
				break;
			if (insn.kind != VF_CALL || insn.len != 5 ||
			    !find_block(p, insn.target, callee))
				continue;
			caller->old_size = k + insn.len;
			return;
		}
	}
	ck_abort_msg("no call");
}

/* Each pair of pieces looks like a call that is replaced by the same code, which is then none. */
TEST(code_in_place_of_calls_is_not_looked_at_again_and_again)
{
	struct mp_map_piece caller, callee;
	struct mp_err err = {""};
	struct pair p;
	struct vf vf;

	pair_build(&p, "g++ -O2 -fcf-protection=none tests/data/mutants.cc", 0);
	open_index(&vf, &p, &err);
	find_call(&p, &caller, &callee);
	caller.new_vaddr = vf.now.text->vaddr;
	caller.new_size = caller.old_size - 5;
	callee.new_vaddr = UINT64_MAX / 2;
	callee.new_size = callee.old_size;
	while (vf.map->nr_pieces < NR_EMPTY) {
		vf.map->pieces[vf.map->nr_pieces++] = caller;
		vf.map->pieces[vf.map->nr_pieces++] = callee;
	}
	ck_assert_int_eq(vf_find_inlined(&vf), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "again and again") != NULL, "%s", err.msg);
	close_index(&vf);
	pair_free(&p);
}

/* A message names a symbol, which costs a walk over all symbols: only the first one about a function has a message. */
TEST(verify_says_once_why_it_refuses_a_function)
{
	struct mp_err err = {""};
	uint64_t at, other;
	struct pair p;
	struct vf vf;

	pair_build(&p, MUTANTS, 0);
	open_index(&vf, &p, &err);
	vf.refusals->max = ME_MAX_REFUSED;
	at = vf.old.text_start;
	other = at + 1;
	ck_assert_int_eq(vf_refuse(&vf, at, "one"), -EBADMSG);
	ck_assert_int_eq(vf_go_on(&vf, -EBADMSG), 0);
	ck_assert_int_eq(vf_refuse(&vf, at, "two"), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, ": one"));
	ck_assert_uint_eq(vf.refusals->blamed, at);
	ck_assert_int_eq(vf_refuse(&vf, other, "three"), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, ": three"));
	ck_assert_uint_eq(vf.refusals->blamed, other);
	close_index(&vf);
	pair_free(&p);
}
