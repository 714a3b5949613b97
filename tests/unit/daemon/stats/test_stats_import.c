// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats_import - callgrind files and perf script text: what is counted, and errors with
 * their lines. The imported module is this test program.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "daemon/import/import.h"
#include "tests/unit/suite.h"

static char self[4096];
static struct mp_elf *elf;
static uint64_t text, text_off, text_size; /* of the executable segment */
static struct md_import *import;

static void setup(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	ck_assert_int_eq(mp_elf_open(self, MP_ELF_ID, &elf, &err), 0);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		if (elf->phdrs[i].p_type != PT_LOAD || !(elf->phdrs[i].p_flags & PF_X))
			continue;
		text = elf->phdrs[i].p_vaddr;
		text_off = elf->phdrs[i].p_offset;
		text_size = elf->phdrs[i].p_filesz;
	}
	ck_assert_uint_gt(text_size, 0x1000);
	import = md_import_new();
	err.msg[0] = '\0';
}

static void teardown(void)
{
	md_import_free(import);
	mp_elf_close(elf);
}

static int run(char *content, bool perf, const char *event)
{
	struct md_lines lines = {.name = "FILE"};
	int r;

	lines.file = fmemopen(content, strlen(content), "r");
	ck_assert_ptr_nonnull(lines.file);
	r = perf ? md_import_perf(import, &lines, event, &err)
		 : md_import_callgrind(import, &lines, &err);
	fclose(lines.file);
	free(lines.line);
	return r;
}

/* Return: samples at text + @off of this program. */
static uint64_t count_at(uint64_t off)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < import->nr_modules; i++)
		for (size_t k = 0; k < import->modules[i].nr; k++)
			if (mp_id_equal(&import->modules[i].id, &elf->id) &&
			    import->modules[i].counts[k].vaddr == text + off)
				count += import->modules[i].counts[k].count;
	return count;
}

static void check_balance(void)
{
	const struct mp_ledger *l = &import->ledger;
	uint64_t sum = l->attributed;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		sum += l->unattributed[i];
	for (int i = 0; i < MP_NR_LOST; i++)
		sum += l->lost[i];
	ck_assert_uint_eq(sum, l->emitted);
}

/* ---- callgrind ----------------------------------------------------------------------------- */

static char buf[16384];

#define callgrind(...) (snprintf(buf, sizeof(buf), __VA_ARGS__), run(buf, false, NULL))

FIXTURE(setup, teardown);

TEST(callgrind_counts_each_address)
{
	int r = callgrind("# callgrind format\nversion: 1\npositions: instr line\n"
			  "events: Ir Dr\nob=(1) %s\nfl=(1) x.c\nfn=(1) main\n"
			  "0x%" PRIx64 " 10 7 3\n+4 +1 5\n* -3 2\n-4 * 1\n\ntotals: 15\n",
			  self, text);

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(count_at(0), 8);
	ck_assert_uint_eq(count_at(4), 7);
	ck_assert_uint_eq(import->ledger.emitted, 15);
	check_balance();
}

TEST(callgrind_leaves_out_the_costs_of_callees)
{
	int r = callgrind("positions: instr\nevents: Ir\nob=(2) %s\nfn=(1) f\n0x%" PRIx64 " 1\n"
			  "cob=(3) /no/such/lib.so\ncfn=(2) g\ncalls=3 0x999\n+2 1000\n+2 4\n"
			  "jump=5 0x%" PRIx64 "\n+3\njcnd=4/5 +7\n+1\nob=(3)\nfn=(2)\n0x999 6\n"
			  "ob=(2)\n0x%" PRIx64 " 1\ntotals: 12\n",
			  self, text, text, text + 1);

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(count_at(0), 1);
	ck_assert_uint_eq(count_at(1), 1);
	ck_assert_uint_eq(count_at(2), 0);
	ck_assert_uint_eq(count_at(4), 4);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_DELETED], 6);
	check_balance();
}

TEST(callgrind_unknown_objects_and_addresses_without_code_are_said)
{
	int r = callgrind("positions: instr\nevents: Ir\nob=???\n0x1000 5\nob=%s\n0x1 6\n"
			  "0x%" PRIx64 " 1\ntotals: 12\n",
			  self, text);

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_ANONYMOUS], 5);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_NO_MAPPING], 6);
	ck_assert_uint_eq(import->ledger.attributed, 1);
	check_balance();
}

