// SPDX-License-Identifier: Apache-2.0
/*
 * test_meter - versions with a meter count at their places exactly what a version that counts all edges counts there,
 * wherever their code lies, and behave the same. Places at which no counter can stand are named.
 */
#include "editor/instrument/meter.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "editor/optimize/optimize.h"
#include "libprof/note/counts_file.h"
#include "tests/unit/places.h"
#include "tests/unit/scratch.h"

FIXTURE(scratch_make, scratch_remove);

/* No line of @text depends on the time, or on how threads follow one another. */
static const struct source {
	const char *name, *compiler, *text;
	bool library;
} sources[] = {
	{"loops.c", "gcc -O2",
	 "#include <stdio.h>\n"
	 "#include <stdlib.h>\n"
	 "__attribute__((noinline)) static unsigned pick(unsigned x)\n"
	 "{ switch (x & 7) { case 0: return x * 3; case 1: return x - 7; case 2: return x / 5;\n"
	 "  case 3: return x ^ 0x55; case 4: return x % 9; default: return ~x; } }\n"
	 "__attribute__((noinline)) static unsigned fib(unsigned n)\n"
	 "{ return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
	 "__attribute__((noinline)) static unsigned turns(unsigned x)\n"
	 "{ unsigned n = 0; while (x != 1 && n < 100) { x = x & 1 ? 3 * x + 1 : x / 2; n++; } return n; }\n"
	 "static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }\n"
	 "int main(void)\n"
	 "{ unsigned sum = 0; static int v[500];\n"
	 "  for (int i = 1; i < 3000; i++) { sum += pick(i) + turns(i); if (i % 5 == 0) sum ^= fib(i % 13);\n"
	 "    v[i % 500] = (int)(sum >> 4); }\n"
	 "  qsort(v, 500, sizeof(*v), compare);\n"
	 "  printf(\"%u %d %d\\n\", sum, v[0], v[499]); return 3; }\n",
	 false},
	{"throws.cc", "g++ -O2",
	 "#include <cstdio>\n"
	 "#include <stdexcept>\n"
	 "struct guard { int *n; ~guard() { ++*n; } };\n"
	 "__attribute__((noinline)) static int thrower(int n)\n"
	 "{ if (n % 3 == 0) throw n; if (n % 7 == 0) throw std::runtime_error(\"seven\"); return n / 2; }\n"
	 "__attribute__((noinline)) static int middle(int n, int *count)\n"
	 "{ guard g = {count}; int x = thrower(n); return x > 10 ? x - thrower(n + 1) : x; }\n"
	 "__attribute__((noinline)) static int catcher(int n)\n"
	 "{ int count = 0; try { count += middle(n, &count); } catch (int i) { count += i; }\n"
	 "  catch (const std::exception &e) { count += e.what()[0]; } return count; }\n"
	 "int main() { long sum = 0; for (int i = 0; i < 2000; i++) sum += catcher(i);\n"
	 "  std::printf(\"%ld\\n\", sum); return 0; }\n",
	 false},
	{"threads.c", "gcc -O2 -pthread",
	 "#include <pthread.h>\n"
	 "#include <stdio.h>\n"
	 "__attribute__((noinline)) static unsigned step(unsigned x)\n"
	 "{ return x % 3 == 0 ? x / 3 : x & 1 ? 3 * x + 1 : x / 2; }\n"
	 "static void *work(void *arg)\n"
	 "{ unsigned *x = arg, y = *x; for (unsigned i = 0; i < 20000; i++) y += step(y + i);\n"
	 "  *x = y; return NULL; }\n"
	 "int main(void)\n"
	 "{ pthread_t t[8]; unsigned x[8], sum = 0;\n"
	 "  for (unsigned i = 0; i < 8; i++) { x[i] = i; pthread_create(&t[i], NULL, work, &x[i]); }\n"
	 "  for (int i = 0; i < 8; i++) { pthread_join(t[i], NULL); sum ^= x[i]; }\n"
	 "  printf(\"%u\\n\", sum); return 0; }\n",
	 false},
	{"library.c", "gcc -O2 -shared -fPIC -Wl,-soname,libused.so",
	 "#include <stdlib.h>\n"
	 "__attribute__((noinline)) static unsigned inner(unsigned x)\n"
	 "{ return x % 5 == 0 ? x / 5 : x & 4 ? x + 9 : x ^ 3; }\n"
	 "unsigned used(unsigned n)\n"
	 "{ unsigned x = n, *m = malloc(400); for (unsigned i = 0; i < 100; i++) m[i] = x += inner(x + i);\n"
	 "  x = m[n % 100]; free(m); return x; }\n"
	 "unsigned also(unsigned n) { return n > 50 ? used(n) : inner(n); }\n",
	 true},
};

