// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_saves - copies that save registers later than the original: verify proves the good ones, and
 * refuses changed ones, and functions in which such copies would go wrong.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

#define FUNCTIONS                                                                                  \
	"python3 tests/data/save_functions.py %d %d >${TMPDIR:-/tmp}/morph-saves-%d.S && "         \
	"gcc -O2 %s tests/data/saves.c ${TMPDIR:-/tmp}/morph-saves-%d.S"

/* @nr random functions. */
static void build(struct pair *p, int variant, int nr)
{
	static const char *const flags[] = {"-fPIE -pie -s", "-fno-pie -no-pie -s",
					    "-fPIE -pie -Wl,--emit-relocs"};
	int pid = (int)getpid();
	char line[512];

	snprintf(line, sizeof(line), FUNCTIONS, variant + 1, nr, pid, flags[variant % 3], pid);
	pair_make(p, line, (uint64_t)variant + 1, PAIR_SAVES);
	snprintf(line, sizeof(line), "rm -f ${TMPDIR:-/tmp}/morph-saves-%d.S", pid);
	ck_assert_int_eq(system(line), 0);
}

/* Is the copy one `lea N(%rsp), %rsp` in place of pushes or pops? */
static bool is_step(const struct pair *p, const struct mp_map_piece *piece)
{
	const uint8_t *now = mp_elf_bytes(p->good, piece->new_vaddr, piece->new_size);
	const uint8_t *old = mp_elf_bytes(p->original, piece->old_vaddr, piece->old_size);

	return now && old && piece->new_size >= 5 && piece->old_size && now[0] == 0x48 &&
	       now[1] == 0x8d && (now[2] == 0x64 || now[2] == 0xa4) && now[3] == 0x24 &&
	       (piece->old_size < 5 || memcmp(now, old, 5));
}

START_TEST(verify_proves_saves_that_moved)
{
	uint32_t nr_steps = 0, nr_code = 0;
	struct pair p;

	build(&p, _i, 40);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		nr_steps += is_step(&p, &p.map->pieces[i]);
		nr_code += !p.map->pieces[i].old_size;
	}
	ck_assert_uint_ge(nr_steps, 20);
	ck_assert_uint_ge(nr_code, 10);
	ck_assert_uint_eq(p.report.nr_steps, nr_steps);
	pair_free(&p);
}
END_TEST

START_TEST(verify_refuses_changed_bits_of_steps_and_saves)
{
	struct pair p;
	uint32_t nr = 0;

	build(&p, _i, 12);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];

		if (piece->old_size && !is_step(&p, piece))
			continue;
		for (uint32_t bit = 0; bit < 8 * piece->new_size; bit++) {
			struct mp_err err;

			*pair_at(&p, piece->new_vaddr + bit / 8) ^= (uint8_t)(1 << bit % 8);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "bit %u of the piece at %#llx: accepted", bit,
				      (unsigned long long)piece->new_vaddr);
			pair_restore(&p);
			nr++;
		}
	}
	ck_assert_uint_ge(nr, 8 * 50);
	pair_free(&p);
}
END_TEST

/* All bytes of .eh_frame behind the FDEs of the original, but its end */
START_TEST(verify_refuses_changed_bits_of_rows)
{
	const struct mp_section *eh;
	struct pair p;
	size_t at;

	build(&p, _i, 6);
	eh = mp_elf_section(p.good, ".eh_frame");
	at = eh->off + mp_elf_section(p.original, ".eh_frame")->size;
	ck_assert_uint_ge(eh->off + eh->size - at, 200);
	for (; at + 4 < eh->off + eh->size; at++)
		for (int bit = 0; bit < 8; bit++) {
			struct mp_err err;

			p.bytes[at] ^= (uint8_t)(1 << bit);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "bit %d at %#zx of .eh_frame: accepted", bit, at - eh->off);
			p.bytes[at] ^= (uint8_t)(1 << bit);
		}
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

#define EARLY  "\x48\xb9\x88\x77\x66\x55\x44\x33\x22\x11"
#define LATE   "\x48\xb9\x11\x88\x77\x66\x55\x44\x33\x22"
#define HELPER "\x48\xba\x21\x43\x65\x87\x44\x33\x22\x12"

