// SPDX-License-Identifier: Apache-2.0
/*
 * test_emit - complete output files for every way to link: headers, segments, sections,
 * build-id.
 */
#include "tests/unit/suite.h"

#include "editor/evidence/eligible.h"
#include "editor/layout/plan_all.h"
#include "editor/place/sections.h"
#include "tests/unit/edit_fixture.h"

static const char *const links[] = {
	"-no-pie -fno-pie", "-pie -fPIE", "-shared -fPIC", "-static", "-static-pie -fPIE",
};
#define NR_LINKS (sizeof(links) / sizeof(links[0]))

/* A program, its output as bytes and as an ELF file. */
struct output {
	struct fixture f;
	struct me_emitted emitted;
	uint8_t *bytes;
	size_t size;
	struct mp_elf *elf;
};

static int emit(struct fixture *f, uint64_t seed, struct me_emitted *out, struct mp_err *err)
{
	struct me_eligible eligible;
	uint8_t *movable = calloc(f->cfg->nr_funcs + 1, 1);

	ck_assert_ptr_nonnull(movable);
	ck_assert_int_eq(me_eligible_functions(f->cfg, 1, &eligible, err), 0);
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		movable[i] = eligible.verdict[i] == ME_ELIGIBLE;
	me_eligible_fini(&eligible);
	me_plan_fini(&f->plan);
	ck_assert_int_eq(me_plan_all(f->cfg, movable, seed ? &seed : NULL, &f->plan, err), 0);
	free(movable);
	return rewrite_emit(f->cfg, &f->plan, out, err);
}

static void lay_out(struct output *o)
{
	const struct me_output_parts *output = &o->emitted.output;

	o->size = output->size_bytes;
	o->bytes = calloc(1, o->size);
	ck_assert_ptr_nonnull(o->bytes);
	for (uint32_t i = 0; i < output->nr_parts; i++) {
		if (i)
			ck_assert_uint_ge(output->parts[i].off,
					  output->parts[i - 1].off + output->parts[i - 1].size);
		memcpy(o->bytes + output->parts[i].off, output->parts[i].bytes,
		       output->parts[i].size);
	}
}

static void output_build(struct output *o, const char *link, uint64_t seed)
{
	char flags[256], root[256], source[512];

	memset(o, 0, sizeof(*o));
	ck_assert_ptr_nonnull(getcwd(root, sizeof(root)));
	snprintf(source, sizeof(source), "#include \"%s/tests/data/control.c\"\n", root);
	snprintf(flags, sizeof(flags), "-O2 -g %s", link);
	fixture_build(&o->f, "c", flags, source);
	ck_assert_msg(emit(&o->f, seed, &o->emitted, &err) == 0, "%s: %s", link, err.msg);
	lay_out(o);
	ck_assert_msg(mp_elf_open_memory("output", o->bytes, o->size, MP_ELF_ALL, &o->elf, &err) ==
			      0,
		      "%s: %s", link, err.msg);
}

static void output_free(struct output *o)
{
	mp_elf_close(o->elf);
	free(o->bytes);
	me_emitted_fini(&o->emitted);
	fixture_free(&o->f);
}

FIXTURE(NULL, fixture_done);

TEST(emit_adds_one_segment_above_all_others)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		const Elf64_Phdr *last = NULL, *eh = NULL;
		const struct mp_section *hdr;
		struct output o;
		uint32_t nr_old = 0, nr_new = 0;

		output_build(&o, links[i], i);
		ck_assert_uint_eq(o.elf->nr_phdrs, o.f.elf->nr_phdrs);
		ck_assert_uint_eq(o.elf->ehdr.e_phoff, o.f.elf->ehdr.e_phoff);
		for (uint32_t p = 0; p < o.elf->nr_phdrs; p++) {
			nr_old += o.f.elf->phdrs[p].p_type == PT_LOAD;
			if (o.elf->phdrs[p].p_type == PT_GNU_EH_FRAME)
				eh = &o.elf->phdrs[p];
			if (o.elf->phdrs[p].p_type != PT_LOAD)
				continue;
			nr_new++;
			/* Ascending, as the ELF specification requires. */
			if (last)
				ck_assert_uint_ge(o.elf->phdrs[p].p_vaddr,
						  last->p_vaddr + last->p_memsz);
			last = &o.elf->phdrs[p];
			ck_assert_uint_eq((last->p_vaddr - last->p_offset) % last->p_align, 0);
		}
		/* Merging two segments may have made room for the new one. */
		ck_assert_msg(nr_new == nr_old + 1 || nr_new == nr_old, "%s", links[i]);
		ck_assert_uint_eq(last->p_flags, PF_R | PF_X);
		ck_assert_uint_eq(last->p_filesz, o.emitted.segment_bytes);
		hdr = mp_elf_section(o.elf, ".eh_frame_hdr");
		if (eh) {
			ck_assert_uint_eq(eh->p_vaddr, hdr->vaddr);
			ck_assert_uint_eq(eh->p_offset, hdr->off);
			ck_assert_uint_eq(eh->p_filesz, hdr->size);
		}
		ck_assert_uint_eq(o.elf->ehdr.e_entry, o.f.elf->ehdr.e_entry);
		ck_assert_uint_eq(o.elf->ehdr.e_type, o.f.elf->ehdr.e_type);
		output_free(&o);
	}
}

