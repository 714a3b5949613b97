// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_forged - wrong outputs that look right: an editor could write every byte of them,
 * but elsewhere. Each is tried on files with and without relocations.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

#define MUTANTS "g++ -O2 tests/data/mutants.cc"
#define CONTROL "gcc -O2 tests/data/control.c"

static void build(struct pair *p, const char *program, int variant)
{
	char command[200];

	snprintf(command, sizeof(command), "%s%s", program,
		 variant & 1 ? " -fno-pie -no-pie" : " -fPIE -pie");
	if (variant & 2)
		pair_build_stock(p, command, 1);
	else
		pair_build(p, command, 1);
}

static int32_t get32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put32(uint8_t *p, int64_t v)
{
	int32_t w = (int32_t)v;

	memcpy(p, &w, sizeof(w));
}

static bool refused(struct pair *p)
{
	struct mp_err err;
	int rc = pair_verify(p, p->size, &err);

	pair_restore(p);
	return rc == -EBADMSG;
}

/* Finds conditional branches with 4-byte displacements at the end of copies. */
static uint32_t find_branches(struct pair *p, uint64_t *at, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces && nr < max; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];
		uint64_t end = piece->new_vaddr + piece->new_size;
		const uint8_t *b = piece->new_size >= 6 ? pair_at(p, end - 6) : NULL;

		if (b && b[0] == 0x0f && (b[1] & 0xf0) == 0x80)
			at[nr++] = end - 6;
	}
	return nr;
}

TEST_EACH(verify_refuses_swapped_targets_of_two_branches, 4)
{
	uint32_t nr, tried = 0;
	uint64_t at[256];
	struct pair p;

	build(&p, CONTROL, _i);
	nr = find_branches(&p, at, 256);
	for (uint32_t i = 1; i < nr; i++) {
		uint8_t *a = pair_at(&p, at[i - 1]) + 2, *b = pair_at(&p, at[i]) + 2;
		int64_t to_a = (int64_t)at[i - 1] + 6 + get32(a);
		int64_t to_b = (int64_t)at[i] + 6 + get32(b);

		if (to_a == to_b)
			continue;
		put32(a, to_b - (int64_t)at[i - 1] - 6);
		put32(b, to_a - (int64_t)at[i] - 6);
		ck_assert_msg(refused(&p), "branches at %#llx and %#llx",
			      (unsigned long long)at[i - 1], (unsigned long long)at[i]);
		tried++;
	}
	ck_assert_uint_gt(tried, 1);
	pair_free(&p);
}

TEST_EACH(verify_refuses_inverted_condition, 4)
{
	uint64_t at[256];
	struct pair p;
	uint32_t nr;

	build(&p, CONTROL, _i);
	nr = find_branches(&p, at, 256);
	ck_assert_uint_gt(nr, 1);
	for (uint32_t i = 0; i < nr; i++) {
		pair_at(&p, at[i])[1] ^= 1;
		ck_assert_msg(refused(&p), "branch at %#llx", (unsigned long long)at[i]);
	}
	pair_free(&p);
}

static bool is_patch(const struct pair *p, const struct mp_map_piece *piece)
{
	const uint8_t *a = mp_elf_bytes(p->original, piece->old_vaddr, 5);
	const uint8_t *b = mp_elf_bytes(p->good, piece->old_vaddr, 5);

	return a && b && piece->old_size >= 5 && a[0] != 0xe9 && b[0] == 0xe9;
}

/* Without a patch the old code still runs correctly. Half a patch is an error. */
TEST_EACH(verify_takes_a_missing_patch_but_not_half_a_one, 4)
{
	uint32_t tried = 0;
	struct pair p;

	build(&p, MUTANTS, _i);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];
		const uint8_t *old = mp_elf_bytes(p.original, piece->old_vaddr, 5);
		const uint8_t *good = mp_elf_bytes(p.good, piece->old_vaddr, 5);
		struct mp_err err = {""};

		if (!is_patch(&p, piece))
			continue;
		memcpy(pair_at(&p, piece->old_vaddr), old, 5);
		ck_assert_msg(pair_verify(&p, p.size, &err) == 0, "%s", err.msg);
		pair_restore(&p);
		for (size_t k = 1; k < 5; k++) {
			uint8_t *now = pair_at(&p, piece->old_vaddr);

			memcpy(now, old, k);
			if (!memcmp(now, old, 5) || !memcmp(now, good, 5))
				continue;
			ck_assert_msg(refused(&p), "%zu bytes at %#llx", k,
				      (unsigned long long)piece->old_vaddr);
		}
		pair_restore(&p);
		tried++;
	}
	ck_assert_uint_gt(tried, 3);
	pair_free(&p);
}

