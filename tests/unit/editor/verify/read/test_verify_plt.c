// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_plt - calls and jumps of copies that go through the slot of a PLT stub: verify proves
 * the good ones, and refuses each wrong one.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

#define SITES_MAX 2000

static const char *const builds[] = {
	"gcc -O2 -fPIE -pie tests/data/plt.c -Wl,-z,lazy",
	"gcc -O2 -fPIE -pie tests/data/plt.c -Wl,-z,now",
	"gcc -O2 -fno-pie -no-pie tests/data/plt.c",
	"gcc -O2 -fPIE -pie -fcf-protection tests/data/plt.c -Wl,-z,ibtplt,-z,lazy",
	"gcc -O2 -static tests/data/plt.c",
};

#define NR_BUILDS ((int)(sizeof(builds) / sizeof(builds[0])))

static void build(struct pair *p, int variant, uint64_t seed)
{
	if (variant & 1)
		pair_build(p, builds[variant / 2], seed);
	else
		pair_build_stock(p, builds[variant / 2], seed);
}

/* A branch through a slot: offset @at of its piece. */
struct site {
	const struct mp_map_piece *piece;
	uint32_t at;
	bool jump;
	uint64_t slot;
};

static uint64_t leads_to(const uint8_t *field, uint64_t end)
{
	int32_t disp;

	memcpy(&disp, field, sizeof(disp));
	return end + (uint64_t)(int64_t)disp;
}

/* Finds pieces whose original ends in a call or jump of 5 bytes, where the copy has 6 other bytes. */
static uint32_t find_sites(struct pair *p, struct site *sites)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces && nr < SITES_MAX; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];
		uint32_t at = piece->old_size - 5;
		const uint8_t *old, *new;

		if (piece->old_size < 5 || piece->new_size < at + 6)
			continue;
		old = mp_elf_bytes(p->original, piece->old_vaddr + at, 5);
		new = pair_at(p, piece->new_vaddr + at);
		if ((old[0] == 0xe8 && new[0] == 0xff && new[1] == 0x15) ||
		    (old[0] == 0xe9 && new[0] == 0xff && new[1] == 0x25))
			sites[nr++] = (struct site){piece, at, old[0] == 0xe9,
						    leads_to(new + 2, piece->new_vaddr + at + 6)};
	}
	return nr;
}

TEST_EACH(verify_proves_branches_through_slots, 2 * NR_BUILDS)
{
	static struct site sites[SITES_MAX];
	uint32_t nr, nr_jumps = 0;
	struct pair p;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++)
		nr_jumps += sites[i].jump;
	ck_assert_uint_ge(nr, 5);
	/* A static program calls only those functions so whose code is chosen at run time. */
	if (_i / 2 != 4)
		ck_assert_uint_ge(nr_jumps, 1);
	ck_assert_uint_eq(p.report.nr_via_slot, nr);
	pair_free(&p);
}

static void must_refuse(struct pair *p, const struct site *site, const char *what)
{
	struct mp_err err;
	int rc = pair_verify(p, p->size, &err);

	ck_assert_msg(rc == -EBADMSG, "%s at %#llx: accepted", what,
		      (unsigned long long)(site->piece->new_vaddr + site->at));
	pair_restore(p);
}

static void put_slot(struct pair *p, const struct site *site, uint64_t slot)
{
	uint64_t at = site->piece->new_vaddr + site->at;
	int32_t disp = (int32_t)(int64_t)(slot - at - 6);

	memcpy(pair_at(p, at) + 2, &disp, sizeof(disp));
}

/* Few sites of a static program are enough. */
static uint32_t some(uint32_t nr)
{
	return nr < 20 ? nr : 20;
}

TEST_EACH(verify_refuses_another_slot, 2 * NR_BUILDS - 2)
{
	static struct site sites[SITES_MAX];
	static const int wrong[] = {-8, -1, 1, 8};
	struct pair p;
	uint32_t nr;

	build(&p, _i, 1);
	nr = find_sites(&p, sites);
	ck_assert_uint_ge(nr, 5);
	for (uint32_t i = 0; i < some(nr); i++) {
		for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
			put_slot(&p, &sites[i], sites[i].slot + (uint64_t)(int64_t)wrong[k]);
			must_refuse(&p, &sites[i], "a slot nearby");
		}
		for (uint32_t k = 0; k < nr; k++) {
			if (sites[k].slot == sites[i].slot)
				continue;
			put_slot(&p, &sites[i], sites[k].slot);
			must_refuse(&p, &sites[i], "the slot of another stub");
			break;
		}
	}
	pair_free(&p);
}

