// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_count - stubs that count in another counter, or for another place than the table of a meter says, are
 * refused; and a meter has no more places than eight.
 */
#include "editor/verify/stubs/verify_count.h"

#include <errno.h>
#include <unistd.h>

#include "libprof/note/edge_table.h"
#include "tests/unit/suite.h"
#include "tests/unit/verify_pair.h"

/* The displacement of the counter in the stub @piece, and the counter's number. Return: false: it is no such stub. */
static bool counts(struct pair *p, const struct mp_map_piece *piece, uint8_t **field,
		   uint64_t *counter)
{
	uint64_t base = mp_elf_section(p->good, ".morph.counters")->vaddr, at = piece->new_vaddr;
	const uint8_t *b;
	int32_t disp;

	if (piece->old_size || !piece->new_size)
		return false;
	b = pair_at(p, at);
	if (!memcmp(b, "\xf3\x0f\x1e\xfa", 4))
		at += 4;
	if (*pair_at(p, at) == 0xf0)
		at++;
	*field = pair_at(p, at) + 3;
	if (memcmp(*field - 3, "\x48\xff\x05", 3))
		return false;
	memcpy(&disp, *field, sizeof(disp));
	*counter = (at + 7 + (uint64_t)(int64_t)disp - base) / 8;
	return true;
}

static void shift(uint8_t *field, int64_t by)
{
	int32_t disp;

	memcpy(&disp, field, sizeof(disp));
	disp += (int32_t)by;
	memcpy(field, &disp, sizeof(disp));
}

static uint32_t find_stubs(struct pair *p, const struct mp_map_piece **stubs, uint8_t **fields,
			   uint64_t *counters, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces && nr < max; i++)
		if (counts(p, &p->map->pieces[i], &fields[nr], &counters[nr]))
			stubs[nr++] = &p->map->pieces[i];
	return nr;
}

TEST(verify_refuses_a_stub_of_a_meter_that_counts_in_another_counter)
{
	const struct mp_map_piece *stubs[MP_METER_PLACES_MAX + 1];
	uint8_t *fields[MP_METER_PLACES_MAX + 1];
	uint64_t counters[MP_METER_PLACES_MAX + 1];
	uint32_t nr, nr_exchanged = 0;
	struct pair p;

	pair_make(&p, "g++ -O2 tests/data/mutants.cc", 0, PAIR_METER);
	nr = find_stubs(&p, stubs, fields, counters, MP_METER_PLACES_MAX + 1);
	ck_assert_uint_eq(nr, MP_METER_PLACES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t k = 0; k < nr; k++) {
			int64_t by = 8 * ((int64_t)counters[k] - (int64_t)counters[i]);

			if (i == k)
				continue;
			/* two stubs in one counter */
			shift(fields[i], by);
			pair_refused(&p, "a stub counts in ");
			if (stubs[i]->old_vaddr == stubs[k]->old_vaddr)
				continue;
			/* two stubs that have exchanged their counters */
			shift(fields[i], by);
			shift(fields[k], -by);
			pair_refused(&p, "a stub counts in the counter of another place");
			nr_exchanged++;
		}
		/* a place that has no counter, in the same page */
		shift(fields[i], 8 * (int64_t)(nr - counters[i]));
		pair_refused(&p, "a stub counts outside the counters");
		shift(fields[i], 4);
		pair_refused(&p, "a stub counts outside the counters");
	}
	ck_assert_uint_gt(nr_exchanged, 20);
	pair_free(&p);
}

/* Each: `test` replaces the flags that a counter changed, so that the counter may stand there. */
#define MAIN	 "	.globl main\n	.type main, @function\nmain:\n	.cfi_startproc\n"
#define END	 "	ret\n	.cfi_endproc\n"
#define TEST_EAX "	test %eax, %eax\n	setl %al\n"
#define SETS	 "	cmp $5, %edi\n	jg 1f\n	cmp %esi, %edi\n	je 1f\n	cmp $3, %edi\n1:"
#define STACK	 "	.section .note.GNU-stack, \"\", @progbits\n"
static const char *const passing[] = {
	/* to a label without unwind information */
	MAIN SETS "	jmp label\n	.cfi_endproc\n	.p2align 4\nlabel:	" TEST_EAX
		  "	ret\n" STACK,
	/* to a callee, which jumps on */
	MAIN
	"	sub $8, %rsp\n	.cfi_adjust_cfa_offset 8\n" SETS
	"	call next\n	add $8, %rsp\n	.cfi_adjust_cfa_offset -8\n" END
	"	.p2align 4\nnext:	.cfi_startproc\n	mov $1, %eax\n	jmp last\n	.cfi_endproc\n"
	"	.p2align 4\nlast:	.cfi_startproc\n" TEST_EAX END STACK,
	/* to a caller */
	MAIN "	call sets\n" TEST_EAX END
	     "	.p2align 4\nsets:	.cfi_startproc\n" SETS END STACK,
	/* to a caller without unwind information, by way of two functions */
	MAIN "	jmp bare\n	.cfi_endproc\n	.p2align 4\nbare:	call leads\n" TEST_EAX
	     "	ret\n	.p2align 4\nleads:	.cfi_startproc\n	call sets\n" END
	     "	.p2align 4\nsets:	.cfi_startproc\n" SETS END STACK,
	/* to the caller of a callee that changes no flags */
	MAIN SETS "	call moves\n" TEST_EAX END
		  "	.p2align 4\nmoves:	.cfi_startproc\n	mov $40, %eax\n" END STACK,
};

