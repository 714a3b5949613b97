// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_place - data that knows a place inside a function: verify refuses copies of that function. The editor
 * makes none, so the place is written into the data of a good pair, in the original and the output alike.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

/* A copy of a file, to be changed. */
static uint8_t *copy_of(const struct mp_elf *elf)
{
	uint8_t *bytes = malloc(elf->size);

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, elf->data, elf->size);
	return bytes;
}

static uint64_t address_of(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].name && !strcmp(elf->symbols[i].name, name))
			return elf->symbols[i].vaddr;
	ck_abort_msg("no symbol %s", name);
	return 0;
}

/* Return: a place inside the function at @start at which a moved block begins. */
static uint64_t place_in(const struct pair *p, uint64_t start)
{
	const struct mp_fde *fde = mp_elf_fde_before(p->original, start);
	uint64_t place = 0;

	ck_assert(fde && fde->start == start);
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (p->map->pieces[i].old_vaddr - start - 16 < fde->size - 16 &&
		    p->map->pieces[i].old_vaddr > place)
			place = p->map->pieces[i].old_vaddr;
	ck_assert_msg(place, "the function did not move");
	return place;
}

/* Let the word at @vaddr hold the address @to. In a file that the loader moves, a relocation says so. */
static void write_address(const struct mp_elf *elf, uint8_t *bytes, uint64_t vaddr, uint64_t to)
{
	const struct mp_section *rela = mp_elf_section(elf, ".rela.dyn");
	uint64_t off;

	ck_assert(mp_elf_vaddr_to_off(elf, vaddr, &off));
	if (elf->ehdr.e_type == ET_EXEC) {
		memcpy(bytes + off, &to, sizeof(to));
		return;
	}
	ck_assert_ptr_nonnull(rela);
	for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= rela->size; k += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, bytes + rela->off + k, sizeof(r));
		if (r.r_offset != vaddr)
			continue;
		ck_assert_uint_eq(ELF64_R_TYPE(r.r_info), R_X86_64_RELATIVE);
		r.r_addend = (int64_t)to;
		memcpy(bytes + rela->off + k, &r, sizeof(r));
		return;
	}
	ck_abort_msg("no relocation");
}

static int verify(const struct pair *p, const uint8_t *original, const uint8_t *output,
		  struct mp_err *err)
{
	struct mp_elf *o, *n;
	int rc;

	ck_assert_int_eq(mp_elf_open_memory("o", original, p->original->size, MP_ELF_ALL, &o, err),
			 0);
	ck_assert_int_eq(mp_elf_open_memory("n", output, p->size, MP_ELF_ALL, &n, err), 0);
	rc = me_verify(o, n, NULL, err);
	mp_elf_close(o);
	mp_elf_close(n);
	return rc;
}

/* With fixed addresses, without relocations, or position-independent; a function without, or with, a jump by a table. */
TEST_EACH(verify_refuses_copies_of_a_function_of_which_data_knows_a_place, 4)
{
	static const char *const modes[] = {"-fno-pie -no-pie", "-fPIE -pie"};
	const char *name = _i & 2 ? "chooses" : "plain";
	struct mp_err err = {""};
	uint8_t *original, *output;
	uint64_t word, to;
	char line[200];
	struct pair p;

	snprintf(line, sizeof(line),
		 "gcc -O2 -fno-reorder-blocks-and-partition %s tests/data/own_code/places.c",
		 modes[_i & 1]);
	pair_build_as_it_is(&p, line, 0);
	ck_assert(!p.original->relinkable);
	original = copy_of(p.original);
	output = copy_of(p.good);
	ck_assert_msg(!verify(&p, original, output, &err), "%s", err.msg);
	to = place_in(&p, address_of(p.original, name));
	word = _i & 1 ? address_of(p.original, "pointers") + 8
		      : address_of(p.original, "numbers") + 40;
	write_address(p.original, original, word, to);
	write_address(p.good, output, word, to);
	ck_assert_msg(verify(&p, original, output, &err) == -EBADMSG, "%s in %s: accepted", name,
		      line);
	ck_assert_msg(strstr(err.msg, "may know places"), "%s in %s: '%s'", name, line, err.msg);
	free(original);
	free(output);
	pair_free(&p);
}
