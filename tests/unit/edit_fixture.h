// SPDX-License-Identifier: Apache-2.0
/*
 * edit_fixture - compiles a small program from source text and analyses it, for tests of the
 * editor's parts. Blocks of a function are numbered by address.
 */
#ifndef MORPH_TESTS_EDIT_FIXTURE_H
#define MORPH_TESTS_EDIT_FIXTURE_H

#include "editor/emit/copy.h"
#include "editor/emit/emit.h"
#include "editor/emit/patch.h"
#include "editor/place/place.h"
#include "libprof/cfg/cfg.h"
#include "libprof/insn/insn.h"
#include "tests/support/rewrite.h"
#include "tests/unit/files.h"

struct fixture {
	char path[256];
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_plan plan;
	struct me_placement placement;
	struct me_patches patches;
	uint8_t *image; /* copy of the file's bytes, changed by me_patch_image() */
	uint8_t *text;	/* written by me_copy_write() */
	uint64_t failed_at;
};

/* The program of the running test. */
__attribute__((unused)) static struct fixture f;

/* @language: c, c++ or assembler. @flags may replace the startup code, for instance -nostdlib. */
static inline void fixture_compile(struct fixture *f, const char *language, const char *flags,
				   const char *source)
{
	const char *dir = getenv("TMPDIR");
	char command[2048], text[300];

	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s/morph-edit-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(text, sizeof(text), "%s.text", f->path);
	write_text(text, source);
	snprintf(command, sizeof(command), "%s %s -x %s %s -o %s",
		 strcmp(language, "c++") ? "gcc" : "g++", flags, language, text, f->path);
	ck_assert_msg(system(command) == 0, "%s", command);
	unlink(text);
}

static inline void fixture_read(struct fixture *f)
{
	struct mp_err err = {""};

	ck_assert_msg(mp_elf_open(f->path, MP_ELF_ALL, &f->elf, &err) == 0, "%s", err.msg);
	ck_assert_msg(mp_cfg_build(f->elf, NULL, &f->cfg, &err) == 0, "%s", err.msg);
	f->plan.redirects.functions = calloc(f->cfg->nr_funcs + 1, 1);
	ck_assert_ptr_nonnull(f->plan.redirects.functions);
}

static inline void fixture_build(struct fixture *f, const char *language, const char *flags,
				 const char *source)
{
	char all[512];

	snprintf(all, sizeof(all), "-Wl,--emit-relocs %s", flags);
	fixture_compile(f, language, all, source);
	fixture_read(f);
}

static inline void fixture_free(struct fixture *f)
{
	free(f->text);
	free(f->image);
	me_patches_fini(&f->patches);
	me_placement_fini(&f->placement);
	me_plan_fini(&f->plan);
	mp_cfg_free(f->cfg);
	mp_elf_close(f->elf);
	unlink(f->path);
}

/* For FIXTURE(NULL, fixture_done). */
static inline void fixture_done(void)
{
	fixture_free(&f);
}

static inline const struct mp_symbol *fixture_symbol(const struct fixture *f, const char *name)
{
	for (uint32_t i = 0; i < f->elf->nr_symbols; i++) {
		if (!strcmp(f->elf->symbols[i].name, name) && f->elf->symbols[i].shndx)
			return &f->elf->symbols[i];
	}
	ck_abort_msg("no symbol %s", name);
	return NULL;
}

static inline uint64_t fixture_vaddr(const struct fixture *f, const char *name)
{
	return fixture_symbol(f, name)->vaddr;
}

static inline uint32_t fixture_func(const struct fixture *f, const char *name)
{
	uint32_t func = mp_cfg_func_at(f->cfg, fixture_vaddr(f, name));

	ck_assert_msg(func != MP_NONE, "%s is no function", name);
	return func;
}

/* Return: block @nr of function @name. */
static inline uint32_t fixture_block(const struct fixture *f, const char *name, uint32_t nr)
{
	const struct mp_func *func = &f->cfg->funcs[fixture_func(f, name)];

	ck_assert_msg(func->problem == MP_PROBLEM_NONE, "%s: %s", name,
		      mp_problem_name(func->problem));
	ck_assert_msg(nr < func->nr_blocks, "%s has %u blocks", name, func->nr_blocks);
	return func->first_block + nr;
}

