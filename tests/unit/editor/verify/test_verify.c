// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify - verify accepts what the editor writes and refuses each kind of damage, then
 * every changed byte of a small program.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

#define CONTROL	   "gcc -O2 -g tests/data/control.c"
#define IDENTITY   "gcc -O2 -rdynamic tests/data/identity.c"
#define TLS	   "gcc -O2 -pthread tests/data/tls.c"
#define EXCEPTIONS "g++ -O2 tests/data/exceptions.cc"

static bool is_jcc(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_COND_BR && insn->length == 6;
}

static bool is_short_jcc(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_COND_BR && insn->length == 2;
}

static bool is_call(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_CALL && insn->opcode == 0xe8;
}

static bool is_jump(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP && insn->opcode == 0xe9;
}

static bool is_rip_relative(const ZydisDecodedInstruction *insn)
{
	return (insn->attributes & ZYDIS_ATTRIB_HAS_MODRM) && insn->raw.modrm.mod == 0 &&
	       insn->raw.modrm.rm == 5;
}

static bool is_plain(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_ADD && insn->length == 3;
}

static void add32(uint8_t *field, int32_t by)
{
	int32_t v;

	memcpy(&v, field, 4);
	v += by;
	memcpy(field, &v, 4);
}

TEST_EACH(verify_accepts_outputs_of_every_link_variant, 9)
{
	static const char *const commands[] = {
		CONTROL " -no-pie -fno-pie",
		CONTROL " -static",
		CONTROL " -static-pie -fPIE",
		CONTROL " -shared -fPIC",
		EXCEPTIONS " -static",
		EXCEPTIONS " -no-pie -fno-pie",
		IDENTITY " -DWITH_IFUNC",
		CONTROL " -fcf-protection=full -Os",
		TLS " -pie -fPIE",
	};
	struct pair p;

	pair_build(&p, commands[_i], (uint64_t)_i);
	ck_assert_uint_gt(p.report.nr_pieces, 10);
	ck_assert_uint_gt(p.report.nr_insns, p.report.nr_pieces);
	ck_assert_uint_gt(p.report.nr_unwind_rows, p.report.nr_pieces);
	ck_assert_uint_gt(p.report.nr_patches, 0);
	pair_free(&p);
}

TEST(verify_tells_functions_of_one_name_apart)
{
	const struct mp_symbol *sym;
	uint32_t nr = 0;
	struct pair p;

	pair_build(&p, "gcc -O1 tests/data/namesake.c tests/data/namesake_too.c", 0);
	for (uint32_t i = 0; i < p.good->nr_symbols; i++) {
		sym = &p.good->symbols[i];
		nr += !strcmp(sym->name, "step") || !strcmp(sym->name, "step.morph.old");
	}
	ck_assert_uint_eq(nr, 3);
	pair_free(&p);
}

/* As in libmvec: a byte of the constant would be an operation elsewhere. */
TEST(verify_reads_unwind_expressions)
{
	bool copied = false;
	struct pair p;

	pair_build(&p, "gcc -O1 tests/data/expressions.c", 0);
	for (uint32_t i = 0; i < p.good->nr_symbols; i++)
		copied |= !strcmp(p.good->symbols[i].name, "aligned.morph.old");
	ck_assert(copied);
	pair_free(&p);
}

TEST(verify_refuses_flipped_branch)
{
	ZydisDecodedInstruction insn;
	struct pair p;
	uint64_t at;

	pair_build(&p, CONTROL, 0);
	at = pair_find(&p, is_jcc, &insn);
	ck_assert_uint_ne(at, 0);
	pair_at(&p, at)[1] ^= 1;
	pair_refused(&p, "leads to");
	at = pair_find(&p, is_short_jcc, &insn);
	if (at) {
		pair_at(&p, at)[0] ^= 1;
		pair_refused(&p, "leads to");
	}
	/* A completely different condition. */
	at = pair_find(&p, is_jcc, &insn);
	pair_at(&p, at)[1] ^= 2;
	pair_refused(&p, "condition");
	pair_free(&p);
}

