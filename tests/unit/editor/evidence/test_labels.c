// SPDX-License-Identifier: Apache-2.0
/*
 * test_labels - interpreters with computed goto: their labels move with them, and verify checks
 * all uses.
 */
#include "tests/unit/suite.h"

#include <errno.h>
#include <sys/stat.h>

#include "libprof/cfg/cfg.h"
#include "tests/unit/verify_pair.h"

static const char *const compilers[] = {"gcc", "clang"};
/* Options with which all uses of the labels' addresses are known, and others. */
static const char *const known[] = {
	"-fPIE -pie -Wl,--emit-relocs",
	"-fPIE -pie -s",
	"-fno-pie -no-pie -Wl,--emit-relocs",
	"-static-pie -fPIE -Wl,--emit-relocs",
};
static const char *const unknown[] = {"-fno-pie -no-pie -s", "-fno-pie -static -s"};

static void build(struct pair *p, const char *cc, const char *flags, const char *name)
{
	char line[512];

	snprintf(line, sizeof(line), "%s -w -O2 %s tests/data/labels/%s.c", cc, flags, name);
	pair_build_as_it_is(p, line, 7);
}

/*
 * Return: start of the first function with MP_FUNC_LABELS; 0: none. *@flags: flags of all
 * functions.
 */
static uint64_t labelled(const struct pair *p, uint64_t *size, uint16_t *flags)
{
	struct mp_err err = {""};
	struct mp_cfg *cfg;
	uint64_t start = 0;

	ck_assert_int_eq(mp_cfg_build(p->original, NULL, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs && !start; f++) {
		if (!(cfg->funcs[f].flags & MP_FUNC_LABELS))
			continue;
		start = cfg->funcs[f].vaddr;
		*size = cfg->funcs[f].size;
		*flags = cfg->funcs[f].flags;
		ck_assert_int_eq(cfg->funcs[f].problem, MP_PROBLEM_NONE);
	}
	mp_cfg_free(cfg);
	return start;
}

static uint32_t pieces_of(const struct pair *p, uint64_t start, uint64_t size)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		nr += p->map->pieces[i].old_vaddr - start < size;
	return nr;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, 8);
	return word;
}

/*
 * Return: number of data words that were labels in [start, start + size) and now lead to the
 * new code.
 */
static uint32_t words_moved(struct pair *p, uint64_t start, uint64_t size, uint32_t *total,
			    uint64_t *first)
{
	const struct mp_section *text = mp_elf_section(p->good, ".morph.text");
	uint32_t nr = 0;

	*total = 0;
	*first = 0;
	for (uint32_t i = 0; i < p->original->nr_sections; i++) {
		const struct mp_section *s = &p->original->sections[i];

		if (strncmp(s->name, ".data", 5) && strncmp(s->name, ".rodata", 7))
			continue;
		for (uint64_t v = (s->vaddr + 7) & ~7ull; v + 8 <= s->vaddr + s->size; v += 8) {
			const uint8_t *old = mp_elf_bytes(p->original, v, 8);

			if (!old || word_at(old) - start - 1 >= size - 1)
				continue;
			++*total;
			if (word_at(pair_at(p, v)) - text->vaddr >= text->size)
				continue;
			*first = *first ? *first : v;
			nr++;
		}
	}
	return nr;
}

TEST_EACH(labels_in_words_and_operands_change_together, 4)
{
	for (size_t c = 0; c < 2; c++) {
		uint64_t start, size = 0, first;
		uint16_t flags = 0;
		uint32_t total;
		struct pair p;

		build(&p, compilers[c], known[_i], "goto_threaded");
		start = labelled(&p, &size, &flags);
		ck_assert_uint_ne(start, 0);
		ck_assert(!(flags & MP_FUNC_LABEL_SUMS));
		ck_assert_uint_ge(pieces_of(&p, start, size), 10);
		/* All words of the table. */
		ck_assert_uint_eq(words_moved(&p, start, size, &total, &first), total);
		ck_assert_uint_ge(total, 8);
		ck_assert_uint_ge(p.report.nr_pointers, 9);
		pair_free(&p);
	}
}

