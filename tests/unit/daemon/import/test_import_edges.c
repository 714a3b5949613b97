// SPDX-License-Identifier: Apache-2.0
/*
 * test_import_edges - imported control transfers: the forms of fdata, branch stacks in perf
 * script's text, callgrind's jumps. Checks which are counted, why others are not, and the lines
 * of errors.
 */

#include "daemon/import/import.h"
#include "daemon/import/import_brstack.h"
#include "daemon/import/import_symbols.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

static char path[256];
static struct md_import *import;

/* ---- the file ------------------------------------------------------------------------------ */

#define TOP	 0x1000
#define LEAF_A	 0x1020
#define LEAF_B	 0x1030
#define ODD	 0x1040
#define COLD	 0x1050
#define STUB	 0x1060
#define TEXT_END 0x1070

static const uint8_t code[TEXT_END - TOP] = {
	[0x00] = 0x85, 0xff,			     /* 1000 test edi, edi */
	[0x02] = 0x74, 0x07,			     /* 1002 jz 100b */
	[0x04] = 0xe8, 0x17, 0x00, 0x00, 0x00,	     /* 1004 call 1020 */
	[0x09] = 0xeb, 0x02,			     /* 1009 jmp 100d */
	[0x0b] = 0x90, 0x90,			     /* 100b */
	[0x0d] = 0xff, 0xe0,			     /* 100d jmp *rax */
	[0x0f] = 0xc3,				     /* 100f ret */
	[0x20] = 0xf3, 0xa4,			     /* 1020 rep movsb */
	[0x22] = 0xff, 0xd0,			     /* 1022 call *rax */
	[0x24] = 0xc3,				     /* 1024 ret */
	[0x30] = 0xc3,				     /* 1030 ret */
	[0x40] = 0xe8, 0x1b, 0x00, 0x00, 0x00,	     /* 1040 call 1060 */
	[0x45] = 0xc3,				     /* 1045 ret */
	[0x50] = 0xc3,				     /* 1050 ret */
	[0x60] = 0xff, 0x25, 0x00, 0x10, 0x00, 0x00, /* 1060 jmp *[rip + 0x1000] */
};

static const char names[] = "\0top\0leaf\0a.c\0dir/b.c\0odd name\\x\0f.cold\0alias";

static uint32_t name_of(const char *text)
{
	for (const char *p = names + 1; p < names + sizeof(names); p += strlen(p) + 1)
		if (!strcmp(p, text))
			return (uint32_t)(p - names);
	ck_abort_msg("no name %s", text);
}

static Elf64_Sym symbol(const char *name, int bind, int type, uint64_t vaddr)
{
	return (Elf64_Sym){.st_name = name_of(name),
			   .st_info = ELF64_ST_INFO(bind, type),
			   .st_shndx = type == STT_FILE ? SHN_ABS : 1,
			   .st_value = vaddr};
}

static void setup(void)
{
	const Elf64_Sym symbols[] = {
		{0},
		symbol("a.c", STB_LOCAL, STT_FILE, 0),
		symbol("leaf", STB_LOCAL, STT_FUNC, LEAF_A),
		symbol("f.cold", STB_LOCAL, STT_FUNC, COLD),
		symbol("dir/b.c", STB_LOCAL, STT_FILE, 0),
		symbol("leaf", STB_LOCAL, STT_FUNC, LEAF_B),
		symbol("top", STB_GLOBAL, STT_FUNC, TOP),
		symbol("alias", STB_GLOBAL, STT_FUNC, TOP),
		symbol("odd name\\x", STB_GLOBAL, STT_FUNC, ODD),
	};
	const struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TOP, code, sizeof(code), 0, 0,
		 0},
		{".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols), 3, 6, sizeof(Elf64_Sym)},
		{".strtab", SHT_STRTAB, 0, 0, names, sizeof(names), 0, 0, 0},
	};
	size_t size;
	uint8_t *bytes = tiny_elf_build(sections, 3, NULL, 0, &size);

	ck_assert_ptr_nonnull(bytes);
	ck_assert_int_eq(tiny_elf_write(bytes, size, path), 0);
	free(bytes);
	import = md_import_new();
	err.msg[0] = '\0';
}