TEST(verify_refuses_wrong_displacement)
{
	ZydisDecodedInstruction insn;
	struct pair p;
	uint64_t at;

	pair_build(&p, CONTROL, 3);
	at = pair_find(&p, is_call, &insn);
	ck_assert_uint_ne(at, 0);
	add32(pair_at(&p, at) + 1, 1);
	pair_refused(&p, "calls");
	at = pair_find(&p, is_jump, &insn);
	ck_assert_uint_ne(at, 0);
	add32(pair_at(&p, at) + 1, -2);
	pair_refused(&p, "leads to");
	at = pair_find(&p, is_jcc, &insn);
	add32(pair_at(&p, at) + 2, 1);
	pair_refused(&p, "leads to");
	at = pair_find(&p, is_rip_relative, &insn);
	ck_assert_uint_ne(at, 0);
	add32(pair_at(&p, at) + insn.raw.disp.offset, 8);
	pair_refused(&p, "operand names");
	pair_free(&p);
}

TEST(verify_refuses_clobbered_byte_in_copy_old_code_or_data)
{
	ZydisDecodedInstruction insn;
	const struct mp_section *sec;
	struct pair p;
	uint64_t at;

	pair_build(&p, CONTROL, 0);
	at = pair_find(&p, is_plain, &insn);
	ck_assert_uint_ne(at, 0);
	pair_at(&p, at)[2] ^= 8;
	pair_refused(&p, "instruction differs");
	sec = mp_elf_section(p.good, ".init");
	*pair_at(&p, sec->vaddr + 5) ^= 1;
	pair_refused(&p, "code changed");
	sec = mp_elf_section(p.good, ".rodata");
	*pair_at(&p, sec->vaddr) ^= 1;
	pair_refused(&p, "data changed");
	sec = mp_elf_section(p.good, ".data");
	*pair_at(&p, sec->vaddr) ^= 1;
	pair_refused(&p, "data changed");
	sec = mp_elf_section(p.good, ".dynsym");
	*pair_at(&p, sec->vaddr + sec->size - 12) ^= 1;
	pair_refused(&p, "a dynamic symbol");
	sec = mp_elf_section(p.good, ".rela.dyn");
	*pair_at(&p, sec->vaddr + 16) ^= 1;
	pair_refused(&p, "data changed");
	pair_free(&p);
}

/* Return: the length field of the new FDE that covers @vaddr. */
static uint8_t *new_fde(struct pair *p, uint64_t vaddr, struct mp_fde *fde)
{
	for (uint32_t i = 0; i < p->good->nr_fdes; i++) {
		*fde = p->good->fdes[i];
		if (vaddr - fde->start < fde->size)
			return pair_at(p, fde->fde_vaddr);
	}
	ck_abort_msg("a copy has no FDE");
	return NULL;
}

TEST(verify_refuses_missing_or_wrong_unwind_row)
{
	const struct mp_map_piece *piece;
	struct mp_fde fde;
	struct pair p;
	uint8_t *at, *hdr;
	uint32_t len, nr = 0, zero = 0;

	pair_build(&p, CONTROL, 0);
	/* Find an FDE with a program. */
	piece = &p.map->pieces[p.map->nr_pieces / 2];
	do {
		at = new_fde(&p, piece->new_vaddr, &fde);
		memcpy(&len, at, 4);
	} while (len < 24 && piece++ < &p.map->pieces[p.map->nr_pieces - 1]);
	/* The FDE ends four bytes early. */
	ck_assert_uint_gt(fde.size, 4);
	len = (uint32_t)fde.size - 4;
	memcpy(at + 12, &len, 4);
	pair_refused(&p, "FDE ends");
	/* The FDE is removed, also from the search table. */
	hdr = pair_at(&p, mp_elf_section(p.good, ".eh_frame_hdr")->vaddr);
	at = new_fde(&p, piece->new_vaddr, &fde);
	memcpy(at + 12, &zero, 4);
	pair_refused(&p, "FDE");
	add32(hdr + 8, -1);
	pair_refused(&p, "lists");
	/* Two entries of the search table are swapped. */
	for (int k = 0; k < 8; k++) {
		uint8_t swap = hdr[12 + k];

		hdr[12 + k] = hdr[20 + k];
		hdr[20 + k] = swap;
	}
	pair_refused(&p, "eh_frame_hdr");
	/* Each byte of the FDE's program that has a meaning. */
	at = new_fde(&p, piece->new_vaddr, &fde);
	memcpy(&len, at, 4);
	for (uint32_t k = 17; k < len + 4; k++) {
		struct mp_err err;

		at[k] ^= 0x11;
		nr += pair_verify(&p, p.size, &err) == -EBADMSG;
		pair_restore(&p);
	}
	ck_assert_uint_gt(nr, 3);
	pair_free(&p);
}