TEST(callgrind_refuses_with_the_line)
{
	static const struct {
		const char *content, *message;
	} bad[] = {
		{"positions: line\nevents: Ir\n", "FILE:1: no instruction addresses"},
		{"positions: instr\nevents: Dr\n", "FILE:2: no event Ir"},
		{"0x10 1\n", "FILE:1: costs before 'positions:'"},
		{"positions: instr\nevents: Ir\n0x10 1\ntotals: 1\n",
		 "FILE:3: costs before any 'ob='"},
		{"positions: instr\nevents: Ir\nob=x\n\n0xzz 1\n", "FILE:5: not a position"},
		{"positions: instr\nevents: Ir\nob=x\n10 1z\n", "FILE:4: not a cost"},
		{"positions: instr\nevents: Ir\nob=x\n10 1 2\n", "FILE:4: not a cost"},
		{"positions: instr\nevents: Ir\nob=x\n-1 1\n", "FILE:4: a position beyond"},
		{"positions: instr\nevents: Ir\nob=x\n99999999999999999999 1\n",
		 "FILE:4: not a pos"},
		{"positions: instr\nevents: Ir\nob=(7)\n", "FILE:3: object (7) was never named"},
		{"positions: instr\nevents: Ir\nob=(99999999999) x\n", "FILE:3: not a compressed"},
		{"positions: instr\nevents: Ir\nob=(7 x\n", "FILE:3: not a compressed name"},
		{"positions: instr\nevents: Ir\nhello\n", "FILE:3: not a line of a callgrind"},
		{"events: Ir\npositions: instr\nob=x\ncalls=1 2\nfn=x\n",
		 "FILE:5: 'calls=' without"},
		{"positions: instr\nevents: Ir\nob=x\n10 1\n", "FILE: cut short: no 'totals:'"},
		{"positions: instr\nevents: Ir\nob=x\n10 1\ntotals: 2\n",
		 "FILE: the costs add up to 1"},
		{"positions: instr\nevents: Ir\nob=x\n10 18446744073709551615\n11 1\n", "2^63"},
		{"", "cut short"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_FREE char *copy = strdup(*bad[i].content ? bad[i].content : "\n");

		md_import_free(import);
		import = md_import_new();
		ck_assert_msg(run(copy, false, NULL) < 0, "%s", bad[i].content);
		ck_assert_msg(strstr(err.msg, bad[i].message) != NULL, "'%s' is not '%s'", err.msg,
			      bad[i].message);
	}
}

/* ---- perf ---------------------------------------------------------------------------------- */

#define perf(...) (snprintf(buf, sizeof(buf), __VA_ARGS__), run(buf, true, NULL))
#define BASE	  UINT64_C(0x7f0000000000)

/* Return: an mmap line of this program's text at @base for process @pid. */
static const char *mmap_of(int pid, uint64_t base)
{
	static char lines[4][5000];
	static int next;
	char *line = lines[next++ % 4];
	uint64_t off = text_off & ~UINT64_C(0xfff);
	struct stat st;

	ck_assert_int_eq(stat(self, &st), 0);
	snprintf(line, sizeof(lines[0]),
		 "prog  %d/%d  1.000000: PERF_RECORD_MMAP2 %d/%d: [0x%" PRIx64 "(0x%" PRIx64
		 ") @ 0x%" PRIx64 " fe:00 %" PRIu64 " 1]: r-xp %s\n",
		 pid, pid, pid, pid, base, text_size + (text_off - off), off, (uint64_t)st.st_ino,
		 self);
	return line;
}

/* Return: run-time address of text + @off in a mapping at @base. */
static uint64_t ip_of(uint64_t base, uint64_t off)
{
	return base + (text_off & 0xfff) + off;
}

TEST(perf_finds_the_mapping_of_each_process)
{
	int r = perf("%s%s"
		     "   prog   7/7     1.5: cpu-clock:   %" PRIx64 " main (/x)\n"
		     "   prog   8/9     1.6: cpu-clock:   %" PRIx64 " main (/x)\n"
		     "a b 1   8/8 [001]     1.7:  25000 cpu-clock:ppp:   %" PRIx64 " f+0x3 (/x)\n"
		     "   prog   8/8     1.8: cpu-clock:   %" PRIx64 " [unknown] ([unknown])\n"
		     "   prog   99/99     1.8: cpu-clock:   %" PRIx64 " main (/x)\n",
		     mmap_of(7, BASE), mmap_of(8, BASE + 0x100000000), ip_of(BASE, 16),
		     ip_of(BASE + 0x100000000, 16), ip_of(BASE + 0x100000000, 17), BASE - 1,
		     ip_of(BASE, 1));

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(count_at(16), 2);
	ck_assert_uint_eq(count_at(17), 1);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_NO_MAPPING], 1);
	ck_assert_uint_eq(import->ledger.unattributed[MP_UNATTR_NO_PROCESS], 1);
	ck_assert_str_eq(import->session.event, "cpu-clock");
	check_balance();
}