/* No jump may cover a label of the switch. */
TEST_EACH(verify_refuses_patch_over_a_label_of_a_table, 4)
{
	uint32_t tried = 0;
	struct pair p;

	build(&p, CONTROL, _i);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];

		/* A jump that begins before the block and ends behind its start. */
		for (uint64_t at = piece->old_vaddr - 4; at < piece->old_vaddr; at++) {
			uint8_t *b = pair_at(&p, at);

			b[0] = 0xe9;
			put32(b + 1, (int64_t)(piece->new_vaddr - at - 5));
			ck_assert_msg(refused(&p), "%#llx", (unsigned long long)at);
			tried++;
		}
		if (piece->old_size >= 5 || pair_is_function(&p, piece))
			continue;
		pair_at(&p, piece->old_vaddr)[0] = 0xe9;
		put32(pair_at(&p, piece->old_vaddr) + 1,
		      (int64_t)(piece->new_vaddr - piece->old_vaddr - 5));
		ck_assert_msg(refused(&p), "%#llx", (unsigned long long)piece->old_vaddr);
	}
	ck_assert_uint_gt(tried, 40);
	pair_free(&p);
}

/*
 * Clang lets impossible cases of a switch lead to the function's end, behind its last instruction.
 * Such an entry may stand in a table, but must not change.
 */
TEST(verify_refuses_another_target_of_an_impossible_case)
{
	const struct mp_section *sec;
	uint32_t tried = 0;
	struct pair p;

	build(&p, "clang -w -O2 tests/hazards/code/impossible.c", 0);
	ck_assert_uint_gt(p.report.nr_table_entries, 5);
	sec = mp_elf_section(p.original, ".rodata");
	ck_assert_ptr_nonnull(sec);
	for (uint32_t i = 0; i < p.original->nr_relocs; i++) {
		const struct mp_reloc *rel = &p.original->relocs[i];
		const uint8_t *old = mp_elf_bytes(p.original, rel->vaddr, 4);
		uint8_t *now;

		if (rel->vaddr - sec->vaddr >= sec->size || rel->type != R_X86_64_PC32)
			continue;
		now = pair_at(&p, rel->vaddr);
		if (memcmp(old, now, 4))
			continue;
		put32(now, get32(old) - 1);
		ck_assert_msg(refused(&p), "%#llx", (unsigned long long)rel->vaddr);
		tried++;
	}
	ck_assert_uint_gt(tried, 3);
	pair_free(&p);
}

/* An FDE and its entry in the search table agree with each other, but not with the code. */
TEST_EACH(verify_refuses_shifted_fde, 4)
{
	const struct mp_section *hdr;
	uint32_t tried = 0;
	struct pair p;

	build(&p, MUTANTS, _i);
	hdr = mp_elf_section(p.good, ".eh_frame_hdr");
	for (uint32_t i = 0; i < p.good->nr_fdes; i++) {
		const struct mp_fde *fde = &p.good->fdes[i];

		for (int by = -1; by <= 1; by += 2) {
			uint8_t *start = pair_at(&p, fde->fde_vaddr) + 8;
			uint8_t *entry = pair_at(&p, hdr->vaddr) + 12 + 8 * i;

			ck_assert_int_eq(get32(entry), (int32_t)(fde->start - hdr->vaddr));
			put32(start, get32(start) + by);
			put32(entry, get32(entry) + by);
			ck_assert_msg(refused(&p), "FDE of %#llx", (unsigned long long)fde->start);
			tried++;
		}
	}
	ck_assert_uint_gt(tried, 10);
	pair_free(&p);
}

static uint64_t get_uleb(const uint8_t **p)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		v |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return v;
	}
}