/* mov %eax, %eax in place of each test: what follows reads the flags that it finds. Return: how often. */
static unsigned int replace_tests(uint8_t *bytes, size_t size)
{
	static const char test[] = "\x85\xc0\x0f\x9c\xc0";
	unsigned int nr = 0;
	uint8_t *at;

	for (; (at = memmem(bytes, size, test, 5)); nr++)
		*at = 0x89;
	return nr;
}

TEST(verify_refuses_counters_that_change_flags_which_other_code_reads)
{
	const char *dir = getenv("TMPDIR");

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		char source[256], command[300];
		struct mp_err err = {""};
		struct mp_elf *changed;
		uint8_t *original;
		struct pair p;
		FILE *f;

		snprintf(source, sizeof(source), "%s/morph-label-%d.s", dir ? dir : "/tmp",
			 (int)getpid());
		f = fopen(source, "w");
		ck_assert(f && fputs(passing[i], f) >= 0 && !fclose(f));
		snprintf(command, sizeof(command), "gcc %s", source);
		pair_make(&p, command, 0, PAIR_COUNTS);
		unlink(source);
		original = malloc(p.original->size);
		ck_assert_ptr_nonnull(original);
		memcpy(original, p.original->data, p.original->size);
		ck_assert_uint_eq(replace_tests(original, p.original->size), 1);
		ck_assert_uint_ge(replace_tests(p.bytes, p.size), 1);
		ck_assert_int_eq(mp_elf_open_memory("original", original, p.original->size,
						    MP_ELF_ALL, &changed, &err),
				 0);
		mp_elf_close(p.original);
		p.original = changed;
		pair_name_original(&p, changed);
		ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG, "%zu: accepted", i);
		ck_assert_msg(strstr(err.msg, "a stub changes flags that are read"), "%zu: %s", i,
			      err.msg);
		pair_free(&p);
		free(original);
	}
}

/* The runtime would write where code that jumps here may have left values. */
TEST(verify_refuses_a_check_of_the_thread_that_does_not_spare_the_red_zone)
{
	static const char lower[] = "\x48\x8d\x64\x24\x80\xe8";
	struct mp_err err = {""};
	unsigned int nr = 0;
	struct pair p;
	uint8_t *at;

	pair_make(&p, "g++ -O2 tests/data/mutants.cc", 0, PAIR_THREADS);
	ck_assert_msg(pair_verify(&p, p.size, &err) == 0, "%s", err.msg);
	for (at = p.bytes; (at = memmem(at, p.size - (size_t)(at - p.bytes), lower, 6)); at++) {
		/* lea -112(%rsp), then a no-op of the same length. */
		at[4] = (uint8_t)-112;
		ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
		memcpy(at, "\x0f\x1f\x44\x00\x00", 5);
		ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
		memcpy(at, lower, 5);
		nr++;
	}
	ck_assert_uint_gt(nr, 0);
	ck_assert_msg(pair_verify(&p, p.size, &err) == 0, "%s", err.msg);
	pair_free(&p);
}

/* What all edges count may change places: the table says what the numbers mean, and the program is the same. */
TEST(verify_accepts_stubs_of_all_edges_that_exchange_their_counters)
{
	const struct mp_map_piece *stubs[2];
	uint8_t *fields[2];
	uint64_t counters[2];
	struct mp_err err = {""};
	struct pair p;

	pair_make(&p, "g++ -O2 tests/data/mutants.cc", 0, PAIR_COUNTS);
	ck_assert_uint_eq(find_stubs(&p, stubs, fields, counters, 2), 2);
	shift(fields[0], 8 * ((int64_t)counters[1] - (int64_t)counters[0]));
	shift(fields[1], 8 * ((int64_t)counters[0] - (int64_t)counters[1]));
	ck_assert_int_eq(pair_verify(&p, p.size, &err), 0);
	pair_free(&p);
}

/* Lets the name of the table's section be that of the other kind of table, with the same bytes. */
static void rename_table(struct pair *p, const char *from, const char *to)
{
	const struct mp_section *names = &p->good->sections[p->good->ehdr.e_shstrndx];
	char *name = memmem(p->bytes + names->off, names->size, from, strlen(from) + 1);

	ck_assert_ptr_nonnull(name);
	ck_assert_uint_eq(strlen(from), strlen(to));
	strcpy(name, to);
}

TEST(verify_refuses_a_table_of_edges_as_that_of_a_meter)
{
	struct mp_err err = {""};
	struct pair p;

	pair_make(&p, "g++ -O2 tests/data/mutants.cc", 0, PAIR_COUNTS);
	rename_table(&p, MP_EDGE_TABLE_SECTION, MP_METER_TABLE_SECTION);
	ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "too many places"), "%s", err.msg);
	pair_free(&p);
}
