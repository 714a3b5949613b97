// SPDX-License-Identifier: Apache-2.0
/*
 * kernel - checks that kernel samples lie in the functions that the program made the kernel run.
 *
 *	kernel FUNCTION OTHER...	a child only calls getrandom(): nearly all of its kernel
 *					samples must lie in functions whose names begin with one
 *					of these, many of them with the first
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

struct symbol {
	uint64_t addr;
	char name[64];
	unsigned int nr; /* number of samples */
};
static struct symbol *symbols;
static size_t nr_symbols;
static uint64_t text, etext;

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_symbols(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[600], name[512], kind;
	unsigned long addr;

	if (!f)
		die("/proc/kallsyms");
	while (fgets(line, sizeof(line), f)) {
		/* Symbols of modules are followed by a name in brackets. */
		if (strchr(line, '[') || sscanf(line, "%lx %c %511s", &addr, &kind, name) != 3 ||
		    !strchr("tTwW", kind))
			continue;
		if (nr_symbols % 4096 == 0)
			symbols = realloc(symbols, (nr_symbols + 4096) * sizeof(*symbols));
		symbols[nr_symbols] = (struct symbol){.addr = addr};
		snprintf(symbols[nr_symbols].name, sizeof(symbols->name), "%.63s", name);
		nr_symbols++;
		if (!strcmp(name, "_text"))
			text = addr;
		if (!strcmp(name, "_etext"))
			etext = addr;
	}
	fclose(f);
	qsort(symbols, nr_symbols, sizeof(*symbols), by_addr);
	if (!text || !etext)
		die("no _text in /proc/kallsyms");
}

static struct symbol *symbol_at(uint64_t addr)
{
	size_t lo = 0, hi = nr_symbols;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;

		if (symbols[mid].addr <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return &symbols[lo];
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static pid_t child(void)
{
	static char buf[1 << 20];
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (getrandom(buf, sizeof(buf), 0) != sizeof(buf))
			_exit(1);
}

/* The child runs until it is killed. */
static void collect(struct reader *r, uint32_t flags, pid_t *pid)
{
	struct morph_start s = {.rate_hz = 2000, .flags = flags};
	pid_t busy = flags & MORPH_START_NO_KERNEL ? spinner(-1) : 0;

	reader_open(r);
	EXPECT(r->hello.has_kernel == 1, "has_kernel %u", r->hello.has_kernel);
	if (ioctl(r->fd, MORPH_IOC_START, &s))
		die("START");
	reader_map(r);
	*pid = child();
	do {
		sleep_ms(20);
		reader_take(r);
	} while (r->nr_samples < 1000);
	reader_stop(r);
	spinner_end(*pid);
	if (busy)
		spinner_end(busy);
	reader_take(r);
}

int main(int argc, char **argv)
{
	uint64_t nr_user = 0, nr_kernel = 0, nr_first = 0, nr_wanted = 0, nr_elsewhere = 0, i, at;
	const struct morph_record *record;
	struct reader r;
	struct symbol *symbol;
	size_t k;
	pid_t pid;
	int arg;

	if (argc < 2)
		return 2;
	read_symbols();
	collect(&r, 0, &pid);
	for (record = reader_next(&r, NULL); record; record = reader_next(&r, record)) {
		const struct morph_samples *s = (const void *)record;

		if (record->type != MORPH_REC_SAMPLES)
			continue;
		for (i = 0; i < reader_nr_ips(record); i++) {
			uint64_t ip = s->ips[i];

			/* No raw kernel address may appear in samples of any process. */
			at = ip - MORPH_KERNEL_BASE;
			EXPECT(ip >> 47 == 0 || ip == MORPH_KERNEL_ELSEWHERE || at < 1 << 30,
			       "%#llx is a raw address", (unsigned long long)ip);
			if (s->task.tgid != (uint32_t)pid)
				continue;
			nr_user += ip >> 63 == 0;
			nr_elsewhere += ip == MORPH_KERNEL_ELSEWHERE;
			if (ip >> 63 == 0 || ip == MORPH_KERNEL_ELSEWHERE)
				continue;
			nr_kernel++;
			/* The init code behind _etext was freed after boot. */
			EXPECT(at < etext - text, "%#llx is behind the kernel's code",
			       (unsigned long long)ip);
			symbol = symbol_at(text + at);
			symbol->nr++;
			for (arg = 1; arg < argc && !begins(symbol->name, argv[arg]); arg++)
				;
			nr_first += arg == 1;
			nr_wanted += arg < argc;
		}
	}
	printf("kernel: %llu in user code, %llu in the kernel: %llu in %s*, %llu where expected; "
	       "%llu elsewhere\n",
	       (unsigned long long)nr_user, (unsigned long long)nr_kernel,
	       (unsigned long long)nr_first, argv[1], (unsigned long long)nr_wanted,
	       (unsigned long long)nr_elsewhere);
	for (k = 0; k < nr_symbols; k++)
		if (symbols[k].nr > nr_kernel / 50)
			printf("%8u %s\n", symbols[k].nr, symbols[k].name);
	EXPECT(nr_kernel >= 100 && nr_user * 10 < nr_kernel, "this program is all in the kernel");
	EXPECT(nr_first * 5 > nr_kernel && nr_wanted * 4 > nr_kernel * 3,
	       "%llu of %llu are in %s*, %llu where they should be", (unsigned long long)nr_first,
	       (unsigned long long)nr_kernel, argv[1], (unsigned long long)nr_wanted);
	reader_close(&r);

	collect(&r, MORPH_START_NO_KERNEL, &pid);
	for (record = reader_next(&r, NULL); record; record = reader_next(&r, record)) {
		const struct morph_samples *s = (const void *)record;

		for (i = 0; record->type == MORPH_REC_SAMPLES && i < reader_nr_ips(record); i++)
			EXPECT(s->ips[i] >> 63 == 0, "%#llx without kernel samples",
			       (unsigned long long)s->ips[i]);
	}
	EXPECT(reader_counts(&r).samples == r.nr_samples + r.lost, "samples do not add up");
	reader_close(&r);
	return finish();
}
