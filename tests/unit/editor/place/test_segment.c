// SPDX-License-Identifier: Apache-2.0
/*
 * test_segment - which program header is replaced by the new segment's, and where that segment
 * lies.
 */
#include "tests/unit/suite.h"

#include "editor/place/segment.h"

static Elf64_Phdr load(uint32_t flags, uint64_t off, uint64_t vaddr, uint64_t filesz,
		       uint64_t memsz)
{
	return (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = flags,
			    .p_offset = off,
			    .p_vaddr = vaddr,
			    .p_filesz = filesz,
			    .p_memsz = memsz,
			    .p_align = 0x1000};
}

static Elf64_Phdr other(uint32_t type, uint64_t off, uint64_t size)
{
	return (Elf64_Phdr){.p_type = type,
			    .p_flags = PF_R,
			    .p_offset = off,
			    .p_vaddr = off,
			    .p_filesz = size,
			    .p_memsz = size};
}

static int choose(Elf64_Phdr *phdrs, uint32_t nr, struct me_segment *out, struct mp_err *err)
{
	struct mp_section null = {0};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = nr, .sections = &null, .nr_sections = 1};

	return me_segment_choose(&elf, 0, 0, out, err);
}

/* A program as gcc links it: read-only, code, read-only, data with .bss; two notes. */
#define PROGRAM                                                                                    \
	load(PF_R, 0, 0x400000, 0x500, 0x500),                                                     \
		load(PF_R | PF_X, 0x1000, 0x401000, 0x2345, 0x2345),                               \
		load(PF_R, 0x4000, 0x404000, 0x800, 0x800),                                        \
		load(PF_R | PF_W, 0x4df0, 0x405df0, 0x300, 0x1410)

TEST(segment_takes_the_note_that_the_property_header_covers)
{
	Elf64_Phdr phdrs[] = {PROGRAM,
			      other(PT_NOTE, 0x338, 0x40),
			      other(PT_NOTE, 0x378, 0x24),
			      other(PT_GNU_PROPERTY, 0x338, 0x40),
			      other(PT_GNU_EH_FRAME, 0x4100, 0x44),
			      other(PT_GNU_STACK, 0, 0)};
	AUTO(me_segment_fini) struct me_segment s = {0};

	ck_assert_int_eq(choose(phdrs, 9, &s, &err), 0);
	ck_assert_uint_eq(s.slot, 4);
	ck_assert_uint_eq(s.eh_frame_slot, 7);
	ck_assert_uint_eq(s.nr_phdrs, 9);
	ck_assert_ptr_nonnull(strstr(s.price, ".note.gnu.property"));
	/* Above .bss, page-aligned; in the file, after everything that is loaded. */
	ck_assert_uint_eq(s.vaddr, 0x408000);
	ck_assert_uint_eq(s.old_end, 0x50f0);
	ck_assert_uint_eq(s.off, 0x6000);
	ck_assert_uint_eq(s.align, 0x1000);
	/* Only the slot, which emit fills in, may differ. */
	ck_assert_mem_eq(s.phdrs, phdrs, 4 * sizeof(*phdrs));
	ck_assert_mem_eq(&s.phdrs[5], &phdrs[5], 4 * sizeof(*phdrs));
}

