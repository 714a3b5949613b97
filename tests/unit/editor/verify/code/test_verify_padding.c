// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_padding - jumps over functions that are smaller than a jump: the editor writes them where
 * the padding is nobody's, and verify refuses them everywhere else, whoever writes them.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

/* As in tests/data/padding.S. */
#define ENDBR	  3
#define LAST_FREE 4
#define SYMBOL	  10
#define OBJECT	  11
#define NR_CASES  22
#define NR_FORMS  4

/* Is the padding free in test @number? A symbol that is in no table any more names nothing. */
static bool is_free(int number)
{
	int in_case = number / NR_FORMS;

	return in_case <= LAST_FREE || ((in_case == SYMBOL || in_case == OBJECT) && number % 2);
}

static void build(struct pair *p, int number, enum pair_kind kind)
{
	static const char *const forms[NR_FORMS] = {"-pie", "-pie -s", "-pie -Wl,--emit-relocs",
						    "-no-pie -s"};
	char command[300];

	snprintf(command, sizeof(command),
		 "gcc -nostdlib %s -Wl,-e,start -Wl,--no-warn-rwx-segments -DCASE=%d "
		 "tests/data/padding.S",
		 forms[number % NR_FORMS], number / NR_FORMS);
	pair_make(p, command, 0, kind);
}

/* Return: the address of the function "tiny". */
static uint64_t find_tiny(const struct pair *p)
{
	static const uint8_t marker[] = {0xb8, 0x78, 0x56, 0x34, 0x12, 0xc3};
	const uint8_t *at = memmem(p->original->data, p->original->size, marker, sizeof(marker));
	uint64_t vaddr;

	ck_assert_ptr_nonnull(at);
	ck_assert(mp_elf_off_to_vaddr(p->original, (uint64_t)(at - p->original->data), &vaddr));
	return vaddr + 16;
}

/* Return: the copy of the block at @vaddr; NULL: there is none. */
static const struct mp_map_piece *copy_of(const struct pair *p, uint64_t vaddr)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (p->map->pieces[i].old_vaddr == vaddr && p->map->pieces[i].old_size)
			return &p->map->pieces[i];
	return NULL;
}

TEST_EACH(counting_versions_have_a_jump_where_the_padding_is_free, NR_CASES *NR_FORMS)
{
	uint64_t tiny;
	struct pair p;
	uint8_t *at;

	build(&p, _i, PAIR_COUNTS);
	tiny = find_tiny(&p);
	at = pair_at(&p, tiny);
	if (_i / NR_FORMS == ENDBR) {
		ck_assert_mem_eq(at, "\xf3\x0f\x1e\xfa", 4);
		at += 4;
	}
	ck_assert_msg((*at == 0xe9) == is_free(_i), "form %d of case %d: %#x", _i % NR_FORMS,
		      _i / NR_FORMS, *at);
	pair_free(&p);
}

TEST_EACH(versions_that_do_not_count_leave_small_functions, (LAST_FREE + 1) * NR_FORMS)
{
	struct pair p;
	uint64_t tiny;

	build(&p, _i, PAIR_PLAIN);
	tiny = find_tiny(&p);
	ck_assert_mem_eq(pair_at(&p, tiny), mp_elf_bytes(p.original, tiny, 16), 16);
	pair_free(&p);
}

/* The jump that the editor would write. */
TEST_EACH(verify_takes_a_jump_over_free_padding_only, NR_CASES *NR_FORMS)
{
	const struct mp_map_piece *copy;
	struct mp_err err = {""};
	uint64_t tiny, start;
	struct pair p;
	int32_t disp;
	uint8_t *at;
	int rc;

	build(&p, _i, PAIR_PLAIN);
	tiny = find_tiny(&p);
	copy = copy_of(&p, tiny);
	ck_assert_ptr_nonnull(copy);
	start = tiny + (_i / NR_FORMS == ENDBR ? 4 : 0);
	at = pair_at(&p, start);
	at[0] = 0xe9;
	disp = (int32_t)(copy->new_vaddr - start - 5);
	memcpy(at + 1, &disp, 4);
	rc = pair_verify(&p, p.size, &err);
	ck_assert_msg(is_free(_i) ? rc == 0 : rc == -EBADMSG, "form %d of case %d: %d, %s",
		      _i % NR_FORMS, _i / NR_FORMS, rc, err.msg);
	/* Nothing else may be written into the padding. */
	if (is_free(_i)) {
		at[5] ^= 1;
		ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
	}
	pair_free(&p);
}