static inline uint64_t fixture_block_vaddr(const struct fixture *f, const char *name, uint32_t nr)
{
	return f->cfg->blocks[fixture_block(f, name, nr)].vaddr;
}

/* Adds block @nr to the plan, in the hot zone. Change the returned entry for anything else. */
static inline struct me_plan_block *fixture_plan(struct fixture *f, const char *name, uint32_t nr)
{
	if (!f->plan.blocks)
		f->plan.blocks = calloc(f->cfg->nr_blocks + 1, sizeof(*f->plan.blocks));
	ck_assert_ptr_nonnull(f->plan.blocks);
	f->plan.blocks[f->plan.nr_blocks].block = fixture_block(f, name, nr);
	return &f->plan.blocks[f->plan.nr_blocks++];
}

/* Adds all blocks of function @name to the plan, in their order. */
static inline void fixture_plan_all(struct fixture *f, const char *name)
{
	const struct mp_func *func = &f->cfg->funcs[fixture_func(f, name)];

	for (uint32_t i = 0; i < func->nr_blocks; i++) {
		if (!(f->cfg->blocks[func->first_block + i].flags & MP_BLOCK_PADDING))
			fixture_plan(f, name, i);
	}
}

/* Return: lowest address for a segment behind the file's last one. */
static inline uint64_t fixture_base(const struct fixture *f)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < f->elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->elf->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	return (end + 0xffff) & ~UINT64_C(0xfff);
}

static inline void fixture_place_at(struct fixture *f, uint64_t base)
{
	const struct me_instrumentation no_stubs = {0};
	struct mp_err err = {""};

	me_placement_fini(&f->placement);
	ck_assert_int_eq(me_place(f->cfg, &f->plan, &no_stubs, base, &f->placement, &err), 0);
}

static inline void fixture_place(struct fixture *f)
{
	fixture_place_at(f, fixture_base(f));
}

/* Chooses the addresses that change with the planned copies. */
static inline void fixture_redirect(struct fixture *f)
{
	struct mp_err err = {""};

	ck_assert_int_eq(rewrite_redirect(f->cfg, &f->plan, &err), 0);
}

static inline int fixture_copy(struct fixture *f, struct mp_err *err)
{
	free(f->text);
	f->text = calloc(1, f->placement.end - f->placement.base + 1);
	ck_assert_ptr_nonnull(f->text);
	return me_copy_write(f->cfg, &f->placement, &f->plan.redirects, f->text, &f->failed_at,
			     err);
}

static inline int fixture_patch(struct fixture *f, struct mp_err *err)
{
	free(f->image);
	f->image = malloc(f->elf->size);
	ck_assert_ptr_nonnull(f->image);
	memcpy(f->image, f->elf->data, f->elf->size);
	me_patches_fini(&f->patches);
	return me_patch_image(f->cfg, &f->placement, &f->plan.redirects, f->image, f->elf->size,
			      &f->patches, err);
}

/* Return: the image's byte at @vaddr. */
static inline uint8_t *fixture_at(const struct fixture *f, uint64_t vaddr)
{
	uint64_t off;

	ck_assert_msg(mp_elf_vaddr_to_off(f->elf, vaddr, &off), "%#lx", (unsigned long)vaddr);
	return f->image + off;
}

static inline bool fixture_changed(const struct fixture *f, uint64_t vaddr, size_t size)
{
	return memcmp(fixture_at(f, vaddr), mp_elf_bytes(f->elf, vaddr, size), size) != 0;
}

/* Return: the copy of block @nr of @name. */
static inline const struct me_copy *fixture_copy_of(const struct fixture *f, const char *name,
						    uint32_t nr)
{
	uint32_t copy = f->placement.target_from_outside[fixture_block(f, name, nr)];

	ck_assert_uint_ne(copy, MP_NONE);
	return &f->placement.copies[copy];
}

/* Return: the instruction written at @vaddr in the new code. */
static inline struct mp_insn fixture_insn(const struct fixture *f, uint64_t vaddr)
{
	struct mp_insn insn;

	ck_assert_int_eq(mp_insn_decode(f->text + (vaddr - f->placement.base),
					f->placement.end - vaddr, vaddr, &insn),
			 0);
	return insn;
}

#endif