/* perf computes an address from a file offset by adding the distance that .text has. */
TEST(segment_is_as_far_from_its_place_in_the_file_as_text)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_section sections[] = {{.name = ""},
					{.name = ".text",
					 .type = SHT_PROGBITS,
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .vaddr = 0x401000,
					 .off = 0x1000,
					 .size = 0x2345}};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6, .sections = sections, .nr_sections = 2};
	struct me_segment s;

	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x408000);
	ck_assert_uint_eq(s.off, 0x8000);
	/* Space for counters comes before it. */
	ck_assert_int_eq(me_segment_reserve(&elf, &s, 0x1234, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x40a000);
	ck_assert_uint_eq(s.off, 0xa000);
	me_segment_fini(&s);
	/* With pages of 2 MiB, both kinds of alignment give the same result. */
	ck_assert_int_eq(me_segment_choose(&elf, 0x200000, 0, &s, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x600000);
	ck_assert_uint_eq(s.off, 0x200000);
	me_segment_fini(&s);
	/*
	 * But no hole of 3 MiB in a file of 20 KiB, no offset before the end, and none that
	 * does not fit the pages.
	 */
	phdrs[3].p_memsz += 0x300000;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	ck_assert_uint_eq(s.off, 0x6000);
	me_segment_fini(&s);
	phdrs[3].p_memsz -= 0x300000;
	sections[1].off = 0;
	sections[1].vaddr = 0x404000;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	ck_assert_uint_eq(s.off, 0x6000);
	me_segment_fini(&s);
	sections[1].vaddr = 0x400800;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	ck_assert_uint_eq(s.off, 0x6000);
	me_segment_fini(&s);
}

TEST(segment_lies_where_a_running_process_has_room)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_section null = {0};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6, .sections = &null, .nr_sections = 1};
	struct me_segment s;

	ck_assert_int_eq(me_segment_choose(&elf, 0, 0x12345000, &s, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x12345000);
	ck_assert_uint_eq(s.off, 0x6000);
	/* Counters come first, and the memory of the last segment reaches up to their end. */
	ck_assert_int_eq(me_segment_reserve(&elf, &s, 0x1234, &err), 0);
	ck_assert_uint_eq(s.zeros, 0x12345000);
	ck_assert_uint_eq(s.zeros_size, 0x2000);
	ck_assert_uint_eq(s.vaddr, 0x12347000);
	ck_assert_uint_eq(s.phdrs[3].p_vaddr + s.phdrs[3].p_memsz, 0x12347000);
	me_segment_fini(&s);
	/* The first free address is one; what the file takes, or what branches do not reach, is none. */
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0x408000, &s, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x408000);
	me_segment_fini(&s);
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0x407000, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "0x408000"));
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0x7c800000, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "reach"));
	/* With large pages, at the next address that has their alignment. */
	phdrs[3].p_align = 0x200000;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0x12345000, &s, &err), 0);
	ck_assert_uint_eq(s.vaddr, 0x12400000);
	me_segment_fini(&s);
}

TEST(segment_never_takes_the_note_with_the_build_id)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x378, 0x24), other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct me_segment s;

	ck_assert_int_eq(choose(phdrs, 7, &s, &err), 0);
	ck_assert_uint_eq(s.slot, 5);
	ck_assert_uint_eq(s.eh_frame_slot, ME_NO_SLOT);
	me_segment_fini(&s);
	/* One note for both: the property header does not cover all of it. */
	phdrs[4] = phdrs[5] = other(PT_NOTE, 0x338, 0x64);
	phdrs[1].p_flags |= PF_W;
	ck_assert_int_eq(choose(phdrs, 7, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "no program header can be spared"));
}

TEST(segment_takes_no_note_before_the_loads)
{
	/* The new PT_LOAD must follow the others, since they ascend. */
	Elf64_Phdr phdrs[] = {other(PT_NOTE, 0x338, 0x40), PROGRAM,
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct me_segment s;

	phdrs[2].p_flags |= PF_W;
	ck_assert_int_eq(choose(phdrs, 6, &s, &err), -EPERM);
}

TEST(segment_merges_two_read_only_loads)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x238, 0x24),
			      other(PT_GNU_EH_FRAME, 0x4100, 0x44)};
	AUTO(me_segment_fini) struct me_segment s = {0};

	ck_assert_int_eq(choose(phdrs, 6, &s, &err), 0);
	ck_assert_uint_eq(s.slot, 3);
	ck_assert_uint_eq(s.phdrs[0].p_flags, PF_R | PF_X);
	ck_assert_uint_eq(s.phdrs[0].p_vaddr, 0x400000);
	ck_assert_uint_eq(s.phdrs[0].p_filesz, 0x3345);
	ck_assert_uint_eq(s.phdrs[0].p_memsz, 0x3345);
	/* Later headers move up; the last slot is free. */
	ck_assert_mem_eq(&s.phdrs[1], &phdrs[2], 2 * sizeof(*phdrs));
	ck_assert_mem_eq(&s.phdrs[4], &phdrs[4], 2 * sizeof(*phdrs));
	ck_assert_uint_eq(s.eh_frame_slot, 5);
	ck_assert_ptr_nonnull(strstr(s.price, "executable"));
}

