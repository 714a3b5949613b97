// SPDX-License-Identifier: Apache-2.0
/*
 * test_object - rewritten objects verify; verify refuses objects in which a relocation, a symbol,
 * code or debug information was changed; damaged objects are refused with a message.
 */
#include "tests/unit/suite.h"

#include "editor/layout/plan_all.h"
#include "editor/object/object.h"
#include "editor/verify/object/verify_object.h"
#include "libprof/elf/relobj.h"
#include "tests/support/rewrite.h"

#define DIR "tests/e2e/object/"
#define CXX "g++ -w -std=c++14 -O2 "

enum language {
	C,
	CPP, /* with exception tables */
	NR_LANGUAGES,
	/* with debug information */
	C_DWARF_5 = NR_LANGUAGES,
	C_DWARF_4,
	CPP_DWARF_5,
	NR_OBJECTS
};

static const char *const objects[NR_OBJECTS] = {
	[C] = "gcc -O2 -fPIE -c " DIR "hot.c",
	[CPP] = CXX "-fPIE -c tests/e2e/optimize/exceptions.cc",
	[C_DWARF_5] = "gcc -O2 -gdwarf-5 -fPIE -c " DIR "hot.c",
	[C_DWARF_4] = "gcc -O2 -gdwarf-4 -fPIE -c " DIR "hot.c",
	[CPP_DWARF_5] = CXX "-gdwarf-5 -fPIE -c tests/e2e/optimize/exceptions.cc",
};
static const char *const programs[NR_OBJECTS] = {
	[C] = "gcc -O2 -fPIE -pie " DIR "hot.c " DIR "other.c",
	[CPP] = CXX "-fPIE -pie tests/e2e/optimize/exceptions.cc",
	[C_DWARF_5] = "gcc -O2 -fPIE -pie " DIR "hot.c " DIR "other.c",
	[C_DWARF_4] = "gcc -O2 -fPIE -pie " DIR "hot.c " DIR "other.c",
	[CPP_DWARF_5] = CXX "-fPIE -pie tests/e2e/optimize/exceptions.cc",
};

struct given {
	struct rewrite_bytes object, program;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint8_t *movable;
	struct me_plan made;
	struct me_object_plan plan;
	struct me_bytes output;
};

static int rewrite(const struct given *g, const uint8_t *bytes, size_t size, struct me_bytes *out,
		   struct mp_err *err)
{
	AUTO(me_object_report_fini) struct me_object_report report = {0};
	int rc = me_object_rewrite(bytes, size, &g->plan, &report, out, err);

	return rc;
}

static void given_init(struct given *g, enum language language, uint64_t seed)
{
	*g = (struct given){0};
	ck_assert(rewrite_compile(objects[language], &g->object) &&
		  rewrite_compile(programs[language], &g->program));
	ck_assert(!mp_elf_open_memory("program", g->program.data, g->program.size, MP_ELF_ALL,
				      &g->elf, &err));
	ck_assert(!mp_cfg_build(g->elf, &(struct mp_cfg_options){0}, &g->cfg, &err));
	g->movable = rewrite_movable(g->cfg);
	ck_assert_ptr_nonnull(g->movable);
	ck_assert(!me_plan_all(g->cfg, g->movable, &seed, &g->made, &err));
	ck_assert(!me_object_plan_init(&g->plan, g->cfg, NULL, &g->made, &err));
	ck_assert_msg(!rewrite(g, g->object.data, g->object.size, &g->output, &err), "%s", err.msg);
}

static void given_fini(struct given *g)
{
	me_bytes_fini(&g->output);
	me_object_plan_fini(&g->plan);
	me_plan_fini(&g->made);
	free(g->movable);
	mp_cfg_free(g->cfg);
	mp_elf_close(g->elf);
	free(g->program.data);
	free(g->object.data);
}

static bool accepted(const struct given *g)
{
	struct mp_err err = {""};
	int rc = me_verify_object(g->object.data, g->object.size, g->output.data, g->output.size,
				  NULL, &err);

	ck_assert(!rc || *err.msg);
	return !rc;
}

TEST_EACH(object_in_any_order_verifies, 2 * NR_OBJECTS)
{
	AUTO(given_fini) struct given g = {0};

	given_init(&g, (enum language)_i % NR_OBJECTS, (uint64_t)_i);
	ck_assert(accepted(&g));
}

/* Relocations of the profile only tell linkers what to put together. */
static bool is_profile(const struct mp_relobj *obj, uint32_t section)
{
	return !strcmp(obj->sections[section].name, ".llvm.call-graph-profile");
}

