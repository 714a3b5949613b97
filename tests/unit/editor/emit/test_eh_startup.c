// SPDX-License-Identifier: Apache-2.0
/*
 * test_eh_startup - where a stripped static program registers its .eh_frame with the unwinder:
 * the editor changes both places, and verify detects a wrong one.
 */
#include "tests/unit/suite.h"

#include "editor/emit/eh_startup.h"
#include "editor/optimize/optimize.h"
#include "editor/verify/verify.h"
#include "libprof/elf/elf.h"

static char exe[256], out[300];
static struct mp_elf *original;

static void build(const char *flags)
{
	const char *dir = getenv("TMPDIR");
	char line[1024];

	snprintf(exe, sizeof(exe), "%s/morph-register-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(out, sizeof(out), "%s.out", exe);
	snprintf(line, sizeof(line), "g++ -O2 %s -o %s tests/data/exceptions.cc", flags, exe);
	ck_assert_msg(system(line) == 0, "%s", line);
	ck_assert_msg(mp_elf_open(exe, MP_ELF_ALL, &original, &err) == 0, "%s", err.msg);
}

static void clear(void)
{
	mp_elf_close(original);
	unlink(exe);
	unlink(out);
}

static uint32_t word_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const uint8_t *bytes = mp_elf_bytes(elf, vaddr, 4);
	uint32_t word;

	ck_assert_ptr_nonnull(bytes);
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static int optimise(struct mp_err *err)
{
	struct me_optimize_options options = {
		.input = exe, .output = out, .all = true, .stress = true, .stress_seed = 7};
	AUTO(me_optimize_report_fini) struct me_optimize_report report = {0};
	int rc = me_optimize(&options, &report, err);

	return rc;
}

TEST(eh_startup_finds_both_operands)
{
	struct me_eh_startup found;
	const struct mp_section *sec;

	build("-static -s");
	sec = mp_elf_section(original, ".eh_frame");
	ck_assert_int_eq(me_eh_startup_find(original, &found), 0);
	ck_assert_uint_ne(found.fields[0], found.fields[1]);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(word_at(original, found.fields[i]), found.label);
	ck_assert_uint_lt(found.label - sec->vaddr, sec->size);
	clear();
}

TEST(eh_startup_finds_nothing_where_nothing_is_registered)
{
	static const char *const flags[] = {"-no-pie -fno-pie -s", "-s", "-static-pie -fPIE -s"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct me_eh_startup found;

		build(flags[i]);
		ck_assert_int_eq(me_eh_startup_find(original, &found), -ENOENT);
		clear();
	}
}

TEST(eh_startup_registers_what_lies_behind_its_label)
{
	static const char *const flags[] = {"-static -s", "-static -Wl,--emit-relocs"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const struct mp_section *sec;
		struct me_eh_startup found;

		build(flags[i]);
		sec = mp_elf_section(original, ".eh_frame");
		ck_assert_int_eq(me_eh_startup_find(original, &found), 0);
		/* The label lies behind _start's entry. The entries of a copy have the same order. */
		ck_assert_uint_gt(found.label, sec->vaddr);
		ck_assert_uint_eq(me_eh_startup_offset(
					  original, mp_elf_bytes(original, sec->vaddr, sec->size),
					  sec->size),
				  found.label - sec->vaddr);
		clear();
	}
	build("-no-pie -fno-pie");
	ck_assert_uint_eq(me_eh_startup_offset(original, (const uint8_t *)"", 1), 0);
	clear();
}

TEST(eh_startup_is_where_the_relocations_are)
{
	struct me_eh_startup found;

	build("-static -Wl,--emit-relocs");
	ck_assert_int_eq(me_eh_startup_find(original, &found), 0);
	for (int i = 0; i < 2; i++) {
		uint32_t nr;
		const struct mp_reloc *rel =
			mp_elf_relocs_in(original, found.fields[i], found.fields[i] + 4, &nr);

		ck_assert_uint_eq(nr, 1);
		ck_assert_uint_eq(rel->sym_value + (uint64_t)rel->addend, found.label);
	}
	clear();
}

/* With other start-up code the whole file is refused. */
TEST(optimize_refuses_other_start_up_code)
{
	for (int i = 0; i < 3; i++) {
		struct me_eh_startup found;
		struct mp_err err = {""};
		uint64_t off;
		FILE *f;

		build("-static -s");
		ck_assert_int_eq(me_eh_startup_find(original, &found), 0);
		/* Another register; another label; no call of the unwinder. */
		ck_assert(mp_elf_vaddr_to_off(original, found.fields[i == 1], &off));
		f = fopen(exe, "r+");
		ck_assert_ptr_nonnull(f);
		ck_assert_int_eq(fseek(f, (long)off - (i == 0), SEEK_SET), 0);
		if (i < 2) {
			fputc(i == 0 ? 0xba : 0x13, f);
		} else {
			for (int k = 0; k < 16; k++)
				fputc(0x90, f);
		}
		ck_assert_int_eq(fclose(f), 0);
		ck_assert_int_eq(optimise(&err), -EPERM);
		ck_assert_msg(strstr(err.msg, "registers .eh_frame"), "%s", err.msg);
		clear();
	}
}

TEST(verify_wants_both_operands_to_name_the_new_table)
{
	struct me_eh_startup found;
	struct mp_elf *output, *changed;
	uint8_t *bytes;

	build("-static -s");
	ck_assert_int_eq(me_eh_startup_find(original, &found), 0);
	ck_assert_msg(optimise(&err) == 0, "%s", err.msg);
	ck_assert_int_eq(mp_elf_open(out, MP_ELF_ALL, &output, &err), 0);
	ck_assert_int_eq(me_verify(original, output, NULL, &err), 0);
	bytes = malloc(output->size);
	ck_assert_ptr_nonnull(bytes);
	for (int i = 0; i < 2; i++) {
		uint32_t was = word_at(original, found.fields[i]);
		uint32_t now = word_at(output, found.fields[i]);
		uint32_t start = (uint32_t)mp_elf_section(output, ".eh_frame")->vaddr;
		/* The old value; _start's entry as well; one byte off; a change in each of the four
		 * bytes. */
		uint32_t words[] = {was,	  start,	  now + 1,	   now ^ 0x10,
				    now ^ 0x1000, now ^ 0x100000, now ^ 0x10000000};

		ck_assert_uint_gt(now, start);
		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
			uint64_t off;

			memcpy(bytes, output->data, output->size);
			ck_assert(mp_elf_vaddr_to_off(output, found.fields[i], &off));
			memcpy(bytes + off, &words[k], 4);
			ck_assert_int_eq(mp_elf_open_memory("changed", bytes, output->size,
							    MP_ELF_ALL, &changed, &err),
					 0);
			ck_assert_msg(me_verify(original, changed, NULL, &err) == -EBADMSG,
				      "field %d: %#x is accepted", i, words[k]);
			ck_assert_msg(strstr(err.msg, ".eh_frame"), "%s", err.msg);
			mp_elf_close(changed);
		}
	}
	free(bytes);
	mp_elf_close(output);
	clear();
}