TEST(segment_merges_only_what_is_contiguous_and_never_written)
{
	struct me_segment s;

	for (int i = 0; i < 4; i++) {
		Elf64_Phdr phdrs[] = {load(PF_R, 0, 0x400000, 0x500, 0x500),
				      load(PF_R | PF_X, 0x1000, 0x401000, 0x2345, 0x2345),
				      load(PF_R | PF_W, 0x4df0, 0x405df0, 0x300, 0x1410)};

		switch (i) {
		case 0: phdrs[0].p_flags |= PF_W; break;
		case 1: phdrs[1].p_vaddr += 0x1000; break; /* another distance to the file offset */
		case 2: phdrs[0].p_memsz += 8; break;	   /* zeros that the file does not have */
		case 3: /* a hole, whose bytes in the file would be mapped too */
			phdrs[1].p_vaddr += 0x2000;
			phdrs[1].p_offset += 0x2000;
			break;
		}
		ck_assert_msg(choose(phdrs, 3, &s, &err) == -EPERM, "case %d", i);
	}
}

/* A program as gold links it: one segment for everything read-only; PT_PHDR first. */
#define GOLD                                                                                       \
	other(PT_PHDR, 64, 9 * sizeof(Elf64_Phdr)), load(PF_R | PF_X, 0, 0, 0x2000, 0x2000),       \
		load(PF_R | PF_W, 0x2df0, 0x3df0, 0x300, 0x1410), other(PT_DYNAMIC, 0x2e00, 0x40), \
		other(PT_NOTE, 0x338, 0x24), other(PT_GNU_EH_FRAME, 0x1100, 0x44),                 \
		other(PT_GNU_STACK, 0, 0)

static int choose_of(uint16_t type, Elf64_Phdr *phdrs, uint32_t nr, const void *data, size_t size,
		     struct me_segment *out, struct mp_err *err)
{
	struct mp_section null = {0};
	struct mp_elf elf = {.data = data,
			     .size = size,
			     .phdrs = phdrs,
			     .nr_phdrs = nr,
			     .sections = &null,
			     .nr_sections = 1};

	elf.ehdr.e_type = type;
	elf.ehdr.e_phoff = 64;
	return me_segment_choose(&elf, 0, 0, out, err);
}

static void put_dynamic(uint8_t *file, uint64_t flags_1)
{
	Elf64_Dyn dyn[] = {{.d_tag = DT_FLAGS_1, .d_un.d_val = flags_1}, {.d_tag = DT_NULL}};

	memcpy(file + 0x2e00, dyn, sizeof(dyn));
}

TEST(segment_takes_the_table_header_of_a_library)
{
	static uint8_t file[0x3100];
	Elf64_Phdr phdrs[] = {GOLD};
	AUTO(me_segment_fini) struct me_segment s = {0};

	put_dynamic(file, DF_1_NOW);
	ck_assert_int_eq(choose_of(ET_DYN, phdrs, 7, file, sizeof(file), &s, &err), 0);
	/* The segments move up; the new one is the last. */
	ck_assert_uint_eq(s.slot, 2);
	ck_assert_mem_eq(&s.phdrs[0], &phdrs[1], 2 * sizeof(*phdrs));
	ck_assert_mem_eq(&s.phdrs[3], &phdrs[3], 4 * sizeof(*phdrs));
	ck_assert_uint_eq(s.eh_frame_slot, 5);
	ck_assert_ptr_nonnull(strstr(s.price, "PT_PHDR"));
}

TEST(segment_leaves_the_table_header_where_someone_reads_it)
{
	static uint8_t file[0x3100];
	struct me_segment s;

	for (int i = 0; i < 6; i++) {
		Elf64_Phdr phdrs[] = {GOLD};
		uint16_t type = ET_DYN;

		put_dynamic(file, 0);
		switch (i) {
		case 0: put_dynamic(file, DF_1_PIE); break; /* static-pie */
		case 1: phdrs[6].p_type = PT_INTERP; break;
		case 2: phdrs[3].p_type = PT_NULL; break;  /* no dynamic section */
		case 3: phdrs[3].p_filesz = 0x10; break;   /* it does not end */
		case 4: phdrs[3].p_offset = 0x30f8; break; /* it lies outside of the file */
		case 5: phdrs[1].p_offset = 0x1000; break; /* the table is not mapped */
		}
		ck_assert_msg(choose_of(type, phdrs, 7, file, sizeof(file), &s, &err) == -EPERM,
			      "case %d", i);
	}
	/* A program with fixed addresses is not relocated, whatever loads it. */
	{
		Elf64_Phdr phdrs[] = {GOLD};

		phdrs[6].p_type = PT_INTERP;
		ck_assert_int_eq(choose_of(ET_EXEC, phdrs, 7, file, sizeof(file), &s, &err), 0);
		ck_assert_uint_eq(s.slot, 2);
		me_segment_fini(&s);
	}
}