TEST(emit_keeps_loaded_sections_where_they_are)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		struct output o;

		output_build(&o, links[i], 3);
		for (uint32_t k = 1; k < o.f.elf->nr_sections; k++) {
			const struct mp_section *old = &o.f.elf->sections[k], *now;
			const char *name = old->name;

			if (!(old->flags & SHF_ALLOC))
				continue;
			if (!strcmp(name, ".eh_frame"))
				name = ".morph.eh_frame_old";
			if (!strcmp(name, ".eh_frame_hdr"))
				name = ".morph.eh_frame_hdr_old";
			now = mp_elf_section(o.elf, name);
			ck_assert_msg(now != NULL, "%s", name);
			ck_assert_uint_eq(now->vaddr, old->vaddr);
			ck_assert_uint_eq(now->off, old->off);
			ck_assert_uint_eq(now->size, old->size);
			ck_assert_uint_eq(now->type, old->type);
			/* Data that must not change. */
			if (!strcmp(name, ".rodata") || !strncmp(name, ".morph.", 7) ||
			    !strcmp(name, ".dynstr") || !strcmp(name, ".gcc_except_table")) {
				if (!strcmp(name, ".rodata") && o.emitted.patches.nr_table_entries)
					continue;
				ck_assert_msg(!memcmp(o.bytes + now->off, o.f.elf->data + old->off,
						      old->size),
					      "%s: %s", links[i], name);
			}
		}
		output_free(&o);
	}
}

TEST(emit_keeps_debug_sections_and_drops_relocations)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		struct output o;
		uint32_t nr_debug = 0;

		output_build(&o, links[i], 3);
		ck_assert(o.f.elf->relinkable);
		ck_assert(!o.elf->relinkable);
		for (uint32_t k = 1; k < o.elf->nr_sections; k++) {
			const struct mp_section *now = &o.elf->sections[k];
			const struct mp_section *old = mp_elf_section(o.f.elf, now->name);

			ck_assert(now->type != SHT_RELA || now->flags & SHF_ALLOC);
			if (strncmp(now->name, ".debug_", 7) && strcmp(now->name, ".comment"))
				continue;
			nr_debug++;
			if (!old) /* lists of ranges, of which there were none */
				continue;
			/* Entries keep their offsets; other sections grow at their end. */
			ck_assert_uint_ge(now->size, old->size);
			if (!strcmp(now->name, ".debug_info"))
				ck_assert_uint_eq(now->size, old->size);
			else if (strcmp(now->name, ".debug_aranges"))
				ck_assert(!memcmp(o.bytes + now->off, o.f.elf->data + old->off,
						  old->size));
		}
		ck_assert_uint_gt(nr_debug, 4);
		output_free(&o);
	}
}

/* strip copies sections, so it would lose bytes outside of them. */
TEST(emit_covers_every_new_byte_by_a_section)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		AUTO(output_free) struct output o = {0};
		AUTO_FREE uint8_t *covered = NULL;

		output_build(&o, links[i], 3);
		covered = calloc(1, o.size);
		ck_assert_ptr_nonnull(covered);
		for (uint32_t k = 1; k < o.elf->nr_sections; k++) {
			const struct mp_section *s = &o.elf->sections[k];

			if (s->type != SHT_NOBITS)
				memset(covered + s->off, 1, s->size);
		}
		memset(covered + o.elf->ehdr.e_shoff, 1, o.elf->ehdr.e_shnum * sizeof(Elf64_Shdr));
		for (uint64_t b = mp_elf_section(o.elf, ".morph.text")->off; b < o.size; b++)
			ck_assert_msg(covered[b] || !o.bytes[b], "%s: %#lx", links[i],
				      (unsigned long)b);
	}
}

