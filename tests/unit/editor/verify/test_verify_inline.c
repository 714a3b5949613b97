// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_inline - functions that replace calls of them in copies: verify proves the good ones, and refuses
 * changed ones, and functions and callers of other kinds.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

#define SITES_MAX 200

static const char *const builds[] = {
	"gcc -O2 -fPIE -pie tests/data/leaf.c",
	"gcc -O2 -fno-pie -no-pie tests/data/leaf.c",
	"gcc -O2 -fPIE -pie -fcf-protection tests/data/leaf.c",
	"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions tests/data/leaf.c",
};

#define NR_BUILDS ((int)(sizeof(builds) / sizeof(builds[0])))

static void build(struct pair *p, int variant, uint64_t seed)
{
	char line[512];

	snprintf(line, sizeof(line), "%s %s", builds[variant / 2],
		 variant & 1 ? "-Wl,--emit-relocs" : "-s");
	pair_make(p, line, seed, PAIR_INLINED);
}

/* Return: where the call at the end of the original of @piece leads, if its copy lacks that call; else 0. */
static uint64_t lacking(const struct pair *p, const struct mp_map_piece *piece)
{
	const uint8_t *call;
	int32_t disp;

	if (piece->old_size < 5 || piece->new_size != piece->old_size - 5)
		return 0;
	call = mp_elf_bytes(p->original, piece->old_vaddr + piece->old_size - 5, 5);
	if (!call || *call != 0xe8)
		return 0;
	memcpy(&disp, call + 1, sizeof(disp));
	return piece->old_vaddr + piece->old_size + (uint64_t)(int64_t)disp;
}

/* The pieces that replace a call. */
static uint32_t find_sites(const struct pair *p, const struct mp_map_piece **sites)
{
	uint32_t nr = 0;

	for (uint32_t i = 1; i < p->map->nr_pieces && nr < SITES_MAX; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];
		uint64_t to = lacking(p, piece - 1);

		if (to && piece->old_vaddr - to <= 4)
			sites[nr++] = piece;
	}
	return nr;
}

START_TEST(verify_proves_functions_in_place_of_calls)
{
	const struct mp_map_piece *sites[SITES_MAX];
	struct pair p;
	uint32_t nr, nr_empty = 0;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++)
		nr_empty += !sites[i]->new_size;
	ck_assert_uint_ge(nr, 9);
	ck_assert_uint_ge(nr_empty, 1);
	ck_assert_uint_eq(p.report.nr_inlined, nr);
	pair_free(&p);
	for (uint64_t seed = 1; seed < 4; seed++) {
		build(&p, _i, seed);
		pair_free(&p);
	}
}
END_TEST

START_TEST(verify_refuses_changed_bits_of_inlined_code)
{
	const struct mp_map_piece *sites[SITES_MAX];
	struct pair p;
	uint32_t nr;

	build(&p, _i, 1);
	nr = find_sites(&p, sites);
	ck_assert_uint_ge(nr, 1);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t bit = 0; bit < 8 * sites[i]->new_size; bit++) {
			uint64_t at = sites[i]->new_vaddr + bit / 8;
			struct mp_err err;

			*pair_at(&p, at) ^= (uint8_t)(1 << bit % 8);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "bit %u at %#llx: accepted", bit % 8, (unsigned long long)at);
			pair_restore(&p);
		}
	pair_free(&p);
}
END_TEST

/* Puts the code of another inlined function of the same length there. */
START_TEST(verify_refuses_another_function)
{
	const struct mp_map_piece *sites[SITES_MAX];
	uint32_t nr, nr_exchanged = 0;
	struct pair p;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = i + 1; k < nr; k++) {
			uint8_t *a = pair_at(&p, sites[i]->new_vaddr);
			const uint8_t *b = pair_at(&p, sites[k]->new_vaddr);
			struct mp_err err;

			if (!sites[i]->new_size || sites[i]->new_size != sites[k]->new_size ||
			    !memcmp(a, b, sites[i]->new_size))
				continue;
			memcpy(a, b, sites[i]->new_size);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "accepted at %#llx", (unsigned long long)sites[i]->new_vaddr);
			pair_restore(&p);
			nr_exchanged++;
		}
	ck_assert_uint_ge(nr_exchanged, 1);
	pair_free(&p);
}
END_TEST

/* A change of the original: @size bytes before the constant, in all places of both files. */
struct change {
	const char *constant;
	size_t size;
	const char *code;
	const char *word; /* of the refusal; NULL: accepted */
};

