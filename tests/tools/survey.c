// SPDX-License-Identifier: Apache-2.0
/*
 * survey - prints how much of many ELF files libprof understands: functions, bytes, indirect
 * jumps, and the reasons for the rest. For developers; scripts/check/survey names the files.
 */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libprof/cfg/cfg.h"

struct result {
	uint64_t files, refused, crashed;
	uint64_t funcs, understood, bytes, bytes_understood;
	uint64_t blocks, edges, tables, private_tables, exact_tables;
	uint64_t jumps[3];
	uint64_t problem[MP_NR_PROBLEMS], problem_bytes[MP_NR_PROBLEMS];
	uint64_t text;
	double seconds, slowest;
	uint64_t peak_kib;
};

struct worst {
	char path[256];
	double share;
	uint64_t bytes;
};

static struct result total;
static struct worst *worst;
static size_t nr_worst, cap_worst;
static char slowest[256];
static bool dump;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void print_problems(const struct mp_cfg *cfg)
{
	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *f = &cfg->funcs[i];

		if (f->problem)
			printf("0x%" PRIx64 "\t%s\t%s at 0x%" PRIx64 "\n", f->vaddr, f->name,
			       mp_problem_name((enum mp_problem)f->problem), f->problem_vaddr);
	}
}

static void count(const struct mp_cfg *cfg, struct result *r)
{
	r->files = 1;
	r->funcs = cfg->nr_funcs;
	r->blocks = cfg->nr_blocks;
	r->edges = cfg->nr_edges;
	r->tables = cfg->nr_tables;
	r->text = mp_elf_text_size(cfg->elf);
	for (int i = 0; i < 3; i++)
		r->jumps[i] = cfg->nr_indirect_jumps[i];
	for (uint32_t i = 0; i < cfg->nr_tables; i++) {
		r->private_tables += cfg->tables[i].private_refs;
		r->exact_tables += cfg->tables[i].exact;
	}
	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *f = &cfg->funcs[i];

		r->bytes += f->size;
		r->problem[f->problem]++;
		r->problem_bytes[f->problem] += f->size;
		if (!f->problem) {
			r->understood++;
			r->bytes_understood += f->size;
		}
	}
}

static void survey_one(const char *path, struct result *r)
{
	struct mp_err err = {""};
	struct mp_elf *elf = NULL;
	struct mp_cfg *cfg = NULL;
	struct rusage usage;
	double start = now();

	if (mp_elf_open(path, MP_ELF_ALL, &elf, &err) || mp_cfg_build(elf, NULL, &cfg, &err)) {
		fprintf(stderr, "survey: %s\n", err.msg);
		r->refused = 1;
	} else {
		r->seconds = now() - start;
		count(cfg, r);
		if (dump)
			print_problems(cfg);
	}
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	getrusage(RUSAGE_SELF, &usage);
	r->peak_kib = (uint64_t)usage.ru_maxrss;
}

static void add(const char *path, const struct result *r)
{
	uint64_t *sum = (uint64_t *)&total;
	const uint64_t *one = (const uint64_t *)r;

	for (size_t i = 0; i < offsetof(struct result, seconds) / sizeof(*sum); i++)
		sum[i] += one[i];
	total.seconds += r->seconds;
	if (r->peak_kib > total.peak_kib)
		total.peak_kib = r->peak_kib;
	if (r->seconds > total.slowest) {
		total.slowest = r->seconds;
		snprintf(slowest, sizeof(slowest), "%s", path);
	}
	if (!r->bytes)
		return;
	if (nr_worst == cap_worst) {
		struct worst *p = realloc(worst, (cap_worst + 256) * sizeof(*p));

		if (!p)
			return;
		worst = p;
		cap_worst += 256;
	}
	worst[nr_worst] = (struct worst){
		.share = (double)r->bytes_understood / (double)r->bytes,
		.bytes = r->bytes,
	};
	snprintf(worst[nr_worst++].path, sizeof(worst->path), "%s", path);
}

/* Return: true for a program or shared object of this machine's type. */
static bool is_elf(const char *path)
{
	Elf64_Ehdr ehdr;
	FILE *file = fopen(path, "rb");
	bool yes = file && fread(&ehdr, sizeof(ehdr), 1, file) == 1 &&
		   !memcmp(ehdr.e_ident, ELFMAG, SELFMAG) && ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
		   ehdr.e_machine == EM_X86_64 && (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN);

	if (file)
		fclose(file);
	return yes;
}

