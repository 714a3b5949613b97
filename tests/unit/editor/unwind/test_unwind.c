// SPDX-License-Identifier: Apache-2.0
/*
 * test_unwind - unwind tables for copies: cuts real programs into pieces at instruction
 * boundaries, shuffles them, and compares libdw's rows for each instruction of old and new
 * code.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

#include "editor/unwind/cfi_put.h"
#include "editor/unwind/lsda.h"
#include "editor/unwind/unwind.h"
#include "libprof/elf/eh.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

#define NEW_BASE 0x4000000ull /* address of the copies; the programs end well below */

static const char program[] =
	"#include <stdexcept>\n#include <string>\n#include <vector>\n#include <cstdio>\n"
	"struct guard { int *p; guard(int *q) : p(q) { ++*p; } ~guard() { --*p; } };\n"
	"struct base_error { virtual ~base_error() {} };\n"
	"struct my_error : base_error { int v; my_error(int x) : v(x) {} };\n"
	"int live; volatile int sink;\n"
	"__attribute__((noinline)) void thrower(int k) {\n"
	"	guard g(&live);\n"
	"	if (k == 1) throw my_error(k);\n"
	"	if (k == 2) throw std::runtime_error(std::string(40, 'x'));\n"
	"	if (k == 3) throw 7;\n"
	"	if (__builtin_expect(k == 4, 0)) throw std::string(\"s\");\n"
	"	sink += k;\n}\n"
	"__attribute__((noinline)) void spec(int k) throw(my_error, int) { guard g(&live); thrower(k); }\n"
	"__attribute__((noinline)) void quiet(int k) noexcept { guard g(&live); if (k > 9) thrower(k - 9); }\n"
	"__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h) {\n"
	"	if (a == 77) throw a; return a + b * c - d + e * f - g + h; }\n"
	"__attribute__((noinline)) int middle(int k) {\n"
	"	std::vector<int> v(10, k); guard g(&live);\n"
	"	try { spec(k); v.push_back(many(1, 2, 3, 4, 5, 6, k, v[1])); }\n"
	"	catch (my_error &e) { v.push_back(e.v); if (k == 1) throw; }\n"
	"	catch (int i) { quiet(i); v.push_back(many(i + 70 * (k == 9), 2, 3, 4, 5, 6, 7, 8)); }\n"
	"	catch (...) { sink++; throw; }\n"
	"	for (int x : v) sink += x;\n	return v.back(); }\n"
	"int main(int argc, char **) {\n"
	"	int n = 0;\n"
	"	for (int k = 0; k < 4 + argc - 1; k++) {\n"
	"		try { n += middle(k); }\n"
	"		catch (const std::exception &e) { n += 100; puts(e.what()); }\n"
	"		catch (base_error &) { n += 1000; } }\n"
	"	printf(\"%d %d\\n\", n, live); return live; }\n";

/* ---- a cut-up program --------------------------------------------------------------------- */

struct fixture {
	struct mp_elf *elf;
	struct mp_cfg cfg;
	struct me_placed *placed;
	uint32_t nr_placed;
	struct me_unwind out;
	char path[256];
};

static uint32_t random_state = 12345;

static uint32_t pick(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

static bool compile(const char *flags, char *path)
{
	char source[256], command[1024];

	ck_assert_int_eq(tiny_elf_write(program, sizeof(program) - 1, source), 0);
	snprintf(path, 256, "%.240s.out", source);
	snprintf(command, sizeof(command),
		 "g++ -std=c++14 -w %s -Wl,--emit-relocs -x c++ %s -o %s 2>/dev/null", flags,
		 source, path);
	if (system("command -v g++ >/dev/null 2>&1"))
		return false;
	ck_assert_int_eq(system(command), 0);
	unlink(source);
	return true;
}

static const struct mp_elf *sort_elf;

static int cmp_symbol(const void *a, const void *b)
{
	const struct mp_symbol *sa = &sort_elf->symbols[*(const uint32_t *)a];
	const struct mp_symbol *sb = &sort_elf->symbols[*(const uint32_t *)b];

	return sa->vaddr < sb->vaddr ? -1 : sa->vaddr > sb->vaddr;
}

/* Function symbols sorted by address. */
struct symbols {
	uint32_t *index, nr;
};

static void sort_symbols(const struct mp_elf *elf, struct symbols *symbols)
{
	symbols->index = calloc(elf->nr_symbols, sizeof(uint32_t));
	symbols->nr = 0;
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		if (elf->symbols[i].type == STT_FUNC)
			symbols->index[symbols->nr++] = i;
	}
	sort_elf = elf;
	qsort(symbols->index, symbols->nr, sizeof(uint32_t), cmp_symbol);
}