TEST(segment_takes_a_note_of_properties_that_ask_for_nothing)
{
	static const struct {
		uint32_t kind, value;
		bool idle;
	} cases[] = {
		{GNU_PROPERTY_X86_ISA_1_NEEDED, 0, true},
		{GNU_PROPERTY_X86_ISA_1_NEEDED, GNU_PROPERTY_X86_ISA_1_BASELINE, true},
		{GNU_PROPERTY_X86_ISA_1_NEEDED, GNU_PROPERTY_X86_ISA_1_V2, false},
		{GNU_PROPERTY_X86_ISA_1_USED, 7, true},
		{GNU_PROPERTY_X86_FEATURE_1_AND, 0, true},
		{GNU_PROPERTY_X86_FEATURE_1_AND, GNU_PROPERTY_X86_FEATURE_1_IBT, false},
		{GNU_PROPERTY_X86_FEATURE_1_AND, GNU_PROPERTY_X86_FEATURE_1_SHSTK, false},
		{GNU_PROPERTY_STACK_SIZE, 0, false},
	};
	static uint8_t file[0x3100];
	struct me_segment s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t note[] = {
			4, 16, NT_GNU_PROPERTY_TYPE_0, 0, cases[i].kind, 4, cases[i].value, 0};
		Elf64_Phdr phdrs[] = {GOLD, other(PT_NOTE, 0x338, sizeof(note))};
		int want = cases[i].idle ? 0 : -EPERM;

		phdrs[0].p_type = PT_INTERP; /* a position-independent program */
		phdrs[4].p_offset = 0x400;
		memcpy(&note[3], "GNU", 4);
		memcpy(file + 0x338, note, sizeof(note));
		ck_assert_msg(choose_of(ET_DYN, phdrs, 8, file, sizeof(file), &s, &err) == want,
			      "case %zu", i);
		if (!want) {
			ck_assert_uint_eq(s.slot, 7);
			me_segment_fini(&s);
		}
		/* There is more than this note; it may be the build-id. */
		phdrs[7].p_filesz += 0x24;
		ck_assert_int_eq(choose_of(ET_DYN, phdrs, 8, file, sizeof(file), &s, &err), -EPERM);
		/* Truncated. */
		phdrs[7].p_filesz = sizeof(note) - 8;
		ck_assert_int_eq(choose_of(ET_DYN, phdrs, 8, file, sizeof(file), &s, &err), -EPERM);
	}
}

TEST(segment_keeps_the_largest_alignment)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct me_segment s;

	phdrs[1].p_align = 0x200000;
	ck_assert_int_eq(choose(phdrs, 6, &s, &err), 0);
	ck_assert_uint_eq(s.align, 0x200000);
	ck_assert_uint_eq(s.vaddr, 0x600000);
	ck_assert_uint_eq(s.off, 0x200000);
	ck_assert_uint_eq((s.vaddr - s.off) % s.align, 0);
	me_segment_fini(&s);
	phdrs[1].p_align = 0x3000;
	ck_assert_int_eq(choose(phdrs, 6, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "power of two"));
}

/* The file would become as large as the alignment, or impossibly large. */
TEST(segment_refuses_alignments_beyond_any_page)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_section sections[] = {{.name = ""}, {.name = ".strtab", .type = SHT_STRTAB}};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6, .sections = sections, .nr_sections = 2};
	struct me_segment s;

	sections[1].align = UINT64_C(1) << 30;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	me_segment_fini(&s);
	sections[1].align = UINT64_C(0x46000000000001);
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, ".strtab"));
	sections[1].align = 1;
	phdrs[1].p_align = UINT64_C(1) << 40;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "alignment"));
}

TEST(segment_refuses_memory_that_jumps_do_not_reach_over)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6};
	struct me_segment s;

	phdrs[3].p_memsz = UINT64_C(1) << 30;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	me_segment_fini(&s);
	phdrs[3].p_memsz = UINT64_C(3) << 30;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "out of reach"));
}

TEST(segment_refuses_loaded_sections_outside_every_segment)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_section sections[] = {
		{.name = ""},
		{.name = ".odd", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .off = 0x50f0, .size = 1},
	};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6, .sections = sections, .nr_sections = 2};
	struct me_segment s;

	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, ".odd"));
	sections[1].type = SHT_NOBITS;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	me_segment_fini(&s);
	sections[1].type = SHT_PROGBITS;
	sections[1].flags = 0;
	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	me_segment_fini(&s);
}