/* Each file gets a process of its own, to measure its peak memory and to survive crashes. */
static void survey_file(const char *path)
{
	struct result r = {0};
	int fds[2], status;
	ssize_t got;
	pid_t pid;

	if (!is_elf(path) || pipe(fds))
		return;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		survey_one(path, &r);
		got = write(fds[1], &r, sizeof(r));
		fflush(stdout);
		_exit(got == (ssize_t)sizeof(r) ? 0 : 1);
	}
	close(fds[1]);
	got = read(fds[0], &r, sizeof(r));
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (got != (ssize_t)sizeof(r) || status) {
		memset(&r, 0, sizeof(r));
		r.crashed = 1;
		fprintf(stderr, "survey: %s: crashed\n", path);
	}
	add(path, &r);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && S_ISREG(st->st_mode) && st->st_size >= 64)
		survey_file(path);
	return 0;
}

static int compare_worst(const void *a, const void *b)
{
	const struct worst *x = a, *y = b;
	double lost_x = (1 - x->share) * (double)x->bytes;
	double lost_y = (1 - y->share) * (double)y->bytes;

	return lost_x > lost_y ? -1 : lost_x < lost_y;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_text(void)
{
	uint64_t jumps = total.jumps[0] + total.jumps[1] + total.jumps[2];

	printf("files          %10" PRIu64 "  refused %" PRIu64 ", crashed %" PRIu64 "\n",
	       total.files, total.refused, total.crashed);
	printf("functions      %10" PRIu64 "  understood %.2f %%, %.2f %% of their bytes\n",
	       total.funcs, percent(total.understood, total.funcs),
	       percent(total.bytes_understood, total.bytes));
	printf("blocks         %10" PRIu64 "  edges %" PRIu64 "\n", total.blocks, total.edges);
	printf("tables         %10" PRIu64 "  exact %.1f %%, private %.1f %%\n", total.tables,
	       percent(total.exact_tables, total.tables),
	       percent(total.private_tables, total.tables));
	printf("indirect jumps %10" PRIu64
	       "  table %.2f %%, tail call %.2f %%, unresolved %.2f %%\n",
	       jumps, percent(total.jumps[0], jumps), percent(total.jumps[1], jumps),
	       percent(total.jumps[2], jumps));
	for (int i = 1; i < MP_NR_PROBLEMS; i++)
		if (total.problem[i])
			printf("  %-36s %9" PRIu64 "  %6.2f %% of functions, %6.2f %% of bytes\n",
			       mp_problem_name((enum mp_problem)i), total.problem[i],
			       percent(total.problem[i], total.funcs),
			       percent(total.problem_bytes[i], total.bytes));
	printf("text           %10.1f MiB in %.2f s (%.2f s: %s), peak %.1f MiB\n",
	       (double)total.text / 1048576, total.seconds, total.slowest, slowest,
	       (double)total.peak_kib / 1024);
	for (size_t i = 0; i < nr_worst && i < 15 && nr_worst > 1; i++)
		printf("  least: %6.2f %% of %9" PRIu64 " bytes  %s\n", worst[i].share * 100,
		       worst[i].bytes, worst[i].path);
}

static void print_json(void)
{
	printf("{\"files\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"crashed\":%" PRIu64
	       ",\"functions\":%" PRIu64 ",\"understood\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"bytes_understood\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"edges\":%" PRIu64
	       ",\"tables\":%" PRIu64 ",\"exact_tables\":%" PRIu64 ",\"private_tables\":%" PRIu64
	       ",\"jumps\":{\"table\":%" PRIu64 ",\"tail\":%" PRIu64 ",\"unresolved\":%" PRIu64
	       "},\"problems\":{",
	       total.files, total.refused, total.crashed, total.funcs, total.understood,
	       total.bytes, total.bytes_understood, total.blocks, total.edges, total.tables,
	       total.exact_tables, total.private_tables, total.jumps[0], total.jumps[1],
	       total.jumps[2]);
	for (int i = 1; i < MP_NR_PROBLEMS; i++)
		printf("%s\"%s\":%" PRIu64, i > 1 ? "," : "", mp_problem_name((enum mp_problem)i),
		       total.problem[i]);
	printf("},\"text\":%" PRIu64 ",\"seconds\":%.3f,\"peak_kib\":%" PRIu64 "}\n", total.text,
	       total.seconds, total.peak_kib);
}

int main(int argc, char **argv)
{
	bool json = false;
	int opt;

	while ((opt = getopt(argc, argv, "jdr")) != -1) {
		if (opt == 'j') {
			json = true;
		} else if (opt == 'd') {
			dump = true;
		} else {
			fprintf(stderr, "usage: survey [-j] [-d] FILE-OR-DIR...\n");
			return 2;
		}
	}
	if (optind == argc) {
		fprintf(stderr, "usage: survey [-j] [-d] FILE-OR-DIR...\n");
		return 2;
	}
	for (int i = optind; i < argc; i++)
		nftw(argv[i], visit, 16, FTW_PHYS);
	if (nr_worst)
		qsort(worst, nr_worst, sizeof(*worst), compare_worst);
	if (json)
		print_json();
	else
		print_text();
	free(worst);
	return total.crashed ? 1 : 0;
}