static const struct mp_symbol *symbol_at(const struct mp_elf *elf, const struct symbols *symbols,
					 uint64_t vaddr)
{
	uint32_t lo = 0, hi = symbols->nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct mp_symbol *sym = &elf->symbols[symbols->index[mid]];

		if (sym->vaddr == vaddr)
			return sym;
		if (sym->vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool is_pad(const struct me_lsda *lsda, uint32_t nr, uint64_t vaddr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (lsda->sites[i].pad == vaddr)
			return true;
	}
	return false;
}

static void add_block(struct mp_cfg *cfg, uint32_t func, uint64_t vaddr, uint32_t size,
		      uint8_t term_len, uint8_t term)
{
	if (cfg->nr_blocks % 1024 == 0)
		cfg->blocks = realloc(cfg->blocks, (cfg->nr_blocks + 1024) * sizeof(*cfg->blocks));
	cfg->blocks[cfg->nr_blocks++] = (struct mp_block){
		.vaddr = vaddr, .size = size, .func = func, .term = term, .term_len = term_len};
}

/* Makes the blocks of one FDE: cuts behind branches, at landing pads and at random. */
static bool cut(struct mp_cfg *cfg, uint32_t func, const struct mp_fde *fde,
		const struct me_lsda *lsda, uint32_t nr_sites)
{
	const uint8_t *code = mp_elf_bytes(cfg->elf, fde->start, fde->size);
	uint64_t start = fde->start, end = fde->start + fde->size;

	for (uint64_t at = start; at < end;) {
		struct mp_insn insn;
		uint64_t next;

		if (!code || mp_insn_decode(code + (at - fde->start), end - at, at, &insn))
			return false;
		next = at + insn.len;
		if (mp_insn_ends_block(&insn) || next == end || pick(6) == 0 ||
		    is_pad(lsda, nr_sites, next)) {
			bool branch = insn.kind == MP_INSN_COND || insn.kind == MP_INSN_JUMP;

			add_block(cfg, func, start, (uint32_t)(next - start), branch ? insn.len : 0,
				  insn.kind == MP_INSN_COND   ? MP_TERM_COND
				  : insn.kind == MP_INSN_JUMP ? MP_TERM_JUMP
				  : mp_insn_ends_block(&insn) ? MP_TERM_RET
							      : MP_TERM_FALL);
			start = next;
		}
		at = next;
	}
	return true;
}

/* Return: the FDE of NAME.cold if it lies before NAME. */
static const struct mp_fde *cold_part(const struct mp_elf *elf, const struct symbols *symbols,
				      const char *name, uint64_t before)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < elf->nr_fdes && elf->fdes[i].start < before; i++) {
		const struct mp_symbol *sym = symbol_at(elf, symbols, elf->fdes[i].start);

		if (sym && !strncmp(sym->name, name, len) && !strcmp(sym->name + len, ".cold"))
			return &elf->fdes[i];
	}
	return NULL;
}

static bool cut_fde(struct mp_cfg *cfg, const struct mp_fde *fde, struct me_lsda *lsda)
{
	uint32_t nr_sites = 0;
	const char *why;

	if (fde->lsda && !me_lsda_read(cfg->elf, fde->lsda, fde->start, fde->size, lsda, &why))
		nr_sites = lsda->nr_sites;
	return cut(cfg, cfg->nr_funcs, fde, lsda, nr_sites);
}

/*
 * Makes one function per FDE; NAME.cold is joined to NAME. For large programs, only every
 * @one_of th.
 */