/* Removes the pads of the table at @vaddr, one at a time. Return: how many. */
static uint32_t drop_pads(struct pair *p, uint64_t vaddr)
{
	const uint8_t *at = mp_elf_bytes(p->good, vaddr, 1), *start = at, *end;
	uint32_t nr = 0;
	uint64_t len;

	at += *at == 0xff ? 1 : 5;
	if (*at++ != 0xff)
		get_uleb(&at);
	ck_assert_uint_eq(*at++, 0x01);
	len = get_uleb(&at);
	end = at + len;
	while (at < end) {
		const uint8_t *pad;

		get_uleb(&at);
		get_uleb(&at);
		pad = at;
		if (get_uleb(&at)) {
			uint8_t *b = pair_at(p, vaddr) + (pad - start);

			/* The value 0 in as many bytes as before. */
			for (; pad + 1 < at; pad++)
				*b++ = 0x80;
			*b = 0;
			ck_assert_msg(refused(p), "table at %#llx", (unsigned long long)vaddr);
			nr++;
		}
		get_uleb(&at);
	}
	return nr;
}

TEST_EACH(verify_refuses_dropped_landing_pad, 4)
{
	uint32_t nr = 0;
	struct pair p;

	build(&p, MUTANTS, _i);
	for (uint32_t i = 0; i < p.good->nr_fdes; i++)
		if (p.good->fdes[i].lsda &&
		    p.good->fdes[i].start >= mp_elf_section(p.good, ".morph.text")->vaddr)
			nr += drop_pads(&p, p.good->fdes[i].lsda);
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

/* The unwinder would dereference the pointers of an unwind table. */
TEST_EACH(verify_refuses_indirect_pointers, 4)
{
	const struct mp_section *sec;
	uint32_t tried = 0;
	struct pair p;

	build(&p, MUTANTS, _i);
	sec = mp_elf_section(p.good, ".eh_frame_hdr");
	pair_at(&p, sec->vaddr)[1] ^= 0x80;
	ck_assert(refused(&p));
	sec = mp_elf_section(p.good, ".eh_frame");
	for (uint64_t k = 0; k < sec->size; k++) {
		uint8_t *b = pair_at(&p, sec->vaddr + k);

		if (*b != 0x1b)
			continue;
		*b |= 0x80;
		ck_assert(refused(&p));
		tried++;
	}
	ck_assert_uint_gt(tried, 0);
	sec = mp_elf_section(p.good, ".gcc_except_table.morph");
	pair_at(&p, sec->vaddr)[0] ^= 0x80;
	ck_assert(refused(&p));
	pair_free(&p);
}

static uint64_t function_at(const struct pair *p, const char *name)
{
	for (uint32_t i = 0; i < p->original->nr_symbols; i++)
		if (!strcmp(p->original->symbols[i].name, name))
			return p->original->symbols[i].vaddr;
	ck_abort_msg("no symbol %s", name);
}

/* All of its operands that named the function at @old name @now. Return: how many. */
static uint32_t point_to(struct pair *p, const char *section, uint64_t old, uint64_t now)
{
	const struct mp_section *sec = mp_elf_section(p->good, section);
	uint32_t nr = 0;

	for (uint64_t at = sec->vaddr; at + 7 <= sec->vaddr + sec->size; at++) {
		uint8_t *b = pair_at(p, at);
		int32_t disp;

		memcpy(&disp, b + 3, sizeof(disp));
		if (b[0] != 0x48 || b[1] != 0x8d || (b[2] & 0xc7) != 5 ||
		    at + 7 + (uint64_t)(int64_t)disp != old)
			continue;
		disp += (int32_t)(now - old);
		memcpy(b + 3, &disp, sizeof(disp));
		nr++;
	}
	return nr;
}

/* Without relocations, data may hold the function's distance from any place. */
TEST(verify_refuses_moved_pointers_without_relocations)
{
	uint64_t old, now = 0;
	struct pair p;

	pair_make(&p, "gcc -O2 -fPIE -pie tests/data/offset_pointer.c", 0, PAIR_PLAIN);
	old = function_at(&p, "pointed");
	for (uint32_t i = 0; i < p.map->nr_pieces; i++)
		if (p.map->pieces[i].old_vaddr == old)
			now = p.map->pieces[i].new_vaddr;
	ck_assert(now && point_to(&p, ".morph.text", old, now) > 0);
	point_to(&p, ".text", old, now);
	pair_refused(&p, "");
	pair_free(&p);
}

/* With fixed addresses, any number may be the function's address. */
TEST(verify_refuses_moved_dynamic_symbols_of_fixed_addresses)
{
	const struct mp_symbol *copy = NULL;
	const struct mp_section *dynsym;
	Elf64_Sym symbol;
	struct pair p;
	uint64_t old;

	pair_make(&p, "gcc -O2 -fno-pie -no-pie -rdynamic tests/data/offset_pointer.c", 0,
		  PAIR_PLAIN);
	old = function_at(&p, "pointed");
	dynsym = mp_elf_section(p.good, ".dynsym");
	for (uint32_t i = 0; i < p.good->nr_symbols; i++)
		if (!strcmp(p.good->symbols[i].name, "pointed") && p.good->symbols[i].vaddr != old)
			copy = &p.good->symbols[i];
	ck_assert_ptr_nonnull(copy);
	for (uint64_t at = dynsym->off; at < dynsym->off + dynsym->size; at += sizeof(symbol)) {
		memcpy(&symbol, p.bytes + at, sizeof(symbol));
		if (symbol.st_value != old)
			continue;
		symbol.st_value = copy->vaddr;
		symbol.st_size = copy->size;
		symbol.st_shndx = (uint16_t)copy->shndx;
		memcpy(p.bytes + at, &symbol, sizeof(symbol));
	}
	pair_refused(&p, "no copy of its function");
	pair_free(&p);
}

/* Each entry is looked at once, whatever there is of names and operands. */
TEST_EACH(verify_refuses_changes_of_long_tables, 2)
{
	static const char *const links[] = {"-Wl,--emit-relocs", ""};
	const struct mp_section *sec;
	char command[160];
	struct pair p;
	uint8_t *at;

	snprintf(command, sizeof(command),
		 "gcc -O2 -fPIE -pie %s tests/data/offset_pointer.c tests/data/table_long.S",
		 links[_i]);
	pair_make(&p, command, 0, PAIR_PLAIN);
	sec = mp_elf_section(p.good, ".rodata");
	at = pair_at(&p, sec->vaddr + sec->size - 8);
	*at += 1;
	pair_refused(&p, _i ? "table" : "is no copy of");
	pair_free(&p);
}

/* Data that is not loaded: names, strings, symbols, comments, and gaps. */
TEST_EACH(verify_refuses_changes_of_what_is_not_loaded, 4)
{
	static const char *const names[] = {".comment", ".shstrtab", ".symtab", ".strtab"};
	uint32_t tried = 0;
	struct pair p;

	build(&p, MUTANTS, _i);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct mp_section *sec = mp_elf_section(p.good, names[i]);

		if (!sec)
			continue;
		p.bytes[sec->off + sec->size / 2] ^= 1;
		ck_assert_msg(refused(&p), "%s", names[i]);
		tried++;
	}
	ck_assert_uint_ge(tried, 2);
	/* A byte added at the end of the file. */
	p.bytes = realloc(p.bytes, p.size + 1);
	ck_assert_ptr_nonnull(p.bytes);
	p.bytes[p.size] = 1;
	p.size++;
	{
		struct mp_err err;

		ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
	}
	pair_free(&p);
}