/* They might be the bounds of a piece of code, which a handler of faults compares. */
TEST_EACH(function_stays_whose_labels_another_one_names, 2)
{
	char flags[128];
	uint64_t start, size = 0;
	uint16_t all = 0;
	struct pair p;

	snprintf(flags, sizeof(flags), "%s -DKNOWN", _i ? unknown[0] : known[0]);
	build(&p, "clang", flags, "goto_threaded");
	start = labelled(&p, &size, &all);
	ck_assert_uint_ne(start, 0);
	ck_assert_uint_eq(pieces_of(&p, start, size), 0);
	pair_free(&p);
}

TEST_EACH(labels_stay_where_numbers_are_no_proof, 2)
{
	for (size_t c = 0; c < 2; c++) {
		uint64_t start, size = 0, first;
		uint16_t flags = 0;
		uint32_t total;
		struct pair p;

		build(&p, compilers[c], unknown[_i], "goto_threaded");
		start = labelled(&p, &size, &flags);
		ck_assert_uint_ne(start, 0);
		ck_assert_uint_ge(pieces_of(&p, start, size), 10);
		ck_assert_uint_eq(words_moved(&p, start, size, &total, &first), 0);
		pair_free(&p);
	}
}

/* Differences computed by the assembler are only right for the old addresses. */
TEST_EACH(labels_stay_where_data_holds_their_differences, 2)
{
	for (size_t c = 0; c < 2; c++) {
		uint64_t start, size = 0;
		uint16_t flags = 0;
		struct pair p;

		build(&p, compilers[c], known[_i], "goto_relative");
		start = labelled(&p, &size, &flags);
		ck_assert_uint_ne(start, 0);
		ck_assert(flags & MP_FUNC_LABEL_SUMS);
		ck_assert_uint_ge(pieces_of(&p, start, size), 5);
		pair_free(&p);
	}
}

TEST_EACH(labels_in_outputs_run_as_in_originals, 6)
{
	static const char *const names[] = {"goto_threaded", "goto_relative", "goto_spilled",
					    "goto_narrow",   "goto_frame",    "goto_copied"};
	const char *flags = _i < 4 ? known[_i] : unknown[_i - 4];
	char exe[256], out[300], line[2200];
	const char *dir = getenv("TMPDIR");

	snprintf(exe, sizeof(exe), "%s/morph-labels-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(out, sizeof(out), "%s.out", exe);
	for (size_t i = 0; i < 12; i++) {
		struct me_optimize_options options = {.input = exe, .output = out, .all = true};
		struct me_optimize_report report;
		struct mp_err err = {""};
		int rc;

		snprintf(line, sizeof(line), "%s -w -O%d %s tests/data/labels/%s.c -o %s",
			 compilers[i % 2], (int)(i + (size_t)_i) % 3, flags, names[i / 2], exe);
		ck_assert_msg(system(line) == 0, "%s", line);
		options.stress = true;
		options.stress_seed = i + 1;
		rc = me_optimize(&options, &report, &err);
		ck_assert_msg(rc == 0, "%s: %s", line, err.msg);
		me_optimize_report_fini(&report);
		snprintf(line, sizeof(line),
			 "%s 2000 > %s.a && chmod +x %s && %s 2000 > %s.b && "
			 "cmp %s.a %s.b",
			 exe, exe, out, out, exe, exe, exe);
		ck_assert_msg(system(line) == 0, "%s: %s differs", flags, names[i / 2]);
		snprintf(line, sizeof(line), "rm -f %s %s %s.a %s.b", exe, out, exe, exe);
		ck_assert_int_eq(system(line), 0);
	}
}

static void put_word(struct pair *p, uint64_t vaddr, uint64_t value)
{
	const struct mp_section *rela = mp_elf_section(p->good, ".rela.dyn");

	memcpy(pair_at(p, vaddr), &value, 8);
	for (uint64_t at = 0; rela && at < rela->size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, pair_at(p, rela->vaddr + at), sizeof(r));
		if (r.r_offset != vaddr)
			continue;
		r.r_addend = (int64_t)value;
		memcpy(pair_at(p, rela->vaddr + at), &r, sizeof(r));
	}
}