static const char user[] = "unsigned used(unsigned), also(unsigned);\n"
			   "int printf(const char *, ...);\n"
			   "int main(void) { unsigned x = 0; for (unsigned i = 0; i < 100; i++)\n"
			   "  x += used(i) ^ also(i); printf(\"%u\\n\", x); return 0; }\n";

/* Return: the exit status of the shell's command. */
static int shell(const char *format, ...)
{
	char command[2048];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	status = system(command);
	ck_assert_msg(WIFEXITED(status), "%s", command);
	return WEXITSTATUS(status);
}

static char *in_dir(const char *name)
{
	char *path;

	ck_assert_int_gt(asprintf(&path, "%s/%s", dir, name), 0);
	return path;
}

static void build(const struct source *s)
{
	char *source = in_dir(s->name), *other = in_dir("user.c");

	write_text(source, s->text);
	ck_assert_int_eq(shell("%s -Wl,--build-id -o %s/original %s", s->compiler, dir, source), 0);
	write_text(other, user);
	if (s->library)
		ck_assert_int_eq(shell("mkdir -p %s/lib && cp %s/original %s/lib/libused.so &&"
				       "gcc -O1 -o %s/user %s %s/lib/libused.so",
				       dir, dir, dir, dir, other, dir),
				 0);
	free(source);
	free(other);
}

/* Runs the version @name. Its standard output is in the file @name.txt. Return: its exit status. */
static int run(const struct source *s, const char *name)
{
	if (!s->library)
		return shell("cd %s && ./%s >%s.txt", dir, name, name);
	return shell("cd %s && cp %s lib/libused.so && LD_LIBRARY_PATH=lib ./user >%s.txt", dir,
		     name, name);
}

/*
 * Makes, runs and compares the version @name; its counts are in the file @name.counts. Return: calls that go through
 * slots.
 */
static uint64_t make(const struct source *s, const char *name, struct me_counting counting,
		     bool original, uint64_t seed)
{
	char *in = in_dir("original"), *out = in_dir(name), *counts;
	struct me_optimize_options o = {.input = in, .output = out, .all = true};
	struct me_optimize_report report;
	struct mp_err err = {""};
	uint64_t nr_via_slot;
	int rc;

	ck_assert_int_gt(asprintf(&counts, "%s.counts", out), 0);
	o.counting = counting;
	o.counting.path = counts;
	o.layout.original = original;
	o.layout.slots = o.layout.inline_leaves = true;
	o.stress = seed != 0;
	o.stress_seed = seed;
	rc = me_optimize(&o, &report, &err);
	ck_assert_msg(!rc, "%s, %s: %s", s->name, name, err.msg);
	ck_assert_int_eq(report.verified.kind, counting.meter ? ME_KIND_METER : ME_KIND_COUNTS);
	nr_via_slot = report.verified.nr_via_slot;
	me_optimize_report_fini(&report);
	ck_assert_int_eq(run(s, name), run(s, "original"));
	ck_assert_msg(!shell("cmp %s/original.txt %s.txt", dir, out), "%s, %s: other output",
		      s->name, name);
	free(in);
	free(out);
	free(counts);
	return nr_via_slot;
}

/* The counters of the version @name. Ownership: free(). */
static uint64_t *read_counts(const char *name, bool meter, uint32_t *nr)
{
	char *path = in_dir(name), *counts;
	struct mp_edge_table *table;
	struct mp_err err = {""};
	uint64_t *counters;
	struct mp_elf *elf;
	int fd;

	ck_assert_int_gt(asprintf(&counts, "%s.counts", path), 0);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), 0);
	ck_assert_int_eq(meter ? mp_edge_table_read(elf, &table, &err)
			       : mp_meter_table_read(elf, &table, &err),
			 -ENOENT);
	ck_assert_int_eq(meter ? mp_meter_table_read(elf, &table, &err)
			       : mp_edge_table_read(elf, &table, &err),
			 0);
	fd = open(counts, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	*nr = table->nr_counters;
	counters = calloc(*nr, sizeof(*counters));
	ck_assert_msg(!mp_counts_file_add(name, fd, table->hash, counters, *nr, &err), "%s",
		      err.msg);
	close(fd);
	mp_edge_table_free(table);
	mp_elf_close(elf);
	free(path);
	free(counts);
	return counters;
}

/* The next counters that counted something, from @start on. Return: how many. */
static uint32_t choose(const uint64_t *counters, uint32_t nr, uint32_t *start, uint32_t *which)
{
	uint32_t found = 0;

	for (; *start < nr && found < MP_METER_PLACES_MAX; ++*start)
		if (counters[*start])
			which[found++] = *start;
	return found;
}

static void compare(const char *name, const uint64_t *want, const uint32_t *which, uint32_t nr)
{
	uint32_t have;
	uint64_t *counters = read_counts(name, true, &have);

	ck_assert_uint_eq(have, nr);
	for (uint32_t i = 0; i < nr; i++)
		ck_assert_msg(counters[i] == want[which[i]], "%s: counter %u: %lu, not %lu", name,
			      i, (unsigned long)counters[i], (unsigned long)want[which[i]]);
	free(counters);
}