TEST(perf_follows_fork_and_exec)
{
	int r = perf("%s"
		     "prog 7/7 1.1: PERF_RECORD_FORK(8:8):(7:7)\n"
		     "prog 8/8 1.2: cpu-clock: %" PRIx64 " f (/x)\n"
		     "prog 8/8 1.3: PERF_RECORD_COMM exec: other:8/8\n"
		     "prog 8/8 1.4: cpu-clock: %" PRIx64 " f (/x)\n"
		     "prog 7/7 1.5: cpu-clock: %" PRIx64 " f (/x)\n"
		     "prog 7/7 1.6: PERF_RECORD_FORK(7:70):(7:7)\n"
		     "prog 70 1.7: 1 cpu-clock: %" PRIx64 " f (/x)\n"
		     "prog 7/7 1.8: PERF_RECORD_LOST lost 12\n"
		     "prog 7/7 1.9: PERF_RECORD_EXIT(7:7):(1:1)\n",
		     mmap_of(7, BASE), ip_of(BASE, 5), ip_of(BASE, 6), ip_of(BASE, 7),
		     ip_of(BASE, 8));

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(count_at(5), 1);
	ck_assert_uint_eq(count_at(6), 0);
	ck_assert_uint_eq(count_at(7), 1);
	ck_assert_uint_eq(count_at(8), 1); /* thread 70 belongs to process 7 */
	ck_assert_uint_eq(import->ledger.lost[MP_LOST_RING_FULL], 12);
	check_balance();
}

TEST(perf_says_why_a_sample_has_no_module)
{
	int r = perf(
		"%s"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0 00:00 0 0]: r-xp //anon\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x2000(0x1000) @ 0 00:00 0 0]: r-xp [vdso]\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x3000(0x1000) @ 0 fe:00 5 0]: r-xp /no/such\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x4000(0x1000) @ 0 fe:00 5 0]: r-xp %s\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x5000(0x1000) @ 0 <00112233>]: r-xp %s\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x6000(0x1000) @ 0 fe:00 5 0]: r-xp "
		"/proc/self/status\n"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x7000(0x1000) @ 0 fe:00 5 0]: rw-p /x\n"
		"p 7/7 1.1: PERF_RECORD_MMAP 7/7: [0x8000(0x1000) @ 0]: r /x\n"
		"p 7/7 2.1: e: 1001 f (/x)\np 7/7 2.1: e: 2001 f (/x)\n"
		"p 7/7 2.1: e: 3001 f (/x)\np 7/7 2.1: e: 4001 f (/x)\n"
		"p 7/7 2.1: e: 5001 f (/x)\np 7/7 2.1: e: 6001 f (/x)\n"
		"p 7/7 2.1: e: 7001 f (/x)\np 7/7 2.1: e: ffffffff9f000000 f (/x)\n",
		mmap_of(7, BASE), self, self);
	const uint64_t *u = import->ledger.unattributed;

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(u[MP_UNATTR_ANONYMOUS], 1);
	ck_assert_uint_eq(u[MP_UNATTR_VDSO], 1);
	ck_assert_uint_eq(u[MP_UNATTR_DELETED], 1);
	ck_assert_uint_eq(u[MP_UNATTR_REPLACED], 2);
	ck_assert_uint_eq(u[MP_UNATTR_UNREADABLE], 1);
	ck_assert_uint_eq(u[MP_UNATTR_NO_MAPPING], 2); /* data, and an unknown kernel */
	check_balance();
}

TEST(perf_counts_activity_per_program)
{
	/* The first file after an exec is the program; other mapped files are libraries. */
	int r = perf(
		"p 7/7 1.0: PERF_RECORD_COMM exec: p:7/7\n%s"
		"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0 00:00 0 0]: r-xp //anon\n"
		"x -1/0 0.0: PERF_RECORD_MMAP2 -1/0: [0xffffffff9f000000(0x1000) @ "
		"0xffffffff81000000 <0011223344>]: ---p [kernel.kallsyms]_text\n"
		"p 7/7 2.1: e: %" PRIx64 " f (/x)\np 7/7 2.2: e: %" PRIx64 " f (/x)\n"
		"p 7/7 2.1: e: 1001 f (/x)\np 7/7 2.1: e: ffffffff9f000010 f (/x)\n",
		mmap_of(7, BASE), ip_of(BASE, 1), ip_of(BASE, 2));
	const struct md_import_module *program = &import->modules[0], *kernel;

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(program->activity.app, 2);
	ck_assert_uint_eq(program->activity.lib, 0);
	ck_assert_uint_eq(program->activity.other, 1);
	ck_assert_uint_eq(program->activity.kernel, 1);
	/* The kernel with that build-id, at its link-time address. */
	kernel = &import->modules[import->nr_modules - 1];
	ck_assert_int_eq(kernel->kind, MP_MODULE_KERNEL);
	ck_assert_uint_eq(kernel->id.build_id_len, 5);
	ck_assert_uint_eq(kernel->counts[0].vaddr, 0xffffffff81000010);
	check_balance();
}