/* In both files the program may write to its code. */
TEST_EACH(verify_refuses_copies_of_code_in_writable_memory, 4)
{
	struct mp_elf *kept;
	struct mp_err err;
	uint8_t *bytes;
	struct pair p;

	build(&p, CONTROL, _i);
	kept = p.original;
	bytes = malloc(kept->size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, kept->data, kept->size);
	for (uint32_t i = 0; i < kept->nr_phdrs; i++) {
		uint64_t at = kept->ehdr.e_phoff + i * sizeof(Elf64_Phdr);

		if (kept->phdrs[i].p_type != PT_LOAD || !(kept->phdrs[i].p_flags & PF_X))
			continue;
		bytes[at + offsetof(Elf64_Phdr, p_flags)] |= PF_W;
		p.bytes[at + offsetof(Elf64_Phdr, p_flags)] |= PF_W;
	}
	ck_assert_int_eq(mp_elf_open_memory("writable", bytes, kept->size, MP_ELF_ALL, &p.original,
					    &err),
			 0);
	pair_refused(&p, "writable");
	mp_elf_close(p.original);
	p.original = kept;
	free(bytes);
	pair_free(&p);
}

static uint64_t symbol(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, name))
			return elf->symbols[i].vaddr;
	ck_abort_msg("no symbol %s", name);
}

/*
 * The operand that names the table's middle may be the end of a search. Counted from there, an offset
 * seems to lead to another block; the program counts from the table's start.
 */