static void make_cfg(struct fixture *f, uint32_t one_of)
{
	struct mp_elf *elf = f->elf;
	struct mp_cfg *cfg = &f->cfg;
	const struct mp_section *text = mp_elf_section(elf, ".text");
	struct me_lsda lsda = {0};
	struct symbols symbols;

	sort_symbols(elf, &symbols);
	cfg->elf = elf;
	cfg->funcs = calloc(elf->nr_fdes, sizeof(*cfg->funcs));
	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		const struct mp_fde *fde = &elf->fdes[i], *cold;
		const struct mp_symbol *sym = symbol_at(elf, &symbols, fde->start);
		struct mp_func *func = &cfg->funcs[cfg->nr_funcs];

		if (fde->start < text->vaddr || fde->start + fde->size > text->vaddr + text->size ||
		    !sym || strstr(sym->name, ".cold") || pick(one_of))
			continue;
		*func = (struct mp_func){
			.name = sym->name, .vaddr = sym->vaddr, .first_block = cfg->nr_blocks};
		/* Blocks ascend, so the cold part, which lies before, comes first. */
		cold = cold_part(elf, &symbols, sym->name, fde->start);
		if ((cold && !cut_fde(cfg, cold, &lsda)) || !cut_fde(cfg, fde, &lsda)) {
			cfg->nr_blocks = func->first_block;
			continue;
		}
		func->nr_blocks = cfg->nr_blocks - func->first_block;
		cfg->nr_funcs++;
	}
	me_lsda_fini(&lsda);
	free(symbols.index);
}

/* Return: a size that emit may give to the copy of a block. */
static uint32_t new_size(const struct mp_block *block)
{
	uint32_t body = block->size - block->term_len;

	if (block->term == MP_TERM_COND)
		return body + (pick(2) ? 2 : 6) + (pick(2) ? 5 : 0);
	if (block->term == MP_TERM_JUMP)
		return body + (pick(2) ? 0 : pick(2) ? 2 : 5);
	if (block->term == MP_TERM_FALL)
		return body + (pick(2) ? 5 : 0);
	return block->size;
}

/* Places functions in order, with shuffled blocks; some blocks are not copied. */
static void place(struct fixture *f)
{
	uint64_t at = NEW_BASE;

	f->placed = calloc(f->cfg.nr_blocks + 1, sizeof(*f->placed));
	for (uint32_t i = 0; i < f->cfg.nr_funcs; i++) {
		const struct mp_func *func = &f->cfg.funcs[i];
		uint32_t first = f->nr_placed;
		const char *why;

		if (me_unwind_check(&f->cfg, i, &why))
			continue;
		for (uint32_t k = 0; k < func->nr_blocks; k++) {
			if (pick(5))
				f->placed[f->nr_placed++].block = func->first_block + k;
		}
		for (uint32_t k = f->nr_placed; k > first + 1; k--) {
			uint32_t other = first + pick(k - first), swap = f->placed[other].block;

			f->placed[other].block = f->placed[k - 1].block;
			f->placed[k - 1].block = swap;
		}
		for (uint32_t k = first; k < f->nr_placed; k++) {
			if (pick(8) == 0)
				at = (at + 31) & ~31ull;
			if (pick(50) == 0)
				at += 200;
			f->placed[k].new_vaddr = at;
			f->placed[k].new_size = new_size(&f->cfg.blocks[f->placed[k].block]);
			at += f->placed[k].new_size;
		}
	}
}

static bool setup(struct fixture *f, const char *flags, uint32_t one_of)
{
	int ret;

	memset(f, 0, sizeof(*f));
	if (!compile(flags, f->path))
		return false;
	ret = mp_elf_open(f->path, MP_ELF_ALL, &f->elf, &err);
	ck_assert_msg(ret == 0, "%s", err.msg);
	make_cfg(f, one_of);
	place(f);
	ck_assert_uint_gt(f->nr_placed, 100);
	ret = me_unwind_build(&f->cfg, f->placed, f->nr_placed, NEW_BASE + 0x1000000, 0, 0, &f->out,
			      &err);
	ck_assert_msg(ret == 0, "%s", err.msg);
	return true;
}

static void teardown(struct fixture *f)
{
	mp_elf_close(f->elf);
	free(f->cfg.funcs);
	free(f->cfg.blocks);
	free(f->placed);
	free(f->out.bytes);
	unlink(f->path);
}

/* ---- other readers ------------------------------------------------------------------------- */

