// SPDX-License-Identifier: Apache-2.0
/* test_verify_answers - outputs that answer for copies which function encloses an address: each byte of that is needed. */
#include "tests/unit/suite.h"

#include <elf.h>

#include "tests/unit/verify_pair.h"

static const char *const flags[] = {
	"-fPIE -pie",
	"-fPIE -pie -s",
	"-fPIE -pie -fno-plt",
	"-fno-pie -no-pie -fno-plt -Wl,--emit-relocs",
	"-fPIE -pie -Wl,-z,lazy -fcf-protection",
};

#define NR_FLAGS (int)(sizeof(flags) / sizeof(flags[0]))

static void build(struct pair *p, int i)
{
	char line[512];

	snprintf(line, sizeof(line), "gcc -O2 %s tests/data/own_code/enclosing.c", flags[i]);
	pair_build_as_it_is(p, line, (uint64_t)i);
}

static void change(struct pair *p, uint64_t off, uint8_t bit)
{
	struct mp_err err = {""};

	p->bytes[off] ^= bit;
	ck_assert_msg(pair_verify(p, p->size, &err), "byte %#llx", (unsigned long long)off);
	p->bytes[off] ^= bit;
}

TEST_EACH(verify_refuses_other_answers, NR_FLAGS)
{
	const struct mp_section *answers, *frames;
	struct pair p;

	build(&p, _i);
	answers = mp_elf_section(p.good, ".morph.enclosing");
	ck_assert_ptr_nonnull(answers);
	for (uint64_t k = 0; k < answers->size; k++)
		change(&p, answers->off + k, (uint8_t)(1 << k % 8));
	/* The unwind information of the code comes last. */
	frames = mp_elf_section(p.good, ".eh_frame");
	for (uint64_t k = frames->size - 48; k < frames->size; k++)
		change(&p, frames->off + k, (uint8_t)(1 << k % 8));
	pair_free(&p);
}

/* Asking as before would tell of copies. */
TEST_EACH(verify_refuses_questions_as_before, NR_FLAGS)
{
	const struct mp_section *answers;
	uint32_t nr = 0;
	struct pair p;

	build(&p, _i);
	answers = mp_elf_section(p.good, ".morph.enclosing");
	for (uint64_t off = 0; off + 6 <= p.original->size; off++) {
		const uint8_t *was = p.original->data + off;
		uint8_t *now = p.bytes + off;
		uint64_t vaddr, end;
		int32_t disp;

		if (was[0] != 0xff || (was[1] != 0x15 && was[1] != 0x25) || !memcmp(was, now, 6) ||
		    !mp_elf_off_to_vaddr(p.good, off, &vaddr))
			continue;
		end = vaddr + (was[1] == 0x15 ? 6 : 5);
		memcpy(&disp, p.good->data + off + (end - vaddr) - 4, 4);
		if (end + (uint64_t)(int64_t)disp != answers->vaddr)
			continue;
		nr++;
		for (int k = 0; k < 6; k++)
			change(&p, off + (uint64_t)k, 4);
		memcpy(now, was, 6);
		pair_refused(&p, "not for copies");
	}
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

/* Without the answers, functions of which the program takes the address have no copies. */
TEST(verify_refuses_copies_without_answers)
{
	const struct mp_section *answers;
	struct pair p;
	char *name;

	build(&p, 0);
	answers = mp_elf_section(p.good, ".morph.enclosing");
	name = memmem(p.bytes, p.size, ".morph.enclosing", sizeof(".morph.enclosing"));
	ck_assert_ptr_nonnull(answers);
	ck_assert_ptr_nonnull(name);
	name[7] = 'E';
	pair_refused(&p, "may look for a moved function");
	pair_free(&p);
}