static const struct change changes[] = {
	{EARLY, 5, "\xb8\x01\x00\x00\x00", NULL},	/* mov $1, %eax */
	{EARLY, 5, "\x48\x8d\x74\x24\x08", NULL},	/* lea 8(%rsp), %rsi */
	{EARLY, 5, "\x48\x89\x5c\x24\x10", NULL},	/* mov %rbx, 16(%rsp) */
	{EARLY, 5, "\xbb\x01\x00\x00\x00", "changes"},	/* mov $1, %ebx */
	{EARLY, 5, "\x41\xb4\x01\x66\x90", "changes"},	/* mov $1, %r12b */
	{EARLY, 5, "\x48\x93\x0f\x1f\x00", "changes"},	/* xchg %rax, %rbx */
	{EARLY, 5, "\x5b\x53\x0f\x1f\x00", "changes"},	/* pop %rbx; push %rbx */
	{EARLY, 5, "\x48\x8b\x44\x24\x28", "place"},	/* mov 40(%rsp), %rax: where rbx is saved */
	{EARLY, 5, "\x8b\x44\x24\x34\x90", "place"},	/* mov 52(%rsp), %eax: the end of r12 */
	{EARLY, 5, "\x48\x89\x44\x24\x24", "place"},	/* mov %rax, 36(%rsp) */
	{EARLY, 5, "\x50\x0f\x1f\x40\x00", "distance"}, /* push %rax */
	{EARLY, 5, "\x48\x8d\x64\x24\xf8", "distance"}, /* lea -8(%rsp), %rsp */
	{EARLY, 5, "\x48\x89\xc4\x66\x90", "stack pointer"}, /* mov %rax, %rsp */
	{EARLY, 5, "\xc9\x0f\x1f\x40\x00", "changes"},	     /* leave; %rbp is not among them */
	{LATE, 3, "\x48\x89\xf8", NULL},		     /* mov %rdi, %rax */
	{LATE, 3, "\x48\x89\xfb", NULL},		     /* mov %rdi, %rbx */
	{HELPER, 3, "\x48\x89\xf0", NULL},		     /* mov %rsi, %rax */
	{HELPER, 3, "\x48\x89\xf3", "caller of a copy"},     /* mov %rsi, %rbx */
	{HELPER, 3, "\x49\x89\xf4", "caller of a copy"},     /* mov %rsi, %r12 */
	{HELPER, 3, "\x49\x89\xf5", NULL},		     /* mov %rsi, %r13 */
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

/* Does one step stand for both pushes and what follows them: 7 bytes? */
static bool moves_both(const struct pair *p)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (is_step(p, &p->map->pieces[i]) && p->map->pieces[i].old_size == 7 &&
		    *mp_elf_bytes(p->original, p->map->pieces[i].old_vaddr, 1) == 0x41)
			return p->report.nr_steps == 2;
	return false;
}

START_TEST(verify_wants_registers_that_nothing_changes)
{
	const struct change *c = &changes[_i];
	struct mp_elf *changed, *output;
	struct mp_err err = {""};
	uint8_t *original;
	uint64_t seed = 0;
	struct pair p;
	int rc;

	/* Until the saves of both registers, and their restores, are passed over */
	for (;;) {
		pair_make(&p, "gcc -pie tests/data/saves_forged.S", ++seed, PAIR_SAVES);
		if (moves_both(&p))
			break;
		pair_free(&p);
		ck_assert_uint_lt(seed, 200);
	}
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_uint_eq(change_all(original, p.original->size, c), 1);
	ck_assert_uint_ge(change_all(p.bytes, p.size, c), 1);
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

static Suite *verify_saves_suite(void)
{
	Suite *suite = suite_create("verify_saves");
	TCase *tc = tcase_create("verify_saves");

	tcase_add_loop_test(tc, verify_proves_saves_that_moved, 0, 6);
	tcase_add_loop_test(tc, verify_refuses_changed_bits_of_steps_and_saves, 0, 3);
	tcase_add_loop_test(tc, verify_refuses_changed_bits_of_rows, 0, 3);
	tcase_add_loop_test(tc, verify_wants_registers_that_nothing_changes, 0,
			    (int)(sizeof(changes) / sizeof(changes[0])));
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(verify_saves_suite)