TEST(segment_is_aligned_as_asked_in_memory_and_file)
{
	Elf64_Phdr phdrs[] = {PROGRAM, other(PT_NOTE, 0x338, 0x40),
			      other(PT_GNU_PROPERTY, 0x338, 0x40)};
	struct mp_section null = {0};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 6, .sections = &null, .nr_sections = 1};
	struct me_segment s;

	ck_assert_int_eq(me_segment_choose(&elf, 0x200000, 0, &s, &err), 0);
	ck_assert_uint_eq(s.align, 0x200000);
	ck_assert_uint_eq(s.vaddr, 0x600000);
	ck_assert_uint_eq(s.off, 0x200000);
	me_segment_fini(&s);
	/* A larger alignment in the file has priority. */
	phdrs[3].p_align = 0x400000;
	ck_assert_int_eq(me_segment_choose(&elf, 0x200000, 0, &s, &err), 0);
	ck_assert_uint_eq(s.align, 0x400000);
	me_segment_fini(&s);
}

TEST(segment_merges_loads_as_before_where_a_huge_alignment_is_asked)
{
	Elf64_Phdr phdrs[] = {PROGRAM};
	struct mp_section null = {0};
	struct mp_elf elf = {.phdrs = phdrs, .nr_phdrs = 4, .sections = &null, .nr_sections = 1};
	struct me_segment s, huge;

	ck_assert_int_eq(me_segment_choose(&elf, 0, 0, &s, &err), 0);
	ck_assert_int_eq(me_segment_choose(&elf, 0x200000, 0, &huge, &err), 0);
	ck_assert_uint_eq(s.slot, 3);
	ck_assert_uint_eq(huge.slot, 3);
	ck_assert_mem_eq(s.phdrs, huge.phdrs, 3 * sizeof(*phdrs));
	me_segment_fini(&huge);
	me_segment_fini(&s);
}

/* A position-independent program as lld links it: header table, interpreter name, two notes. */
enum {
	LLD_PHDR,
	LLD_INTERP,
	LLD_TEXT = 3,
	LLD_EH = 7,
	LLD_NOTE,
	LLD_NR,
	S_NULL = 0,
	S_INTERP,
	S_ABI,
	S_ID,
	S_DYNSYM,
	S_NR,
	TABLE_END = 64 + LLD_NR * sizeof(Elf64_Phdr),
};

struct lld {
	Elf64_Phdr phdrs[LLD_NR];
	struct mp_section sections[S_NR];
	struct mp_symbol symbol;
	struct mp_elf elf;
};

static struct mp_section loaded(const char *name, uint32_t type, uint64_t at, uint64_t size,
				uint64_t align)
{
	return (struct mp_section){.name = name,
				   .type = type,
				   .flags = SHF_ALLOC,
				   .vaddr = at,
				   .off = at,
				   .size = size,
				   .align = align};
}

static void lld_make(struct lld *l)
{
	const uint64_t at = TABLE_END;
	const Elf64_Phdr phdrs[LLD_NR] = {
		other(PT_PHDR, 64, LLD_NR * sizeof(Elf64_Phdr)),
		other(PT_INTERP, at, 0x1c),
		load(PF_R, 0, 0, 0x900, 0x900),
		load(PF_R | PF_X, 0x900, 0x1900, 0x800, 0x800),
		load(PF_R | PF_W, 0x1100, 0x3100, 0x200, 0x200),
		load(PF_R | PF_W, 0x1300, 0x4300, 0x60, 0x160),
		other(PT_DYNAMIC, 0x1180, 0x40),
		other(PT_GNU_EH_FRAME, 0x700, 0x44),
		other(PT_NOTE, at + 0x1c, 0x38),
	};
	const struct mp_section sections[S_NR] = {
		[S_NULL] = {.name = ""},
		[S_INTERP] = loaded(".interp", SHT_PROGBITS, at, 0x1c, 1),
		[S_ABI] = loaded(".note.ABI-tag", SHT_NOTE, at + 0x1c, 0x20, 4),
		[S_ID] = loaded(".note.gnu.build-id", SHT_NOTE, at + 0x3c, 0x18, 4),
		[S_DYNSYM] = loaded(".dynsym", SHT_DYNSYM, at + 0x58, 0x60, 8),
	};

	memcpy(l->phdrs, phdrs, sizeof(phdrs));
	memcpy(l->sections, sections, sizeof(sections));
	l->symbol = (struct mp_symbol){.name = "s", .dynamic = true, .shndx = 3, .vaddr = 0x1900};
	l->elf = (struct mp_elf){.phdrs = l->phdrs,
				 .nr_phdrs = LLD_NR,
				 .sections = l->sections,
				 .nr_sections = S_NR,
				 .symbols = &l->symbol,
				 .nr_symbols = 1};
	l->elf.ehdr.e_type = ET_DYN;
	l->elf.ehdr.e_phoff = 64;
}