#define LEAF   "\x48\xb9\x88\x77\x66\x55\x44\x33\x22\x11"
#define CALLER "\x48\xb9\x11\x88\x77\x66\x55\x44\x33\x22"

static const struct change changes[] = {
	{LEAF, 3, "\x48\x89\xf0", NULL},	      /* mov %rsi, %rax */
	{LEAF, 3, "\x48\x89\xe0", "stack pointer"},   /* mov %rsp, %rax */
	{LEAF, 3, "\x48\x89\xc4", "stack pointer"},   /* mov %rax, %rsp */
	{LEAF, 3, "\x40\x88\xe0", "stack pointer"},   /* mov %spl, %al */
	{LEAF, 3, "\x8b\x04\x24", "stack pointer"},   /* mov (%rsp), %eax */
	{LEAF, 3, "\x50\x58\x90", "kind"},	      /* push %rax; pop %rax */
	{LEAF, 3, "\x0f\x05\x90", "kind"},	      /* syscall */
	{LEAF, 3, "\x0f\x31\x90", "kind"},	      /* rdtsc */
	{LEAF, 3, "\xff\xd0\x90", "kind"},	      /* call *%rax */
	{LEAF, 3, "\xc9\x90\x90", "kind"},	      /* leave */
	{LEAF, 3, "\xcc\x90\x90", "kind"},	      /* int3 */
	{LEAF, 3, "\x9c\x9d\x90", "kind"},	      /* pushf; popf */
	{CALLER, 5, "\x48\x8d\x74\x24\x10", NULL},    /* lea 16(%rsp), %rsi */
	{CALLER, 5, "\x48\x8d\x74\x24\xf8", "below"}, /* lea -8(%rsp), %rsi */
	{CALLER, 5, "\x48\x89\x74\x24\xf8", "below"}, /* mov %rsi, -8(%rsp) */
	{CALLER, 5, "\x48\x8b\x74\x24\x80", "below"}, /* mov -128(%rsp), %rsi */
	{CALLER, 5, "\x48\x8b\x74\xfc\x08", "below"}, /* mov 8(%rsp,%rdi,8), %rsi */
};

static uint32_t change_all(uint8_t *bytes, size_t size, const struct change *c)
{
	uint32_t nr = 0;

	for (size_t i = c->size; i + 10 <= size; i++)
		if (!memcmp(bytes + i, c->constant, 10)) {
			memcpy(bytes + i - c->size, c->code, c->size);
			nr++;
		}
	return nr;
}

START_TEST(verify_wants_a_plain_function_and_a_plain_caller)
{
	const struct change *c = &changes[_i];
	struct mp_elf *changed, *output;
	struct mp_err err = {""};
	uint8_t *original;
	struct pair p;
	int rc;

	pair_make(&p, "gcc -pie tests/data/leaf_forged.S", 0, PAIR_INLINED);
	ck_assert_uint_eq(p.report.nr_inlined, 2);
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_uint_eq(change_all(original, p.original->size, c), 1);
	/* The copy and two in place of calls, as a patch lies over the old code; of the caller, both */
	ck_assert_uint_eq(change_all(p.bytes, p.size, c), !strcmp(c->constant, LEAF) ? 3 : 2);
	ck_assert_int_eq(mp_elf_open_memory("original", original, p.original->size, MP_ELF_ALL,
					    &changed, &err),
			 0);
	pair_name_original(&p, changed);
	ck_assert_int_eq(mp_elf_open_memory("output", p.bytes, p.size, MP_ELF_ALL, &output, &err),
			 0);
	rc = me_verify(changed, output, NULL, &err);
	if (c->word)
		ck_assert_msg(rc == -EBADMSG && strstr(err.msg, c->word), "%d: %s", rc, err.msg);
	else
		ck_assert_msg(rc == 0, "%s", err.msg);
	mp_elf_close(output);
	mp_elf_close(changed);
	free(original);
	pair_free(&p);
}
END_TEST

static Suite *verify_inline_suite(void)
{
	Suite *suite = suite_create("verify_inline");
	TCase *tc = tcase_create("verify_inline");

	tcase_add_loop_test(tc, verify_proves_functions_in_place_of_calls, 0, 2 * NR_BUILDS);
	tcase_add_loop_test(tc, verify_refuses_changed_bits_of_inlined_code, 0, 2 * NR_BUILDS);
	tcase_add_loop_test(tc, verify_refuses_another_function, 0, 2 * NR_BUILDS);
	tcase_add_loop_test(tc, verify_wants_a_plain_function_and_a_plain_caller, 0,
			    (int)(sizeof(changes) / sizeof(changes[0])));
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(verify_inline_suite)