TEST_EACH(verify_refuses_offsets_counted_from_the_middle_of_a_table, 2)
{
	uint64_t middle, to, now = 0;
	uint32_t tried = 0;
	struct pair p;

	build(&p, "gcc tests/data/table_middle.S", _i);
	middle = symbol(p.original, "table") + 16;
	for (uint64_t at = middle; at < middle + 16; at += 4) {
		to = middle + (uint64_t)(int64_t)get32(mp_elf_bytes(p.original, at, 4));
		now = 0;
		for (uint32_t i = 0; i < p.map->nr_pieces && !now; i++)
			if (p.map->pieces[i].old_vaddr == to)
				now = p.map->pieces[i].new_vaddr;
		if (!now)
			continue;
		put32(pair_at(&p, at), (int64_t)(now - middle));
		ck_assert_msg(refused(&p), "%#llx", (unsigned long long)at);
		tried++;
	}
	ck_assert_uint_ge(tried, 3);
	pair_free(&p);
}

/* A program that changes a call's target may first read it. */
TEST_EACH(verify_refuses_changed_call_in_writable_memory, 2)
{
	uint64_t call, plain, now = 0;
	struct pair p;

	build(&p, "gcc -w -O2 -D_GNU_SOURCE tests/hazards/code/writable.c", _i);
	plain = symbol(p.original, "plain");
	call = symbol(p.original, "calls") + 4;
	ck_assert_uint_eq(*pair_at(&p, call), 0xe8);
	ck_assert_int_eq(get32(pair_at(&p, call + 1)), (int32_t)(plain - call - 5));
	for (uint32_t i = 0; i < p.map->nr_pieces && !now; i++)
		if (p.map->pieces[i].old_vaddr == plain)
			now = p.map->pieces[i].new_vaddr;
	ck_assert_uint_ne(now, 0);
	put32(pair_at(&p, call + 1), (int64_t)(now - call - 5));
	pair_refused(&p, "writable");
	pair_free(&p);
}

/* Bytes between two code segments are data, mostly tables. */
TEST(verify_takes_data_between_segments_with_code_for_data)
{
	struct pair p;

	build(&p, "gcc -w -O2 -static -D_GNU_SOURCE tests/hazards/code/writable.c", 1);
	ck_assert_uint_gt(p.report.nr_table_entries, 100);
	pair_free(&p);
}

struct segment_use {
	uint8_t mark; /* last byte of the nop behind the instruction */
	int at;	      /* distance of the byte before that nop */
	uint8_t was, now;
};

/* Changes the byte at every occurrence of the instruction. Return: number of occurrences. */
static int change_segment(uint8_t *bytes, size_t size, const struct segment_use *use)
{
	const uint8_t nop[] = {0x0f, 0x1f, 0x40, use->mark};
	int nr = 0;

	for (size_t i = 16; i + sizeof(nop) <= size; i++) {
		if (memcmp(bytes + i, nop, sizeof(nop)) || bytes[i - (size_t)use->at] != use->was)
			continue;
		bytes[i - (size_t)use->at] = use->now;
		nr++;
	}
	return nr;
}

/* Counters per thread use %gs, so an original that uses it must not have them. */
TEST_EACH(verify_refuses_counters_for_threads_where_the_original_uses_gs, 5)
{
	static const struct segment_use uses[] = {
		{0x11, 5, 0x2e, 0x65}, /* %cs:(%rsp), %gs:(%rsp) */
		{0x12, 1, 0xd0, 0xd8}, /* wrfsbase, wrgsbase */
		{0x13, 1, 0xa1, 0xa9}, /* pop %fs, %gs */
		{0x14, 1, 0xe0, 0xe8}, /* mov %eax, %fs, %gs */
		{0x15, 6, 157, 158},   /* another system call, arch_prctl(ARCH_SET_GS) */
	};
	struct mp_elf *changed;
	struct mp_err err = {""};
	uint8_t *original;
	struct pair p;

	pair_make(&p, "gcc -O2 -fPIE -pie -s tests/data/segment.c", 1, PAIR_THREADS);
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_int_ge(change_segment(original, p.original->size, &uses[_i]), 1);
	ck_assert_int_eq(mp_elf_open_memory("original", original, p.original->size, MP_ELF_ALL,
					    &changed, &err),
			 0);
	mp_elf_close(p.original);
	p.original = changed;
	ck_assert_int_ge(change_segment(p.bytes, p.size, &uses[_i]), 1);
	pair_name_original(&p, changed);
	pair_refused(&p, "%gs");
	pair_free(&p);
	free(original);
}