/* Return: an ELF file with the new tables, loaded at their addresses. */
static uint8_t *new_elf(const struct fixture *f, size_t *size)
{
	uint64_t base = NEW_BASE + 0x1000000;
	struct tiny_section sections[] = {
		{".gcc_except_table.morph", 0, 0, base + f->out.lsda_off,
		 f->out.bytes + f->out.lsda_off, f->out.lsda_size, 0, 0, 0},
		{".eh_frame", 0, 0, base + f->out.eh_frame_off, f->out.bytes + f->out.eh_frame_off,
		 f->out.eh_frame_size, 0, 0, 0},
		{".eh_frame_hdr", 0, 0, base + f->out.hdr_off, f->out.bytes + f->out.hdr_off,
		 f->out.hdr_size, 0, 0, 0},
	};
	Elf64_Phdr phdr = {.p_type = PT_GNU_EH_FRAME,
			   .p_flags = PF_R,
			   .p_offset = base + f->out.hdr_off,
			   .p_vaddr = base + f->out.hdr_off,
			   .p_filesz = f->out.hdr_size,
			   .p_memsz = f->out.hdr_size};
	uint8_t *bytes;

	for (int i = 0; i < 3; i++) {
		sections[i].type = SHT_PROGBITS;
		sections[i].flags = SHF_ALLOC;
	}
	bytes = tiny_elf_build(sections, 3, &phdr, 1, size);
	((Elf64_Ehdr *)bytes)->e_type = f->elf->ehdr.e_type;
	return bytes;
}

struct rows {
	Elf *elf;
	Dwarf_CFI *cfi;
};

static void open_rows(struct rows *rows, const void *bytes, size_t size)
{
	elf_version(EV_CURRENT);
	rows->elf = elf_memory((char *)bytes, size);
	ck_assert_ptr_nonnull(rows->elf);
	rows->cfi = dwarf_getcfi_elf(rows->elf);
	ck_assert_ptr_nonnull(rows->cfi);
}

static void close_rows(struct rows *rows)
{
	dwarf_cfi_end(rows->cfi);
	elf_end(rows->elf);
}

static void assert_same_ops(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	ck_assert_uint_eq(na, nb);
	for (size_t i = 0; i < na; i++) {
		ck_assert_int_eq(a[i].atom, b[i].atom);
		ck_assert_uint_eq(a[i].number, b[i].number);
		ck_assert_uint_eq(a[i].number2, b[i].number2);
	}
}

static void assert_same_row(const struct rows *old, uint64_t old_vaddr, const struct rows *new,
			    uint64_t new_vaddr)
{
	Dwarf_Frame *a = NULL, *b = NULL;
	Dwarf_Op *ops_a, *ops_b, mem_a[3], mem_b[3];
	size_t na, nb;

	ck_assert_msg(!dwarf_cfi_addrframe(old->cfi, old_vaddr, &a), "%#lx: %s", (long)old_vaddr,
		      dwarf_errmsg(-1));
	ck_assert_msg(!dwarf_cfi_addrframe(new->cfi, new_vaddr, &b), "%#lx (%#lx): %s",
		      (long)new_vaddr, (long)old_vaddr, dwarf_errmsg(-1));
	ck_assert_int_eq(dwarf_frame_cfa(a, &ops_a, &na), 0);
	ck_assert_int_eq(dwarf_frame_cfa(b, &ops_b, &nb), 0);
	assert_same_ops(ops_a, na, ops_b, nb);
	for (int reg = 0; reg < MP_CFI_NR_REGS; reg++) {
		int ra = dwarf_frame_register(a, reg, mem_a, &ops_a, &na);
		int rb = dwarf_frame_register(b, reg, mem_b, &ops_b, &nb);

		ck_assert_int_eq(ra, rb);
		if (ra)
			continue;
		ck_assert(!ops_a == !ops_b);
		assert_same_ops(ops_a, na, ops_b, nb);
	}
	free(a);
	free(b);
}

static uint64_t fde_end(const struct mp_elf *elf, uint64_t vaddr)
{
	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		if (vaddr >= elf->fdes[i].start && vaddr - elf->fdes[i].start < elf->fdes[i].size)
			return elf->fdes[i].start + elf->fdes[i].size;
	}
	return 0;
}