/* Return: a piece whose original is patched and has at least @room bytes. */
static const struct mp_map_piece *patched(struct pair *p, uint32_t room)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];
		const uint8_t *now = mp_elf_bytes(p->good, piece->old_vaddr, 1);

		if (piece->old_size >= room && now[0] == 0xe9 &&
		    mp_elf_bytes(p->original, piece->old_vaddr, 1)[0] != 0xe9)
			return piece;
	}
	ck_abort_msg("no patch with room");
	return NULL;
}

TEST(verify_refuses_patch_moved_by_one)
{
	const struct mp_map_piece *piece;
	struct pair p;
	uint8_t *at;

	pair_build(&p, CONTROL, 0);
	piece = patched(&p, 7);
	at = pair_at(&p, piece->old_vaddr);
	memmove(at + 1, at, 5);
	at[0] = mp_elf_bytes(p.original, piece->old_vaddr, 1)[0];
	add32(at + 2, -1);
	pair_refused(&p, "code changed");
	/* The right place, but the wrong copy. */
	at = pair_at(&p, piece->old_vaddr);
	add32(at + 1, 1);
	pair_refused(&p, "code changed");
	pair_free(&p);
}

TEST(verify_refuses_patch_beyond_its_block_or_over_a_target)
{
	const uint8_t *old;
	struct pair p;
	uint32_t nr = 0;

	/* If the editor did not patch an old start, a jump there must be refused. */
	pair_build(&p, CONTROL, 0);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];
		uint8_t *at = pair_at(&p, piece->old_vaddr);
		int32_t disp = (int32_t)(piece->new_vaddr - piece->old_vaddr - 5);
		struct mp_err err;

		old = mp_elf_bytes(p.original, piece->old_vaddr, 5);
		if (piece->old_size >= 5 || !old || at[0] == 0xe9 || pair_is_function(&p, piece))
			continue;
		at[0] = 0xe9;
		memcpy(at + 1, &disp, 4);
		ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
		pair_restore(&p);
		nr++;
	}
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

TEST(verify_refuses_table_entry_to_a_wrong_block)
{
	const struct mp_section *sec;
	struct pair p;
	uint32_t nr = 0;

	pair_build(&p, CONTROL, 0);
	sec = mp_elf_section(p.good, ".rodata");
	/* Entries of label tables count as addresses that change together. */
	ck_assert_uint_gt(p.report.nr_table_entries, 10);
	ck_assert_uint_gt(p.report.nr_table_entries + p.report.nr_pointers, 20);
	for (uint64_t k = 0; k + 8 <= sec->size; k += 4) {
		uint8_t *at = pair_at(&p, sec->vaddr + k);

		if (!memcmp(at, mp_elf_bytes(p.original, sec->vaddr + k, 4), 4) ||
		    !memcmp(at, at + 4, 4))
			continue;
		memcpy(at, at + 4, 4); /* the neighbour's target: a block, but the wrong one */
		if (!memcmp(at, mp_elf_bytes(p.original, sec->vaddr + k, 4), 4)) {
			pair_restore(&p);
			continue;
		}
		pair_refused(&p, "no copy of");
		nr++;
	}
	ck_assert_uint_gt(nr, 5);
	pair_free(&p);
}

TEST(verify_refuses_changed_landing_pad_or_type)
{
	const struct mp_section *sec;
	struct pair p;
	uint32_t nr = 0;

	pair_build(&p, EXCEPTIONS, 0);
	sec = mp_elf_section(p.good, ".gcc_except_table.morph");
	ck_assert_ptr_nonnull(sec);
	ck_assert_uint_gt(p.report.nr_landing_pads, 5);
	for (uint64_t k = 0; k < sec->size; k++) {
		struct mp_err err;

		*pair_at(&p, sec->vaddr + k) ^= 0x05;
		nr += pair_verify(&p, p.size, &err) == -EBADMSG;
		pair_restore(&p);
	}
	/* Padding, and entries that no copied instruction uses, may change. */
	ck_assert_msg(nr * 10 >= sec->size * 8, "%u of %llu refused", nr,
		      (unsigned long long)sec->size);
	pair_free(&p);
}