static void teardown(void)
{
	md_import_free(import);
	unlink(path);
}

enum format {
	FDATA,
	PERF,
	CALLGRIND
};

static int run(enum format format, const char *content)
{
	struct md_lines lines = {.name = "FILE"};
	int r;

	lines.file = fmemopen((void *)(uintptr_t)content, strlen(content), "r");
	ck_assert_ptr_nonnull(lines.file);
	r = format == FDATA  ? md_import_fdata(import, &lines, path, &err)
	    : format == PERF ? md_import_perf(import, &lines, NULL, &err)
			     : md_import_callgrind(import, &lines, &err);
	fclose(lines.file);
	free(lines.line);
	return r;
}

/* In @fmt, %1$s is the path. */
static int run_with_path(enum format format, const char *fmt)
{
	char text[4096];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), fmt, path);
#pragma GCC diagnostic pop
	return run(format, text);
}

static void expect(const struct mp_edge_count *want, size_t nr)
{
	const struct md_import_transfers *t = &import->transfers;
	struct md_import_module *m;

	ck_assert_uint_eq(import->nr_modules, 1);
	m = &import->modules[0];
	md_import_sort_edges(m);
	ck_assert_uint_eq(m->nr_edges, nr);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(m->edges[i].from, want[i].from);
		ck_assert_uint_eq(m->edges[i].to, want[i].to);
		ck_assert_uint_eq(m->edges[i].count, want[i].count);
		ck_assert_uint_eq(m->edges[i].mispredicted, want[i].mispredicted);
	}
	ck_assert_uint_eq(t->seen,
			  t->counted + t->fell + t->outside + t->unnamed + t->unfit + t->moved);
}

static void refuse(enum format format, const char *content, const char *message)
{
	int r;

	md_import_free(import);
	import = md_import_new();
	r = run(format, content);
	ck_assert_msg(r == -EBADMSG, "%s: %d", content, r);
	ck_assert_msg(strstr(err.msg, message), "%s: '%s' is not '%s'", content, err.msg, message);
}

/* ---- fdata --------------------------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(fdata_gives_taken_transfers_and_leaves_out_what_fell_through)
{
	const struct mp_edge_count want[] = {{0x1002, 0x100b, 10, 4},
					     {0x1004, LEAF_A, 7, 0},
					     {0x1009, 0x100d, 7, 0},
					     {0x100d, LEAF_B, 3, 1},
					     {0x1024, 0x1009, 7, 0}};

	ck_assert_int_eq(run(FDATA, "1 top 2 1 top b 4 9\n"
				    "1 top 2 1 top 4 0 7\n" /* not taken */
				    "1 top 4 1 leaf/1 0 0 7\n"
				    "1 leaf/1 4 1 top 9 0 7\n"
				    "1 top 9 1 top d 0 7\n"
				    "1 top b 1 top c 0 9\n" /* falls into the next block */
				    "1 top c 1 top d 0 9\n"
				    "1 top d 1 leaf/2 0 1 3\n"
				    "1 alias 2 1 alias b 0 1\n"),
			 0);
	expect(want, 5);
	ck_assert_uint_eq(import->transfers.fell, 25);
	ck_assert_str_eq(import->session.event, "branches");
}

TEST(fdata_names_local_functions_by_number_file_and_address)
{
	static const char *const calls[] = {"leaf/1",
					    "leaf/a.c/1",
					    "leaf/2",
					    "leaf/dir/b.c/1",
					    "f.cold/1",
					    "odd\\ name\\\\x",
					    "__BOLT_FDE_FUNCat1030",
					    "__BOLT_FDE_FUNCat1020/1",
					    "top"};
	static const uint64_t vaddrs[] = {LEAF_A, LEAF_A, LEAF_B, LEAF_B, COLD,
					  ODD,	  LEAF_B, LEAF_A, TOP};
	char line[80];

	for (size_t i = 0; i < 9; i++) {
		struct mp_edge_count want = {0x100d, vaddrs[i], 5, 0};

		snprintf(line, sizeof(line), "1 top d 1 %s 0 0 5\n", calls[i]);
		ck_assert_int_eq(run(FDATA, line), 0);
		expect(&want, 1);
		md_import_free(import);
		import = md_import_new();
	}
}