TEST(emit_gives_the_output_a_build_id_of_its_own)
{
	struct output a, b, c;

	output_build(&a, links[1], 1);
	output_build(&b, links[1], 1);
	output_build(&c, links[1], 2);
	ck_assert_uint_gt(a.f.elf->id.build_id_len, 0);
	ck_assert_uint_eq(a.elf->id.build_id_len, a.f.elf->id.build_id_len);
	ck_assert_mem_ne(a.elf->id.build_id, a.f.elf->id.build_id, a.elf->id.build_id_len);
	/* Equal outputs have equal build-ids; different outputs have different ones. */
	ck_assert_uint_eq(a.size, b.size);
	ck_assert(!memcmp(a.bytes, b.bytes, a.size));
	ck_assert_mem_ne(a.elf->id.build_id, c.elf->id.build_id, a.elf->id.build_id_len);
	output_free(&a);
	output_free(&b);
	output_free(&c);
}

TEST(emit_does_without_a_build_id)
{
	AUTO(output_free) struct output o = {0};

	output_build(&o, "-pie -fPIE -Wl,--build-id=none", 1);
	ck_assert_uint_eq(o.elf->id.build_id_len, 0);
}

/* Symbols of moved functions have the addresses of the copies. */
TEST(emit_keeps_dynamic_symbols)
{
	struct output o;
	uint32_t nr = 0, nr_moved = 0;

	output_build(&o, "-shared -fPIC", 3);
	ck_assert_uint_eq(mp_elf_section(o.elf, ".dynsym")->size,
			  mp_elf_section(o.f.elf, ".dynsym")->size);
	for (uint32_t i = 0; i < o.elf->nr_symbols; i++) {
		const struct mp_symbol *now = &o.elf->symbols[i], *old = NULL;

		if (!now->dynamic || now->shndx == SHN_UNDEF || now->shndx >= SHN_LORESERVE)
			continue;
		for (uint32_t k = 0; k < o.f.elf->nr_symbols; k++) {
			if (o.f.elf->symbols[k].dynamic && o.f.elf->symbols[k].index == now->index)
				old = &o.f.elf->symbols[k];
		}
		ck_assert_ptr_nonnull(old);
		ck_assert_str_eq(now->name, old->name);
		if (now->vaddr != old->vaddr) {
			ck_assert_int_eq(now->type, STT_FUNC);
			ck_assert_str_eq(o.elf->sections[now->shndx].name, ".morph.text");
			ck_assert_uint_gt(now->size, 0);
			nr_moved++;
		} else {
			ck_assert_str_eq(o.elf->sections[now->shndx].name,
					 o.f.elf->sections[old->shndx].name);
			ck_assert_uint_eq(now->size, old->size);
		}
		nr++;
	}
	ck_assert_uint_gt(nr_moved, 0);
	ck_assert_uint_ge(nr, nr_moved);
	output_free(&o);
}

TEST(emit_says_what_it_did)
{
	AUTO(output_free) struct output o = {0};
	const struct mp_section *text;

	output_build(&o, links[0], 4);
	text = mp_elf_section(o.elf, ".morph.text");
	ck_assert_uint_eq(o.emitted.text_bytes, text->size);
	ck_assert_uint_gt(o.emitted.hot_bytes, 0);
	ck_assert_uint_lt(o.emitted.hot_bytes, o.emitted.text_bytes);
	ck_assert_uint_gt(o.emitted.segment_bytes, o.emitted.text_bytes);
	ck_assert_uint_gt(o.emitted.nr_inverted, 0);
	ck_assert_uint_gt(o.emitted.nr_jumps_added, 0);
	ck_assert_uint_gt(o.emitted.nr_jumps_dropped, 0);
	ck_assert_uint_eq(o.elf->nr_fdes, o.f.elf->nr_fdes + o.emitted.nr_fdes_new);
	ck_assert_ptr_nonnull(o.emitted.slot_replaced);
}

TEST(emit_works_on_a_file_without_symbols)
{
	char command[600];
	struct output o;

	memset(&o, 0, sizeof(o));
	fixture_compile(&o.f, "c", "-O2 -Wl,--emit-relocs",
			"#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n");
	/* strip would remove the relocations too. */
	snprintf(command, sizeof(command), "objcopy --strip-debug --discard-all %s", o.f.path);
	ck_assert_int_eq(system(command), 0);
	fixture_read(&o.f);
	ck_assert_msg(emit(&o.f, 1, &o.emitted, &err) == 0, "%s", err.msg);
	lay_out(&o);
	ck_assert_int_eq(mp_elf_open_memory("output", o.bytes, o.size, MP_ELF_ALL, &o.elf, &err),
			 0);
	output_free(&o);
}

TEST(emit_refuses_a_symbol_table_that_shares_its_names)
{
	struct me_emitted emitted;

	fixture_build(&f, "c", "-O2", "int main(void) { return 0; }\n");
	for (uint32_t i = 1; i < f.elf->nr_sections; i++) {
		if (f.elf->sections[i].type == SHT_SYMTAB)
			f.elf->sections[i].link = f.elf->ehdr.e_shstrndx;
	}
	ck_assert_int_eq(emit(&f, 1, &emitted, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "string table"));
}