/* Return: the old address whose row must apply at offset @k of a copy. */
static uint64_t original_of(const struct fixture *f, const struct me_placed *placed, uint32_t k)
{
	const struct mp_block *block = &f->cfg.blocks[placed->block];
	uint32_t body = block->size - block->term_len;

	if (k < body)
		return block->vaddr + k;
	if (block->vaddr + body < fde_end(f->elf, block->vaddr))
		return block->vaddr + body;
	return block->vaddr + body - 1;
}

static void check_rows(const char *flags, uint32_t one_of)
{
	struct fixture f;
	struct rows old, new;
	const void *data;
	size_t size;
	uint8_t *bytes;

	if (!setup(&f, flags, one_of))
		MORPH_SKIP("no g++");
	bytes = new_elf(&f, &size);
	data = f.elf->data;
	open_rows(&old, data, f.elf->size);
	open_rows(&new, bytes, size);
	for (uint32_t i = 0; i < f.nr_placed; i++) {
		for (uint32_t k = 0; k < f.placed[i].new_size; k++)
			assert_same_row(&old, original_of(&f, &f.placed[i], k), &new,
					f.placed[i].new_vaddr + k);
	}
	/* Code that stays finds the same rows as before. */
	for (uint32_t i = 0; i < f.elf->nr_fdes; i += one_of) {
		const struct mp_fde *fde = &f.elf->fdes[i];

		for (uint64_t k = 0; k < fde->size; k += 1 + fde->size / 16)
			assert_same_row(&old, fde->start + k, &new, fde->start + k);
	}
	close_rows(&old);
	close_rows(&new);
	free(bytes);
	teardown(&f);
}

TEST(unwind_gives_each_copied_instruction_its_row_pie)
{
	check_rows("-O2 -fpie -pie", 1);
}

TEST(unwind_gives_each_copied_instruction_its_row_fixed_address)
{
	check_rows("-O2 -fno-pie -no-pie", 1);
}

TEST(unwind_gives_each_copied_instruction_its_row_frame_pointer)
{
	check_rows("-O1 -fno-omit-frame-pointer -fpie -pie -mavx -mstackrealign", 1);
}

TEST(unwind_gives_each_copied_instruction_its_row_static)
{
	check_rows("-Os -fno-pie -no-pie -static", 40);
}

/* ---- rows by libprof's reader: libdw ignores args_size -------------------------------------- */

static const struct mp_fde *find_fde(const struct mp_elf *elf, uint64_t vaddr)
{
	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		if (vaddr >= elf->fdes[i].start && vaddr - elf->fdes[i].start < elf->fdes[i].size)
			return &elf->fdes[i];
	}
	return NULL;
}

static uint64_t args_size_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_fde *fde = find_fde(elf, vaddr);
	AUTO(mp_cfi_table_fini) struct mp_cfi_table table = {0};
	AUTO(mp_cfi_rules_fini) struct mp_cfi_rules rules = {0};
	struct mp_eh_cie cie;
	struct mp_eh_fde full;
	uint64_t size;

	ck_assert_ptr_nonnull(fde);
	ck_assert_int_eq(mp_cfi_rules_init(&rules), 0);
	ck_assert_int_eq(mp_eh_read_fde(elf, fde->fde_vaddr, &cie, &full), 0);
	ck_assert_int_eq(mp_cfi_expand(&rules, &cie, &full, &table), 0);
	size = table.lines[mp_cfi_line_at(&table, vaddr - full.start)].row.args_size;
	return size;
}

TEST(unwind_keeps_the_size_of_pushed_arguments)
{
	struct mp_elf *elf;
	struct fixture f;
	uint32_t nonzero = 0;
	uint8_t *bytes;
	size_t size;

	if (!setup(&f, "-Os -fpie -pie -mno-accumulate-outgoing-args -mpush-args", 1))
		MORPH_SKIP("no g++");
	bytes = new_elf(&f, &size);
	ck_assert_int_eq(mp_elf_open_memory("new", bytes, size, MP_ELF_FDES, &elf, NULL), 0);
	ck_assert_uint_gt(elf->nr_fdes, f.elf->nr_fdes);
	for (uint32_t i = 0; i < f.nr_placed; i++) {
		for (uint32_t k = 0; k < f.placed[i].new_size; k++) {
			uint64_t want = args_size_at(f.elf, original_of(&f, &f.placed[i], k));

			ck_assert_uint_eq(args_size_at(elf, f.placed[i].new_vaddr + k), want);
			nonzero += want != 0;
		}
	}
	ck_assert_uint_gt(nonzero, 0);
	mp_elf_close(elf);
	free(bytes);
	teardown(&f);
}