TEST(fdata_counts_what_names_nothing_here)
{
	const struct mp_edge_count want[] = {{0x100d, LEAF_A, 1, 0}};

	/* "leaf" is ambiguous; there is no third leaf, no such file and no such function. */
	ck_assert_int_eq(run(FDATA, "1 top d 1 leaf 0 0 1\n"
				    "1 top d 1 leaf/3 0 0 2\n"
				    "1 top d 1 leaf/c.c/1 0 0 4\n"
				    "1 none 0 1 top 0 0 8\n"
				    "1 top d 1 leaf/0 0 0 16\n"
				    "1 top d 1 /1 0 0 32\n"
				    "1 top d 1 leaf/1 0 0 1\n"
				    "0 [unknown] 0 1 top 0 0 100\n"
				    "1 top f 0 [unknown] 0 3 200\n"
				    "1 top d 0 /lib/libc.so.6 1234 0 400\n"),
			 0);
	expect(want, 1);
	ck_assert_uint_eq(import->transfers.unnamed, 63);
	ck_assert_uint_eq(import->transfers.outside, 700);
}

TEST(fdata_believes_nothing_that_the_code_cannot_do)
{
	ck_assert_int_eq(run(FDATA, "1 top 2 1 top d 0 1\n"    /* jz leads elsewhere */
				    "1 top 4 1 leaf/2 0 0 2\n" /* so does the call */
				    "1 top 0 1 top b 0 4\n"    /* no branch there */
				    "1 top 5 1 top b 0 8\n"    /* inside an instruction */
				    "1 top d 1 top 900 0 16\n" /* to an address without code */
				    "1 top 900 1 top d 0 32\n" /* from such an address */
				    "1 leaf/1 0 1 top 9 0 64\n"),
			 0);
	expect(NULL, 0);
	ck_assert_uint_eq(import->transfers.unfit, 127);
}

TEST(fdata_finds_a_stub_by_the_call_of_it)
{
	const struct mp_edge_count want[] = {{ODD, STUB, 6, 0}};

	ck_assert_int_eq(run(FDATA, "1 odd\\ name\\\\x 0 1 puts@PLT 0 0 6\n"
				    "1 puts@PLT 0 0 [unknown] 0 0 4\n"
				    "1 puts@PLT b 1 __BOLT_PSEUDO_.plt 0 0 2\n"
				    "1 top d 1 puts@PLT 0 0 2\n"),
			 0);
	expect(want, 1);
	ck_assert_uint_eq(import->transfers.outside, 8);
}

TEST(fdata_without_branches_gives_samples)
{
	ck_assert_int_eq(run(FDATA, "no_lbr cycles:u: instructions:u:\n"
				    "1 top 0 3\n"
				    "1 top d 4\n"
				    "1 leaf/1 2 5\n"
				    "1 none 0 7\n"
				    "1 top 900 1\n"),
			 0);
	ck_assert_uint_eq(import->ledger.emitted, 20);
	ck_assert_uint_eq(import->ledger.attributed, 12);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_NO_MAPPING], 8);
	ck_assert_uint_eq(import->transfers.seen, 0);
	ck_assert_uint_eq(import->modules[0].counts[2].vaddr, LEAF_A + 2);
	ck_assert_str_eq(import->session.event, "cycles");
}

TEST(fdata_skips_memory_events_and_counts_the_lines)
{
	const struct mp_edge_count want[] = {{0x1002, 0x100b, 1, 0}};

	ck_assert_int_eq(run(FDATA, "boltedcollection\n"
				    "1 top 2 1 top b 0 1\n"
				    "4 top 2 4 table/1 8 12\n"
				    "4 top 2 3 [heap] 0 1\n"),
			 0);
	expect(want, 1);
	ck_assert_uint_eq(import->transfers.nr_skipped, 2);
}