TEST(verify_refuses_changed_program_headers)
{
	Elf64_Phdr *ph;
	struct pair p;

	pair_build(&p, CONTROL, 0);
	for (uint32_t i = 0; i < p.good->nr_phdrs; i++) {
		size_t off = p.good->ehdr.e_phoff + i * sizeof(*ph);
		uint32_t type = p.good->phdrs[i].p_type;
		struct mp_err err;

		ph = (Elf64_Phdr *)(p.bytes + off);
		ph->p_flags ^= PF_W;
		ck_assert_msg(pair_verify(&p, p.size, &err), "flags of type %#x", type);
		pair_restore(&p);
		ph->p_vaddr += 0x1000;
		ck_assert_msg(pair_verify(&p, p.size, &err), "address of type %#x", type);
		pair_restore(&p);
		ph->p_type = PT_NULL;
		ck_assert_msg(pair_verify(&p, p.size, &err), "type %#x", type);
		pair_restore(&p);
	}
	pair_free(&p);
}

TEST(verify_refuses_truncated_output)
{
	struct mp_err err;
	struct pair p;

	pair_build(&p, CONTROL, 0);
	for (size_t size = 0; size < p.size; size += p.size / 64)
		ck_assert_int_ne(pair_verify(&p, size, &err), 0);
	ck_assert_int_ne(pair_verify(&p, p.size - 1, &err), 0);
	pair_free(&p);
}

TEST(verify_refuses_map_of_another_original)
{
	struct pair a, b;
	struct mp_err err;

	pair_build(&a, CONTROL, 0);
	pair_build(&b, IDENTITY, 0);
	ck_assert_int_eq(me_verify(b.original, a.good, NULL, &err), -EBADMSG);
	ck_assert_int_eq(me_verify(a.original, a.original, NULL, &err), -EBADMSG);
	pair_free(&a);
	pair_free(&b);
}

static bool in_build_id(const struct pair *p, uint64_t off)
{
	const struct mp_section *sec = mp_elf_section(p->original, ".note.gnu.build-id");

	return sec && off >= sec->off + 16 && off < sec->off + sec->size;
}

/* No byte of the original, and no byte of a copy, may change. */
TEST(verify_refuses_every_single_changed_byte)
{
	uint64_t end = 0, accepted = 0, tried = 0;
	unsigned int rng = 1;
	struct pair p;

	pair_build(&p, "gcc -O1 tests/data/frames.c", 5);
	for (uint32_t i = 0; i < p.original->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &p.original->phdrs[i];

		if (ph->p_type == PT_LOAD && ph->p_offset + ph->p_filesz > end)
			end = ph->p_offset + ph->p_filesz;
	}
	for (uint64_t off = sizeof(Elf64_Ehdr); off < p.size; off++) {
		uint64_t vaddr;
		bool copy = false;
		struct mp_err err;

		if (off >= end && mp_elf_off_to_vaddr(p.good, off, &vaddr))
			for (uint32_t i = 0; i < p.map->nr_pieces && !copy; i++)
				copy = vaddr - p.map->pieces[i].new_vaddr <
				       p.map->pieces[i].new_size;
		if ((off >= end && !copy) || in_build_id(&p, off))
			continue;
		rng = rng * 1103515245u + 12345u;
		p.bytes[off] ^= (uint8_t)((rng >> 16 & 0xff) | 1);
		tried++;
		if (!pair_verify(&p, p.size, &err)) {
			printf("byte at %#llx may change\n", (unsigned long long)off);
			fflush(stdout);
			accepted++;
		}
		p.bytes[off] = p.good->data[off];
	}
	ck_assert_uint_gt(tried, 10000);
	ck_assert_uint_eq(accepted, 0);
	pair_free(&p);
}