/* ---- exception tables, by a separate reader ------------------------------------------------- */

struct found {
	bool listed;
	uint64_t pad;
	int nr_filters;
	int64_t filters[16]; /* filter and type in turn */
	uint64_t types[16];
};

static uint64_t type_of(const struct mp_elf *elf, uint64_t base, uint8_t enc, uint64_t index)
{
	unsigned int size = mp_pe_size(enc);
	struct mp_cursor cur;

	ck_assert(mp_eh_cursor_at(elf, base - index * size, &cur));
	return mp_cursor_pointer(&cur, enc, 0);
}

/* Finds what the C++ personality routine would find for @vaddr. */
static void find_handler(const struct mp_elf *elf, uint64_t vaddr, struct found *found)
{
	const struct mp_fde *fde = find_fde(elf, vaddr);
	uint64_t lpstart = fde->start, types = 0, size, action = 0;
	struct mp_cursor cur, actions;
	uint8_t enc, type_enc;

	memset(found, 0, sizeof(*found));
	found->listed = true;
	if (!fde->lsda)
		return;
	ck_assert(mp_eh_cursor_at(elf, fde->lsda, &cur));
	enc = mp_cursor_u8(&cur);
	if (enc != MP_EH_PE_OMIT)
		lpstart = mp_cursor_pointer(&cur, enc, 0);
	type_enc = mp_cursor_u8(&cur);
	if (type_enc != MP_EH_PE_OMIT) {
		size = mp_cursor_uleb(&cur);
		types = cur.vaddr + size;
	}
	enc = mp_cursor_u8(&cur);
	size = mp_cursor_uleb(&cur);
	actions = cur;
	mp_cursor_skip(&actions, size);
	found->listed = false;
	while (cur.p < actions.p) {
		uint64_t start = mp_cursor_pointer(&cur, enc, 0),
			 len = mp_cursor_pointer(&cur, enc, 0);
		uint64_t pad = mp_cursor_pointer(&cur, enc, 0);

		action = mp_cursor_uleb(&cur);
		if (vaddr < fde->start + start)
			return;
		if (vaddr < fde->start + start + len) {
			found->listed = true;
			found->pad = pad ? lpstart + pad : 0;
			break;
		}
	}
	ck_assert(!cur.bad);
	while (found->listed && action && found->nr_filters < 16) {
		struct mp_cursor at = actions;
		int64_t filter, next;
		uint64_t base;

		mp_cursor_skip(&at, action - 1);
		filter = mp_cursor_sleb(&at);
		base = at.vaddr - actions.vaddr;
		next = mp_cursor_sleb(&at);
		found->filters[found->nr_filters] = filter;
		if (filter > 0) {
			found->types[found->nr_filters] =
				type_of(elf, types, type_enc, (uint64_t)filter);
		} else if (filter < 0) {
			uint64_t sum = 1, index;

			ck_assert(mp_eh_cursor_at(elf, types + (uint64_t)(-filter - 1), &at));
			while ((index = mp_cursor_uleb(&at)))
				sum = sum * 31 + type_of(elf, types, type_enc, index);
			found->types[found->nr_filters] = sum;
		}
		found->nr_filters++;
		action = next ? base + (uint64_t)next + 1 : 0;
	}
}

static uint64_t copy_of(const struct fixture *f, uint64_t vaddr)
{
	for (uint32_t i = 0; i < f->nr_placed; i++) {
		if (f->cfg.blocks[f->placed[i].block].vaddr == vaddr)
			return f->placed[i].new_vaddr;
	}
	return vaddr;
}