TEST_EACH(meter_counts_what_all_counters_count, 4)
{
	const struct source *s = &sources[_i];
	char *places = in_dir("places"), *counting = in_dir("counting");
	uint32_t nr, start = 0, which[MP_METER_PLACES_MAX], nr_metered = 0, now;
	struct me_counting meter = {.meter = places};
	uint64_t *want;

	build(s);
	run(s, "original");
	make(s, "counting", (struct me_counting){.edges = true, .how = ME_COUNT_ATOMIC}, false, 0);
	want = read_counts("counting", false, &nr);
	while ((now = choose(want, nr, &start, which))) {
		places_write(counting, which, now, places);
		ck_assert_uint_eq(make(s, "fixed", meter, true, 0), 0);
		compare("fixed", want, which, now);
		ck_assert_uint_gt(make(s, "all", meter, false, 0), 0);
		compare("all", want, which, now);
		for (uint64_t seed = 1; seed <= 3; seed++) {
			make(s, "stress", meter, false, seed);
			compare("stress", want, which, now);
			ck_assert_int_eq(shell("rm %s/stress.counts", dir), 0);
		}
		nr_metered += now;
		ck_assert_int_eq(shell("rm %s/fixed.counts %s/all.counts", dir, dir), 0);
	}
	ck_assert_uint_gt(nr_metered, 5);
	free(want);
	free(places);
	free(counting);
}

/* What the list of places says, and what becomes of it. */
static void refused(const char *text, int code, const char *word)
{
	char *in = in_dir("original"), *places = in_dir("places"), *out = in_dir("out");
	struct me_optimize_options o = {.input = in,
					.output = out,
					.all = true,
					.counting.meter = places,
					.counting.path = "/nowhere/counts"};
	struct me_optimize_report report;
	struct mp_err err = {""};

	write_text(places, text);
	ck_assert_int_eq(me_optimize(&o, &report, &err), code);
	ck_assert_msg(strstr(err.msg, word), "'%s' lacks '%s'", err.msg, word);
	ck_assert_int_ne(access(out, F_OK), 0);
	me_optimize_report_fini(&report);
	free(in);
	free(places);
	free(out);
}

/* The block at the second branch reads flags that the first block sets. */
static const char flags[] =
	"__attribute__((noinline)) int f(int x)\n"
	"{ int r = 5; __asm__ volatile(\"cmpl $3, %1\\n jg 1f\\nhere: je 1f\\n incl %0\\n1:\"\n"
	"  : \"+r\"(r) : \"r\"(x) : \"cc\"); return r; }\n"
	"int main(int argc, char **argv) { (void)argv; return f(argc) & 1; }\n";

TEST(meter_names_places_that_it_cannot_count)
{
	struct mp_err err;
	struct mp_elf *elf;
	char *in = in_dir("original"), *source = in_dir("flags.c"), line[64];
	uint64_t f = 0, here = 0;

	write_text(source, flags);
	ck_assert_int_eq(shell("gcc -O2 -Wl,--build-id -o %s %s", in, source), 0);
	ck_assert_int_eq(mp_elf_open(in, MP_ELF_ALL, &elf, &err), 0);
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, "f"))
			f = elf->symbols[i].vaddr;
		else if (!strcmp(elf->symbols[i].name, "here"))
			here = elf->symbols[i].vaddr;
	mp_elf_close(elf);
	ck_assert_uint_ne(f, 0);
	refused("", -EINVAL, "names no place");
	refused("0x10\nhello\n", -EINVAL, "places:2: 'hello' is no place");
	refused("0x10<\n", -EINVAL, "is no place");
	refused("0x1 \n", -EINVAL, "is no place");
	refused("0x10<outside\n0x20\n0x10<outside\n", -EINVAL,
		"places:3: 0x10<outside is named twice");
	refused("0x1\n0x2\n0x3\n0x4\n0x5\n0x6\n0x7\n0x8\n0x9\n", -EINVAL, "more than 8 places");
	refused("0x10\n", -EPERM, "no counter can stand at 0x10: it lies in no function");
	snprintf(line, sizeof(line), "0x%lx<0x10\n", (unsigned long)f);
	refused(line, -EPERM, "no block begins there, or no control goes this way");
	snprintf(line, sizeof(line), "0x%lx\n", (unsigned long)f + 1);
	refused(line, -EPERM, "no block begins there");
	snprintf(line, sizeof(line), "0x%lx<0x%lx\n", (unsigned long)here, (unsigned long)f);
	refused(line, -EPERM, "code behind it reads flags");
	snprintf(line, sizeof(line), "0x%lx\n", (unsigned long)here);
	refused(line, -EPERM, "code behind it reads flags");
	unlink(in);
	refused("0x10\n", -ENOENT, "No such file");
	free(in);
	free(source);
}