TEST_EACH(verify_refuses_another_instruction, 2 * NR_BUILDS - 2)
{
	/* bytes 0 and 1: inc, lcall, jmp, ljmp, push; call and jmp of a register; not ff */
	static const uint8_t forms[][2] = {{0xff, 0x05}, {0xff, 0x1d}, {0xff, 0x25}, {0xff, 0x2d},
					   {0xff, 0x35}, {0xff, 0x15}, {0xff, 0xd0}, {0xff, 0xe0},
					   {0x8b, 0x15}, {0xff, 0x14}, {0xff, 0x95}};
	static struct site sites[SITES_MAX];
	struct pair p;
	uint32_t nr;

	build(&p, _i, 1);
	nr = find_sites(&p, sites);
	ck_assert_uint_ge(nr, 5);
	for (uint32_t i = 0; i < some(nr); i++) {
		uint64_t at = sites[i].piece->new_vaddr + sites[i].at;

		for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
			uint8_t *b = pair_at(&p, at);

			if (!memcmp(b, forms[k], 2))
				continue;
			memcpy(b, forms[k], 2);
			must_refuse(&p, &sites[i], "another instruction");
		}
		/* A direct call, whose target is the stub, is as good, but one byte shorter. */
		*pair_at(&p, at) = 0xe8;
		must_refuse(&p, &sites[i], "a direct call");
	}
	pair_free(&p);
}

TEST_EACH(verify_refuses_changed_bits_of_the_branch, 2 * NR_BUILDS - 2)
{
	static struct site sites[SITES_MAX];
	struct pair p;
	uint32_t nr;

	build(&p, _i, 1);
	nr = find_sites(&p, sites);
	ck_assert_uint_ge(nr, 5);
	for (uint32_t i = 0; i < (nr < 5 ? nr : 5); i++)
		for (int bit = 0; bit < 6 * 8; bit++) {
			uint64_t at = sites[i].piece->new_vaddr + sites[i].at;

			pair_at(&p, at)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			must_refuse(&p, &sites[i], "a changed bit");
		}
	pair_free(&p);
}

/* The stub of @site in both files. */
struct stub {
	uint8_t *original; /* in a private copy of the original */
	uint8_t *output;
	uint64_t vaddr;
};

static struct stub find_stub(struct pair *p, const struct site *site, uint8_t *original)
{
	uint64_t from = site->piece->old_vaddr + site->at, off;
	uint64_t to = leads_to(mp_elf_bytes(p->original, from + 1, 4), from + 5);

	ck_assert(mp_elf_vaddr_to_off(p->original, to, &off));
	return (struct stub){original + off, pair_at(p, to), to};
}

/* Return: result of verify for the changed original and the changed output. Restores both. */
static int verify_both(struct pair *p, uint8_t *original, struct mp_err *err)
{
	struct mp_elf *changed, *output;
	int rc = mp_elf_open_memory("original", original, p->original->size, MP_ELF_ALL, &changed,
				    err);

	ck_assert_int_eq(rc, 0);
	pair_name_original(p, changed);
	rc = mp_elf_open_memory("output", p->bytes, p->size, MP_ELF_ALL, &output, err);
	ck_assert_int_eq(rc, 0);
	rc = me_verify(changed, output, NULL, err);
	mp_elf_close(output);
	mp_elf_close(changed);
	memcpy(original, p->original->data, p->original->size);
	pair_restore(p);
	return rc;
}

/* A file may have any code where a stub is expected: only the plain jump is a stub. */
TEST_EACH(verify_wants_a_plain_jump_at_the_stub, 2 * NR_BUILDS - 2)
{
	static const uint8_t wrong[][7] = {
		{0x3e, 0xff, 0x25}, /* notrack */
		{0x90, 0xff, 0x25}, /* something before the jump */
		{0xf3, 0xff, 0x25}, /* another prefix */
		{0xff, 0x15},	    /* a call */
		{0xff, 0x24, 0x25}, /* an absolute address */
		{0x49, 0xff, 0x25}, /* REX */
		{0xff, 0xe0},	    /* through a register */
		{0xe9},		    /* direct */
	};
	static struct site sites[SITES_MAX];
	struct mp_err err = {""};
	uint8_t *original;
	struct pair p;

	build(&p, _i, 1);
	ck_assert_uint_ge(find_sites(&p, sites), 5);
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_int_eq(verify_both(&p, original, &err), 0);
	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		struct stub stub = find_stub(&p, &sites[0], original);
		size_t endbr = stub.output[0] == 0xf3 && stub.output[1] == 0x0f ? 4 : 0;
		size_t len = wrong[k][2] ? 3 : wrong[k][1] ? 2 : 1;

		memcpy(stub.output + endbr, wrong[k], len);
		memcpy(stub.original + endbr, wrong[k], len);
		ck_assert_msg(verify_both(&p, original, &err) == -EBADMSG, "stub %zu is accepted",
			      k);
		ck_assert_msg(strstr(err.msg, "differs from the one") ||
				      strstr(err.msg, "does not end in a jump"),
			      "stub %zu: %s", k, err.msg);
	}
	free(original);
	pair_free(&p);
}