TEST_EACH(verify_refuses_every_changed_relocation, NR_LANGUAGES)
{
	uint32_t nr = 0, passed = 0;
	struct mp_relobj *obj;
	struct given g;

	given_init(&g, (enum language)_i, 7);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		const Elf64_Shdr *h = &obj->sections[i].header;

		for (uint64_t k = 0; h->sh_type == SHT_RELA && !is_profile(obj, h->sh_info) &&
				     k < h->sh_size / sizeof(Elf64_Rela);
		     k++) {
			uint8_t *addend = g.output.data + h->sh_offset + k * sizeof(Elf64_Rela) +
					  offsetof(Elf64_Rela, r_addend);

			nr++;
			*addend += 1;
			passed += accepted(&g);
			*addend -= 1;
		}
	}
	mp_relobj_free(obj);
	/* Jumps behind calls that do not return, and copies of blocks that no block falls into, are
	 * never executed; nor are types used that no action of a part's exception table names. */
	ck_assert_uint_gt(nr, 60);
	ck_assert_msg(10 * passed <= (_i == C ? 0 : nr), "%u of %u relocations", passed, nr);
	ck_assert(accepted(&g));
	given_fini(&g);
}

TEST_EACH(verify_refuses_every_moved_symbol, NR_LANGUAGES)
{
	struct mp_relobj *obj;
	AUTO(given_fini) struct given g = {0};

	given_init(&g, (enum language)_i, 9);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	for (uint32_t i = 1; i < obj->nr_symbols; i++) {
		uint8_t *value = g.output.data + obj->sections[obj->symtab].header.sh_offset +
				 i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value);
		const char *name = mp_relobj_symbol_name(obj, i);

		/* symbols that were added serve debuggers only */
		if (ELF64_ST_TYPE(obj->symbols[i].st_info) != STT_FUNC || strstr(name, ".cold") ||
		    !obj->symbols[i].st_shndx)
			continue;
		*value += 1;
		ck_assert_msg(!accepted(&g), "%s", name);
		*value -= 1;
	}
	mp_relobj_free(obj);
}

/* The new bytes of .gcc_except_table. */
TEST(verify_refuses_changed_exception_tables)
{
	uint32_t refused = 0, nr, section;
	struct mp_relobj *old, *new;
	AUTO(given_fini) struct given g = {0};
	uint8_t *at;

	given_init(&g, CPP, 5);
	ck_assert(!mp_relobj_open(g.object.data, g.object.size, &old, &err));
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &new, &err));
	section = mp_relobj_section(old, ".gcc_except_table");
	nr = (uint32_t)(new->sections[section].header.sh_size -
			old->sections[section].header.sh_size);
	at = g.output.data + new->sections[section].header.sh_offset +
	     old->sections[section].header.sh_size;
	mp_relobj_free(old);
	mp_relobj_free(new);
	ck_assert_uint_gt(nr, 100);
	for (uint32_t i = 0; i < nr; i++) {
		at[i] ^= 0x01;
		refused += !accepted(&g);
		at[i] ^= 0x01;
	}
	/* Relocated fields, padding, and ends of sites behind their calls have no meaning. */
	ck_assert_msg(10 * refused > 4 * nr, "%u of %u bytes", refused, nr);
}

TEST_EACH(verify_refuses_every_changed_unwind_byte_or_finds_the_same_rows, NR_LANGUAGES)
{
	uint32_t refused = 0, nr = 0;
	struct mp_relobj *obj;
	AUTO(given_fini) struct given g = {0};
	uint8_t *at;

	given_init(&g, (enum language)(_i % 2), 11);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	at = g.output.data + obj->sections[mp_relobj_section(obj, ".eh_frame")].header.sh_offset;
	nr = (uint32_t)obj->sections[mp_relobj_section(obj, ".eh_frame")].header.sh_size;
	mp_relobj_free(obj);
	for (uint32_t i = 0; i < nr; i++) {
		at[i] ^= 0x05;
		refused += !accepted(&g);
		at[i] ^= 0x05;
	}
	/* Relocated fields and padding have no meaning. */
	ck_assert_msg(10 * refused > 6 * nr, "%u of %u bytes", refused, nr);
}

/* Number of changes of the section that verify refuses: of bytes, and of relocations' addends. */
static uint32_t refused_changes(const struct given *g, const struct mp_relobj *obj,
				uint32_t section, uint32_t *nr)
{
	const struct mp_relobj_section *s = &obj->sections[section];
	uint8_t *at = g->output.data + s->header.sh_offset;
	uint32_t refused = 0, relocs = s->relocs_section;
	/* about as many changes of each section */
	uint64_t step = s->header.sh_size / 60 | 1;

	*nr = 0;
	for (uint64_t i = 0; i < s->header.sh_size; i += step) {
		uint32_t r = mp_relobj_reloc_at(s, i < 7 ? 0 : i - 7);

		/* bytes that a linker fills in have no meaning */
		if (r < s->nr_relocs && s->relocs[r].r_offset <= i)
			continue;
		++*nr;
		at[i] ^= 0x01;
		refused += !accepted(g);
		at[i] ^= 0x01;
	}
	at = g->output.data + obj->sections[relocs].header.sh_offset;
	for (uint64_t i = 0; i < s->nr_relocs; i += step) {
		uint8_t *addend = at + i * sizeof(Elf64_Rela) + offsetof(Elf64_Rela, r_addend);

		++*nr;
		*addend += 1;
		refused += !accepted(g);
		*addend -= 1;
	}
	return refused;
}