TEST(segment_makes_room_behind_the_table)
{
	AUTO(me_segment_fini) struct me_segment s = {0};
	struct lld l;

	lld_make(&l);
	ck_assert_int_eq(me_segment_choose(&l.elf, 0, 0, &s, &err), 0);
	ck_assert(s.grown);
	ck_assert_uint_eq(s.nr_phdrs, LLD_NR + 1);
	/* After the last PT_LOAD; all others are kept in order. */
	ck_assert_uint_eq(s.slot, 6);
	ck_assert_mem_eq(&s.phdrs[1], &l.phdrs[1], 5 * sizeof(Elf64_Phdr));
	ck_assert_mem_eq(&s.phdrs[7], &l.phdrs[6], 3 * sizeof(Elf64_Phdr));
	ck_assert_uint_eq(s.eh_frame_slot, LLD_EH + 1);
	ck_assert_uint_eq(s.phdrs[LLD_PHDR].p_filesz, (LLD_NR + 1) * sizeof(Elf64_Phdr));
	ck_assert_uint_eq(s.phdrs[LLD_PHDR].p_memsz, (LLD_NR + 1) * sizeof(Elf64_Phdr));
	/* The name and both notes, which share a header, and nothing else. */
	ck_assert_uint_eq(s.displaced.off, TABLE_END);
	ck_assert_uint_eq(s.displaced.vaddr, TABLE_END);
	ck_assert_uint_eq(s.displaced.size, 0x54);
	ck_assert_uint_eq(s.displaced.align, 8);
	ck_assert_ptr_nonnull(strstr(s.price, "behind the table"));
	/* Reserving space for counters does not change this. */
	ck_assert_int_eq(me_segment_reserve(&l.elf, &s, 0x1000, &err), 0);
	ck_assert_uint_eq(s.phdrs[5].p_memsz, 0x1d00);
	ck_assert_uint_eq(s.vaddr, 0x6000);
}

TEST(segment_makes_no_room_where_something_else_lies)
{
	AUTO(me_segment_fini) struct me_segment s = {0};
	struct lld l;

	for (int i = 0; i < 14; i++) {
		lld_make(&l);
		switch (i) {
		case 0: l.sections[S_ABI].type = SHT_PROGBITS; break;
		case 1: l.sections[S_INTERP].type = SHT_DYNSYM; break;
		/* not the name that PT_INTERP refers to */
		case 2: l.sections[S_INTERP].size--; break;
		case 3: l.sections[S_ABI].flags |= SHF_WRITE; break;
		case 4: l.phdrs[LLD_NOTE].p_type = PT_TLS; break;
		case 5: l.phdrs[2].p_flags |= PF_W; break;
		case 6: l.phdrs[LLD_INTERP].p_vaddr += 8; break;
		case 7: l.phdrs[LLD_NOTE].p_memsz++; break;
		case 8: l.sections[S_ID].align = 128; break;
		case 9: l.phdrs[2].p_filesz = TABLE_END + 0x20; break; /* the rest is not mapped */
		case 10: l.symbol.vaddr = TABLE_END + 0x20; break;
		case 11: l.phdrs[LLD_NOTE].p_filesz = l.phdrs[LLD_NOTE].p_memsz = 0x60; break;
		case 12: l.sections[S_DYNSYM].off = TABLE_END + 0x10; break;
		case 13: l.phdrs[LLD_EH].p_offset = TABLE_END + 0x30; break;
		}
		ck_assert_msg(me_segment_choose(&l.elf, 0, 0, &s, &err) == -EPERM, "case %d", i);
		ck_assert_ptr_nonnull(strstr(err.msg, "no room for one more"));
	}
	/* In a file with fixed addresses any number may be an address: verify looks. */
	lld_make(&l);
	l.phdrs[LLD_PHDR].p_type = PT_NULL;
	l.elf.ehdr.e_type = ET_EXEC;
	ck_assert_int_eq(me_segment_choose(&l.elf, 0, 0, &s, &err), 0);
	ck_assert(s.grown);
}