TEST(fdata_that_is_torn_is_refused_with_its_line)
{
	refuse(FDATA, "1 top 2 1 top b 0 1\n1 top 2 1 top b 0\n", "FILE:2: no counts");
	refuse(FDATA, "1 top 2 1 top\n", "FILE:1: not a place");
	refuse(FDATA, "1 top 2\n", "FILE:1: not a place");
	refuse(FDATA, "1 top\n", "FILE:1: not a place");
	refuse(FDATA, "7 top 2 1 top b 0 1\n", "FILE:1: not a place");
	refuse(FDATA, "1 top 2g 1 top b 0 1\n", "FILE:1: not a place");
	refuse(FDATA, "1 top 0x2 1 top b 0 1\n", "FILE:1: not a place");
	refuse(FDATA, "1 top -2 1 top b 0 1\n", "FILE:1: not a place");
	refuse(FDATA, "1 top 2 1 top b 0 1 1\n", "FILE:1: no counts");
	refuse(FDATA, "1 top 2 1 top b 0 99999999999999999999\n", "FILE:1: no counts");
	refuse(FDATA, "1 top 2 1 top b 5 4\n", "FILE:1: more mispredicted");
	refuse(FDATA, "1 top 2 4 top b 0 1\n", "FILE:1: a transfer to data");
	refuse(FDATA, "4 top 2 1 top b 1\n", "FILE:1: not a memory access");
	refuse(FDATA, "4 top 2 4 t 0\n", "FILE:1: not a memory access");
	refuse(FDATA, "no_lbr x\n1 top 2 1 top b 0 1\n", "FILE:2: no count");
	refuse(FDATA, "no_lbr x\n1 top 2\n", "FILE:2: no count");
	refuse(FDATA, "hello\n", "FILE:1: not a place");
	ck_assert_int_eq(run(FDATA, "1 top 2 1 top b 0 9223372036854775807\n"
				    "1 top 2 1 top b 0 1\n"),
			 -EOVERFLOW);
}