TEST(perf_takes_one_event_only)
{
	const char *format = "%sp 7/7 1.1: cycles:u: %" PRIx64 " f (/x)\n"
			     "p 7/7 1.2: cache-misses: %" PRIx64 " f (/x)\n";

	ck_assert_int_lt(perf(format, mmap_of(7, BASE), ip_of(BASE, 1), ip_of(BASE, 2)), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "FILE:3: a second event"));
	md_import_free(import);
	import = md_import_new();
	snprintf(buf, sizeof(buf), format, mmap_of(7, BASE), ip_of(BASE, 1), ip_of(BASE, 2));
	ck_assert_int_eq(run(buf, true, "cache-misses"), 0);
	ck_assert_uint_eq(count_at(1), 0);
	ck_assert_uint_eq(count_at(2), 1);
	ck_assert_str_eq(import->session.event, "cache-misses");
}

TEST(perf_refuses_with_the_line)
{
	static const struct {
		const char *content, *message;
	} bad[] = {
		{"hello\n", "FILE:1: neither a sample nor a record"},
		{"\np 7/7 1.1: cpu-clock:\n\t 1234 f (/x)\n", "FILE:2: no ip after the event"},
		{"p 7/7 1.1: cpu-clock: zz\n", "FILE:1: no ip after the event"},
		{"p 7/7 1.1: 1234 f (/x)\n", "FILE:1: no event"},
		{"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0x1(\n", "FILE:1: not a mapping"},
		{"p 7/7 1.1: PERF_RECORD_MMAP2 7/7: [0xfffffffffffff000(0x2000) @ 0 fe:00 1 1]: "
		 "r-xp /x\n",
		 "FILE:1: not a mapping"},
		{"p 7/7 1.1: PERF_RECORD_FORK x\n", "FILE:1: not a fork"},
		{"p 7/7 1.1: cpu-clock: 1234 f (/x)\n", "FILE: has no records of mappings"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_FREE char *copy = strdup(bad[i].content);

		md_import_free(import);
		import = md_import_new();
		ck_assert_msg(run(copy, true, NULL) < 0, "%s", bad[i].content);
		ck_assert_msg(strstr(err.msg, bad[i].message) != NULL, "'%s' is not '%s'", err.msg,
			      bad[i].message);
	}
}

/* ---- store --------------------------------------------------------------------------------- */

/* Return: true if the store considers the counts of this program exact. */
static bool stored_exact(void)
{
	char dir[] = "/tmp/morph-import-XXXXXX", db[64], cmd[64];
	struct mp_store *store;
	struct mp_module module;
	bool exact = false;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(db, sizeof(db), "%s/db", dir);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	import->session.start_s = import->session.last_s = 1700000000;
	ck_assert_msg(md_import_store(import, store, 1700000000, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(mp_store_find_module(store, &elf->id, &module, &err), 0);
	ck_assert_int_eq(mp_store_is_exact(store, module.key, 0, &exact, &err), 0);
	free(module.path);
	mp_store_close(store);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	ck_assert_int_eq(system(cmd), 0);
	return exact;
}

TEST(callgrind_counts_are_exact_where_callgrind_counted)
{
	const struct {
		const char *creator;
		bool exact;
	} cases[] = {{"creator: callgrind-3.19.0\n", true},
		     {"creator: morph-stats\n", false},
		     {"creator: callgrindish\n", false},
		     {"", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = callgrind("version: 1\n%spositions: instr\nevents: Ir\nob=%s\n0x%" PRIx64
				  " 10\n+4 5\ntotals: 15\n",
				  cases[i].creator, self, text);

		ck_assert_msg(r == 0, "%s", err.msg);
		ck_assert_msg(stored_exact() == cases[i].exact, "'%s'", cases[i].creator);
		md_import_free(import);
		import = md_import_new();
	}
}

TEST(import_is_stored_whole_and_balances)
{
	char dir[] = "/tmp/morph-import-XXXXXX", db[64], cmd[64];
	struct mp_store *store;
	struct mp_module module;
	int r = callgrind("positions: instr\nevents: Ir\nob=%s\n0x%" PRIx64 " 10\n+4 5\n"
			  "ob=???\n0x1 2\ntotals: 17\n",
			  self, text);

	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(db, sizeof(db), "%s/db", dir);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	import->session.start_s = import->session.last_s = 1700000000;
	ck_assert_msg(md_import_store(import, store, 1700000000, &err) == 0, "%s", err.msg);
	ck_assert_msg(mp_store_check(store, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(mp_store_find_module(store, &elf->id, &module, &err), 0);
	ck_assert_uint_eq(module.nr_samples, 15);
	ck_assert_uint_eq(module.text_size, mp_elf_text_size(elf));
	free(module.path);
	mp_store_close(store);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	ck_assert_int_eq(system(cmd), 0);
}