/* A label with two values; one that is another label's copy; one in the middle of a copy. */
TEST_EACH(labels_that_differ_are_refused, 2)
{
	uint64_t start, size = 0, first, was;
	uint16_t flags = 0;
	uint32_t total;
	struct pair p;

	build(&p, "gcc", known[_i], "goto_threaded");
	start = labelled(&p, &size, &flags);
	ck_assert_uint_ne(words_moved(&p, start, size, &total, &first), 0);
	/* halt = &&op_halt is an operand, and the table's last entry is a word. */
	first += 7 * 8;
	was = word_at(mp_elf_bytes(p.original, first, 8));
	put_word(&p, first, was);
	pair_refused(&p, "hold its old address");
	put_word(&p, first, word_at(pair_at(&p, first - 8)));
	pair_refused(&p, "");
	put_word(&p, first, word_at(pair_at(&p, first)) + 1);
	pair_refused(&p, "");
	pair_free(&p);
}

/* If differences are stored in data, no label may get another value, whether one or all. */
TEST_EACH(labels_with_differences_are_refused_elsewhere, 2)
{
	const struct mp_section *text;
	uint64_t start, size = 0;
	uint16_t flags = 0;
	struct pair p;
	uint32_t nr = 0;

	build(&p, "gcc", known[_i], "goto_relative");
	start = labelled(&p, &size, &flags);
	text = mp_elf_section(p.good, ".morph.text");
	/* lea .La0(%rip), %rsi in the copy: change it to lead to the copy of its target. */
	for (uint64_t v = text->vaddr; v + 7 <= text->vaddr + text->size; v++) {
		const uint8_t *b = pair_at(&p, v);
		int32_t disp;
		uint64_t to;

		if ((b[0] & 0xf8) != 0x48 || b[1] != 0x8d || (b[2] & 0xc7) != 5)
			continue;
		memcpy(&disp, b + 3, 4);
		to = v + 7 + (uint64_t)(int64_t)disp;
		if (to - start - 1 >= size - 1)
			continue;
		for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
			if (p.map->pieces[i].old_vaddr != to)
				continue;
			disp = (int32_t)(p.map->pieces[i].new_vaddr - (v + 7));
			memcpy(pair_at(&p, v + 3), &disp, 4);
			pair_refused(&p, "operand names");
			nr++;
		}
	}
	ck_assert_uint_ge(nr, 1);
	pair_free(&p);
}

/* Distances that the program computes may be kept in two bytes: the labels stay, and verify knows it by itself. */
TEST_EACH(labels_that_a_function_computes_with_keep_their_values, 8)
{
	static const struct {
		const char *cc, *name, *function;
	} cases[] = {{"gcc", "goto_narrow", "run"},
		     {"clang", "goto_frame", "indexed"},
		     {"gcc", "goto_frame", "pointed"},
		     {"clang", "goto_copied", "run"}};
	uint64_t start = 0, size = 0, first = 0;
	uint32_t total, nr = 0;
	struct pair p;

	build(&p, cases[_i / 2].cc, known[_i % 2 * 2], cases[_i / 2].name);
	for (uint32_t i = 0; i < p.original->nr_symbols; i++) {
		if (strcmp(p.original->symbols[i].name, cases[_i / 2].function) != 0)
			continue;
		start = p.original->symbols[i].vaddr;
		size = p.original->symbols[i].size;
	}
	ck_assert_uint_ge(pieces_of(&p, start, size), 5);
	ck_assert_uint_eq(words_moved(&p, start, size, &total, &first), 0);
	ck_assert_uint_ge(total, 5);
	/* All words with labels at once lead to copies. */
	for (uint32_t s = 0; s < p.original->nr_sections; s++) {
		const struct mp_section *sec = &p.original->sections[s];

		for (uint64_t v = sec->vaddr; v + 8 <= sec->vaddr + sec->size; v += 8) {
			const uint8_t *old = strncmp(sec->name, ".data", 5) &&
							     strncmp(sec->name, ".rodata", 7)
						     ? NULL
						     : mp_elf_bytes(p.original, v, 8);

			for (uint32_t i = 0; old && i < p.map->nr_pieces; i++) {
				if (p.map->pieces[i].old_vaddr != word_at(old) ||
				    word_at(old) - start - 1 >= size - 1)
					continue;
				put_word(&p, v, p.map->pieces[i].new_vaddr);
				nr++;
			}
		}
	}
	ck_assert_uint_ge(nr, 3);
	pair_refused(&p, "computes with labels");
	pair_free(&p);
}
