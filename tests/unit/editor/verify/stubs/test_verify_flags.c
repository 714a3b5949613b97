// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_flags - the search for code that reads flags is limited for all stubs of a function together.
 */
#include "editor/verify/stubs/verify_flags.h"

#include <errno.h>
#include <unistd.h>

#include "tests/unit/suite.h"
#include "tests/unit/verify_pair.h"

static const char test_edi_eax[] = "\x85\xf8";

/*
 * main has @nr labels in a row, to each of which a branch leads: "test %edi, %eax" stands at each, so that the flags are
 * dead there at once.
 */
static void write_chain(FILE *f, uint32_t nr)
{
	fputs("	.globl main\n	.type main, @function\nmain:\n	.cfi_startproc\n", f);
	for (uint32_t i = 0; i < nr; i++)
		fprintf(f, "	cmp $%u, %%edi\n	je .L%u\n", i, i);
	fputs("	xor %eax, %eax\n	ret\n", f);
	for (uint32_t i = 0; i < nr; i++)
		fprintf(f, ".L%u:	test %%edi, %%eax\n", i);
	fputs("	xor %eax, %eax\n	ret\n	.cfi_endproc\n	.size main, .-main\n"
	      "	.section .note.GNU-stack, \"\", @progbits\n",
	      f);
}

/* "mov %edi, %eax" in place of each "test": from each label on, flags stay until the last one is passed. */
static uint32_t forge(uint8_t *bytes, size_t size)
{
	uint32_t nr = 0;
	uint8_t *at;

	while ((at = memmem(bytes, size, test_edi_eax, 2))) {
		*at = 0x89;
		nr++;
	}
	return nr;
}

/* Makes the edges of the chain count, forges both files, and verifies them. */
static int verify_chain(uint32_t nr, enum pair_kind kind, struct mp_err *err)
{
	const char *dir = getenv("TMPDIR");
	char source[256], command[300];
	struct mp_elf *changed;
	uint8_t *original;
	struct pair p;
	int rc;
	FILE *f;

	snprintf(source, sizeof(source), "%s/morph-chain-%d.s", dir ? dir : "/tmp", (int)getpid());
	f = fopen(source, "w");
	ck_assert_ptr_nonnull(f);
	write_chain(f, nr);
	ck_assert_int_eq(fclose(f), 0);
	snprintf(command, sizeof(command), "gcc %s", source);
	pair_make(&p, command, 0, kind);
	unlink(source);
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_uint_eq(forge(original, p.original->size), nr);
	ck_assert_uint_ge(forge(p.bytes, p.size), nr);
	ck_assert_int_eq(mp_elf_open_memory("original", original, p.original->size, MP_ELF_ALL,
					    &changed, err),
			 0);
	mp_elf_close(p.original);
	p.original = changed;
	pair_name_original(&p, changed);
	rc = pair_verify(&p, p.size, err);
	pair_free(&p);
	free(original);
	return rc;
}

/* n labels are n * (n + 1) / 2 instructions, in about 13 n bytes of code. */
TEST_EACH(verify_follows_flags_in_steps_by_the_size_of_a_function, 2)
{
	static const enum pair_kind kinds[] = {PAIR_COUNTS, PAIR_THREADS};
	unsigned long long nr_steps;
	struct mp_err err = {""};
	const char *steps;

	ck_assert_msg(!verify_chain(100, kinds[_i], &err), "%s", err.msg);
	ck_assert_int_eq(verify_chain(1000, kinds[_i], &err), -EBADMSG);
	steps = strstr(err.msg, "takes more than ");
	ck_assert_msg(steps != NULL, "%s", err.msg);
	ck_assert_int_eq(sscanf(steps, "takes more than %llu steps to find out", &nr_steps), 1);
	/* main has between 9 and 14 bytes for each label. */
	ck_assert_uint_ge(nr_steps, 16 * 1000 * 9);
	ck_assert_uint_le(nr_steps, 16 * 1000 * 14 + 256);
}