TEST_RANGE(verify_refuses_changed_debug_information, C_DWARF_5, CPP_DWARF_5)
{
	/* In thousandths: how many changes must be refused at least. Others are lines and bounds of jumps
	 * and padding, bytes that readers skip, and abbreviations that no entry uses. */
	static const struct {
		const char *name;
		uint32_t least;
	} sections[] = {
		{".debug_info", 850},	  {".debug_line", 800},	   {".debug_abbrev", 900},
		{".debug_rnglists", 600}, {".debug_ranges", 600},  {".debug_loclists", 600},
		{".debug_loc", 600},	  {".debug_aranges", 600}, {".debug_str", 1000},
	};
	uint32_t total = 0, nr;
	struct mp_relobj *obj;
	AUTO(given_fini) struct given g = {0};

	given_init(&g, (enum language)_i, 7);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		uint32_t section = mp_relobj_section(obj, sections[i].name), refused;

		if (!section)
			continue;
		refused = refused_changes(&g, obj, section, &nr);
		ck_assert_msg(1000 * refused >= sections[i].least * nr, "%s: %u of %u",
			      sections[i].name, refused, nr);
		total += nr;
	}
	ck_assert_uint_gt(total, 300);
	mp_relobj_free(obj);
	ck_assert(accepted(&g));
}

/* Sections of debug information alone: of the original, and of what verify reads. */
TEST_RANGE(debug_information_that_is_damaged_does_no_harm, C_DWARF_5, CPP_DWARF_5)
{
	uint64_t state = 7 + (uint64_t)_i;
	struct mp_relobj *old, *new;
	uint8_t *copy, *output;
	AUTO(given_fini) struct given g = {0};

	given_init(&g, (enum language)_i, 3);
	copy = malloc(g.object.size);
	output = malloc(g.output.size);
	ck_assert(copy && output && !mp_relobj_open(g.object.data, g.object.size, &old, &err) &&
		  !mp_relobj_open(g.output.data, g.output.size, &new, &err));
	for (int round = 0; round < 300; round++) {
		const struct mp_relobj_section *s;
		struct me_bytes out = {0};
		int rc;

		memcpy(copy, g.object.data, g.object.size);
		memcpy(output, g.output.data, g.output.size);
		for (int i = 0; i < 1 + round % 4; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			s = &old->sections[(state >> 33) % old->nr_sections];
			if (strstr(s->name, ".debug_") && s->header.sh_size)
				copy[s->header.sh_offset + (state >> 40) % s->header.sh_size] =
					(uint8_t)(state >> 20);
			s = &new->sections[(state >> 35) % new->nr_sections];
			if (strstr(s->name, ".debug_") && s->header.sh_size)
				output[s->header.sh_offset + (state >> 40) % s->header.sh_size] =
					(uint8_t)(state >> 21);
		}
		rc = rewrite(&g, copy, g.object.size, &out, &err);
		ck_assert(!rc || *err.msg);
		me_bytes_fini(&out);
		me_verify_object(copy, g.object.size, g.output.data, g.output.size, NULL, &err);
		me_verify_object(g.object.data, g.object.size, output, g.output.size, NULL, &err);
	}
	mp_relobj_free(old);
	mp_relobj_free(new);
	free(copy);
	free(output);
}

TEST_EACH(object_that_is_damaged_does_no_harm, NR_LANGUAGES)
{
	uint64_t state = 42 + (uint64_t)_i;
	AUTO(given_fini) struct given g = {0};
	AUTO_FREE uint8_t *copy = NULL;

	given_init(&g, (enum language)_i, 3);
	copy = malloc(g.object.size);
	ck_assert_ptr_nonnull(copy);
	for (int round = 0; round < 2000; round++) {
		size_t size = g.object.size;
		struct mp_err err = {""};
		struct me_bytes out = {0};
		int rc;

		memcpy(copy, g.object.data, size);
		for (int i = 0; i < 1 + round % 3; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			copy[(state >> 33) % size] = (uint8_t)(state >> 20);
		}
		if (round % 10 == 9)
			size = (state >> 40) % size;
		rc = rewrite(&g, copy, size, &out, &err);
		ck_assert(!rc || *err.msg);
		me_bytes_fini(&out);
		/* And as what verify compares with. */
		rc = me_verify_object(copy, size, g.output.data, g.output.size, NULL, &err);
		ck_assert(!rc || *err.msg);
	}
}