static void check_handlers(const char *flags)
{
	struct found old, new;
	uint32_t nr_pads = 0, nr_types = 0, nr_specs = 0, nr_unlisted = 0, nr_old_pads = 0;
	struct mp_elf *elf;
	struct fixture f;
	uint8_t *bytes;
	size_t size;

	if (!setup(&f, flags, 1))
		MORPH_SKIP("no g++");
	bytes = new_elf(&f, &size);
	ck_assert_int_eq(mp_elf_open_memory("new", bytes, size, MP_ELF_FDES, &elf, NULL), 0);
	for (uint32_t i = 0; i < f.nr_placed; i++) {
		const struct mp_block *block = &f.cfg.blocks[f.placed[i].block];
		const uint32_t size = block->size - block->term_len;

		for (uint32_t k = 0; k < size; k++) {
			find_handler(f.elf, block->vaddr + k, &old);
			find_handler(elf, f.placed[i].new_vaddr + k, &new);
			ck_assert_int_eq(old.listed, new.listed);
			ck_assert_uint_eq(old.pad ? copy_of(&f, old.pad) : 0, new.pad);
			ck_assert_int_eq(old.nr_filters, new.nr_filters);
			ck_assert(!memcmp(old.filters, new.filters, sizeof(old.filters)));
			ck_assert(!memcmp(old.types, new.types, sizeof(old.types)));
			nr_unlisted += !old.listed;
			nr_pads += old.pad != 0;
			nr_old_pads += old.pad && old.pad == new.pad;
			for (int n = 0; n < old.nr_filters; n++) {
				nr_types += old.filters[n] > 0;
				nr_specs += old.filters[n] < 0;
			}
		}
	}
	/* The test must have covered all of these. */
	ck_assert_uint_gt(nr_pads, 0);
	ck_assert_uint_gt(nr_old_pads, 0);
	ck_assert_uint_gt(nr_types, 0);
	ck_assert_uint_gt(nr_specs, 0);
	ck_assert_uint_gt(nr_unlisted, 0);
	mp_elf_close(elf);
	free(bytes);
	teardown(&f);
}

TEST(unwind_finds_the_same_handlers_pie)
{
	check_handlers("-O2 -fpie -pie");
}

TEST(unwind_finds_the_same_handlers_fixed_address)
{
	check_handlers("-O2 -fno-pie -no-pie");
}

/* ---- what is refused ------------------------------------------------------------------------ */

TEST(unwind_refuses_an_unknown_personality)
{
	struct fixture f;
	uint32_t nr = 0;

	if (!setup(&f, "-O2 -fpie -pie", 1))
		MORPH_SKIP("no g++");
	for (uint32_t i = 0; i < f.elf->nr_fdes; i++)
		f.elf->fdes[i].personality_name = "__other_personality_v0";
	for (uint32_t i = 0; i < f.cfg.nr_funcs; i++) {
		const char *why;

		nr += me_unwind_check(&f.cfg, i, &why) == -EPERM &&
		      !strcmp(why, "unknown personality");
	}
	ck_assert_uint_gt(nr, 4);
	teardown(&f);
}

TEST(unwind_refuses_overlapping_copies)
{
	struct me_unwind out;
	struct fixture f;

	if (!setup(&f, "-O2 -fpie -pie", 1))
		MORPH_SKIP("no g++");
	f.placed[5].new_vaddr = f.placed[4].new_vaddr;
	f.placed[4].new_size += 8;
	ck_assert_int_lt(
		me_unwind_build(&f.cfg, f.placed, f.nr_placed, NEW_BASE * 2, 0, 0, &out, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "overlap"));
	teardown(&f);
}

TEST(unwind_refuses_what_is_out_of_reach)
{
	struct me_unwind out;
	struct fixture f;

	if (!setup(&f, "-O2 -fpie -pie", 1))
		MORPH_SKIP("no g++");
	ck_assert_int_lt(
		me_unwind_build(&f.cfg, f.placed, f.nr_placed, 3ull << 32, 0, 0, &out, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "reach"));
	teardown(&f);
}

TEST(unwind_size_does_not_depend_on_the_base)
{
	struct me_unwind out;
	struct fixture f;

	if (!setup(&f, "-O2 -fpie -pie", 1))
		MORPH_SKIP("no g++");
	ck_assert_int_eq(me_unwind_build(&f.cfg, f.placed, f.nr_placed, NEW_BASE + 0x1234568, 0, 0,
					 &out, NULL),
			 0);
	ck_assert_uint_eq(out.size, f.out.size);
	ck_assert_uint_eq(out.hdr_off, f.out.hdr_off);
	free(out.bytes);
	teardown(&f);
}