TEST(fdata_of_a_file_that_is_none_is_refused_by_name)
{
	struct md_lines lines = {.name = "FILE"};

	ck_assert_int_eq(md_import_fdata(import, &lines, "/nonexistent", &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent"));
	ck_assert_int_eq(md_import_fdata(import, &lines, "/etc/passwd", &err), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(err.msg, "/etc/passwd"));
}

TEST(names_prefer_the_global_one_and_count_any_local_symbol)
{
	struct mp_symbol symbols[] = {
		{.vaddr = 0x10, .name = "x", .type = STT_OBJECT, .bind = STB_LOCAL, .shndx = 1},
		{.vaddr = 0x30, .name = "x", .type = STT_FUNC, .bind = STB_LOCAL, .shndx = 1},
		{.vaddr = 0x20, .name = "x", .type = STT_FUNC, .bind = STB_GLOBAL, .shndx = 1},
		{.vaddr = 0x40, .name = "y", .type = STT_FUNC, .bind = STB_LOCAL, .shndx = 1},
		{.vaddr = 0x50, .name = "y/1", .type = STT_FUNC, .bind = STB_GLOBAL, .shndx = 1},
		{.vaddr = 0x60,
		 .name = "z",
		 .type = STT_FUNC,
		 .bind = STB_GLOBAL,
		 .shndx = SHN_UNDEF},
		{.vaddr = 0x70, .name = "xx", .type = STT_FUNC, .bind = STB_WEAK, .shndx = 1},
	};
	struct mp_elf elf = {.symbols = symbols, .nr_symbols = 7, .has_symtab = true};
	struct md_symbol_index *index = md_symbol_index_new(&elf);
	uint64_t vaddr = 0;

	ck_assert(md_symbol_index_find(index, "x", &vaddr) && vaddr == 0x20);
	ck_assert(md_symbol_index_find(index, "x/1", &vaddr) && vaddr == 0x10);
	ck_assert(md_symbol_index_find(index, "x/2", &vaddr) && vaddr == 0x30);
	ck_assert(!md_symbol_index_find(index, "x/3", &vaddr));
	ck_assert(md_symbol_index_find(index, "y/1", &vaddr) && vaddr == 0x50);
	ck_assert(md_symbol_index_find(index, "xx", &vaddr) && vaddr == 0x70);
	ck_assert(!md_symbol_index_find(index, "z", &vaddr));
	ck_assert(!md_symbol_index_find(index, "", &vaddr));
	ck_assert(!md_symbol_index_find(index, "/", &vaddr));
	ck_assert(!md_symbol_index_find(index, "x/99999999999999999999999", &vaddr));
	ck_assert(!md_symbol_index_find(index, "__BOLT_FDE_FUNCatxyz", &vaddr));
	md_symbol_index_free(index);
}

/* ---- perf ---------------------------------------------------------------------------------- */

TEST(brstack_entries_are_read_in_every_form)
{
	static const char *const forms[] = {" 0x401010/0x401040/M/-/-/0 ",
					    " 0x401010/0x401040/M/-/-/12/COND/-",
					    "f+0x12 (/a/0x1) 0x401010/0x401040/M/-/-/0",
					    "0x401010(/a b/(c)/d)/0x401040([unknown])/M/X/A/7",
					    "0x401010/0x401040/MN/-/-/0"};
	struct md_brstack_entry e;
	const char *rest;

	for (size_t i = 0; i < 5; i++) {
		ck_assert_ptr_nonnull(md_brstack_next(forms[i], &e));
		ck_assert_uint_eq(e.from, 0x401010);
		ck_assert_uint_eq(e.to, 0x401040);
		ck_assert(e.mispredicted);
	}
	rest = md_brstack_next("0x1/0x2/P/-/-/0  0x3/0x4/-/-/-/0", &e);
	ck_assert(rest && e.from == 1 && e.to == 2 && !e.mispredicted);
	rest = md_brstack_next(rest, &e);
	ck_assert(rest && e.from == 3 && e.to == 4 && !e.mispredicted);
	ck_assert_ptr_null(md_brstack_next(rest, &e));
	ck_assert_ptr_null(md_brstack_next("0x1/0x2", &e));
	ck_assert_ptr_null(md_brstack_next("0x1/0x2/Q/-", &e));
	ck_assert_ptr_null(md_brstack_next("0x1(/a/0x2/P/-/-/0", &e));
	ck_assert_ptr_null(md_brstack_next("0x", &e));
}

#define MAPPED                                                                                     \
	"prog 7/7 1.0: PERF_RECORD_COMM exec: prog:7/7\n"                                          \
	"prog 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x7f0000000000(0x2000) @ 0 00:00 0 0]: r-xp %1$s\n"

TEST(perf_branch_stacks_become_transfers_beside_the_sample)
{
	const struct mp_edge_count want[] = {
		{0x1002, 0x100b, 2, 1}, {0x1004, LEAF_A, 1, 0}, {0x100d, LEAF_B, 1, 0}};

	ck_assert_int_eq(
		run_with_path(PERF,
			      MAPPED "prog 7/7 1.2: cycles:u:  7f0000001000 top+0x0 (%1$s) "
				     " 0x7f0000001002/0x7f000000100b/M/-/-/0 "
				     " 0x7f0000001004/0x7f0000001020/P/-/-/3 "
				     " 0xffffffff81000000/0x7f000000100b/P/-/-/0 "
				     " 0x7f000000100d/0xffffffff81000000/P/-/-/0 "
				     " 0x7f000000100d/0x12345/P/-/-/0 "
				     " 0x7f0000001002/0x7f0000001000/-/-/-/0\n"
				     "prog 7/7 1.3: cycles:u:  7f0000001000 top+0x0 (%1$s) "
				     " 0x7f0000001002(%1$s)/0x7f000000100b(%1$s)/P/-/-/0/COND/- "
				     " 0x7f000000100d(%1$s)/0x7f0000001030(%1$s)/P/-/-/0/IND/-\n"),
		0);
	expect(want, 3);
	ck_assert_uint_eq(import->ledger.attributed, 2);
	ck_assert_uint_eq(import->transfers.outside, 3);
	ck_assert_uint_eq(import->transfers.unfit, 1);
}

TEST(perf_branch_stacks_alone_are_no_samples)
{
	const struct mp_edge_count want[] = {{0x1002, 0x100b, 1, 0}};

	ck_assert_int_eq(run_with_path(PERF, MAPPED "prog 7/7 1.2: cycles:u:  "
						    " 0x7f0000001002/0x7f000000100b/P/-/-/0\n"
						    "prog 7/7 1.3: cycles:u: \n"),
			 0);
	expect(want, 1);
	ck_assert_uint_eq(import->ledger.emitted, 0);
	refuse(PERF, "prog 7/7 1.2: cycles:u:  0x1/0x2/P/-/-/0\n", "has no records of mappings");
	refuse(PERF, "prog 7/7 1.2: cycles:u:  \n", "FILE:1: no ip");
}

/* ---- callgrind ----------------------------------------------------------------------------- */

#define HEADER "positions: instr line\nevents: Ir\nob=(1) %1$s\nfn=(1) top\n"

TEST(callgrind_jumps_and_calls_become_transfers)
{
	const struct mp_edge_count want[] = {{0x1002, 0x100b, 4, 0},
					     {0x1004, LEAF_A, 3, 0},
					     {0x1009, 0x100d, 3, 0},
					     {0x100d, LEAF_B, 2, 0},
					     {ODD, STUB, 1, 0}};

	ck_assert_int_eq(run_with_path(CALLGRIND, HEADER "0x1000 1 7\n"
							 "+2 * 7\n"
							 "jcnd=4/7 +9 +1\n" /* relative to 0x1002 */
							 "* *\n"
							 "+2 +1 3\n"
							 "cfn=(2) leaf\n"
							 "calls=3 0x1020 5\n"
							 "* * 30\n"
							 "jump=3 +9 *\n"
							 "+5 *\n"
							 "jump=2 0x1030 9\n"
							 "+4 *\n"
							 "0x1020 5 6\n"
							 "jcnd=5/6 * *\n" /* a repeat prefix */
							 "* *\n"
							 "cob=(2) /bin/true\n"
							 "calls=2 0x1030 9\n"
							 "0x100d * 20\n"
							 /* through a stub, in the same file */
							 "calls=1 0x1030 9\n"
							 "0x1040 * 20\n"
							 /* to an unknown file */
							 "jfn=(9) other\n"
							 "jump=7 0x1030 9\n"
							 "0x100d *\n"
							 "totals: 23\n"),
			 0);
	ck_assert_uint_eq(import->nr_modules, 2);
	import->nr_modules = 1;
	expect(want, 5);
	import->nr_modules = 2;
	ck_assert_uint_eq(import->transfers.outside, 9);
	ck_assert_uint_eq(import->transfers.fell, 5);
	ck_assert_uint_eq(import->ledger.attributed, 23);
}

TEST(callgrind_calls_without_jumps_are_not_taken)
{
	ck_assert_int_eq(run_with_path(CALLGRIND, HEADER "0x1004 1 3\n"
							 "calls=3 0x1020 5\n"
							 "* * 30\n"
							 "totals: 3\n"),
			 0);
	expect(NULL, 0);
	ck_assert_uint_eq(import->transfers.seen, 0);
	ck_assert_uint_eq(import->ledger.attributed, 3);
}

TEST(callgrind_jumps_that_are_torn_are_refused_with_their_line)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"jump=\n", "FILE:3: not a number"},
		{"jump=3\n", "FILE:3: not a position"},
		{"jcnd=3 +1 *\n", "FILE:3: not 'jcnd="},
		{"jcnd=3/ +1 *\n", "FILE:3: not 'jcnd="},
		{"jcnd=3/2 +1 *\n", "FILE:3: not 'jcnd="},
		{"jump=3 +1 *\nfn=x\n", "FILE:4: 'jump=' without"},
		{"calls=3 +1 *\nfn=x\n", "FILE:4: 'calls=' without"},
		{"jump=3 -1 *\n* *\n", "FILE:3: a position beyond"},
		{"jump=3 +1 *\n* *\n", "FILE:4: a transfer before any 'ob='"},
		{"calls=99999999999999999999 +1 *\n", "FILE:3: not a number"},
	};
	char text[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "positions: instr line\nevents: Ir\n%s", bad[i].text);
		refuse(CALLGRIND, text, bad[i].message);
	}
	refuse(CALLGRIND, "jump=3 +1 *\n", "FILE:1: a transfer before 'positions:'");
}
