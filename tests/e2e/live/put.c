// SPDX-License-Identifier: Apache-2.0
/*
 * put - is preloaded into a program, and puts an output of --live-at over the original that runs: maps its segment,
 * writes the code and the constant tables that differ, and leads unwinders to the new rows. It changes nothing else.
 *
 * Environment: PUT_ORIGINAL, PUT_OUTPUT: the files. PUT_TOGGLE_US: put it in and take it out again so often, by a
 * signal, at whatever instruction the program is, until it starts a thread. PUT_NO_LOOKUP: unwinders are not led. PUT_COUNTERS:
 * file that gets the counters at exit. PUT_REPORT: file that gets the number of changes at exit.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "daemon/live/lookup/lookup.h"

#define PAGE	  UINT64_C(4096)
#define NR_RANGES 64

struct file {
	const uint8_t *bytes;
	size_t size;
	int fd;
};

/* Bytes of the process that may differ, and what both files have there. */
static struct range {
	uint8_t *at;
	const uint8_t *old, *now;
	size_t size;
} ranges[NR_RANGES];
static int nr_ranges;
static bool is_in;
static unsigned long nr_changes, nr_late;
static uint8_t *counters;
static size_t counters_size;

static void die(const char *what)
{
	dprintf(2, "put: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static struct file open_file(const char *path)
{
	struct file f = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	struct stat st;

	if (f.fd < 0 || fstat(f.fd, &st))
		die(path);
	f.size = (size_t)st.st_size;
	f.bytes = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, f.fd, 0);
	if (f.bytes == MAP_FAILED)
		die(path);
	return f;
}

struct wanted {
	const char *path;
	uint64_t base;
	bool found;
};

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct wanted *w = ctx;
	char real[PATH_MAX];

	(void)size;
	if (!realpath(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe", real) ||
	    strcmp(real, w->path) != 0)
		return 0;
	w->base = info->dlpi_addr;
	w->found = true;
	return 1;
}

static const Elf64_Shdr *sections(const struct file *f, int *nr, const char **names)
{
	const Elf64_Ehdr *e = (const void *)f->bytes;
	const Elf64_Shdr *s = (const void *)(f->bytes + e->e_shoff);

	*nr = e->e_shnum;
	*names = (const char *)f->bytes + s[e->e_shstrndx].sh_offset;
	return s;
}

static void find_ranges(const struct file *old, const struct file *now, uint64_t base)
{
	const char *names;
	int nr;
	const Elf64_Shdr *s = sections(old, &nr, &names);

	for (int i = 1; i < nr; i++) {
		if (s[i].sh_type != SHT_PROGBITS || !(s[i].sh_flags & SHF_ALLOC) ||
		    s[i].sh_flags & SHF_WRITE)
			continue;
		if (!memcmp(old->bytes + s[i].sh_offset, now->bytes + s[i].sh_offset, s[i].sh_size))
			continue;
		if (nr_ranges == NR_RANGES)
			die("too many sections");
		ranges[nr_ranges++] = (struct range){(uint8_t *)(base + s[i].sh_addr),
						     old->bytes + s[i].sh_offset,
						     now->bytes + s[i].sh_offset, s[i].sh_size};
	}
}

/* May the thread go on at @ip when these bytes change? */
static bool may_change_at(uint64_t ip)
{
	for (int r = 0; r < nr_ranges; r++) {
		uint64_t off = ip - (uint64_t)ranges[r].at;

		if (off >= ranges[r].size || off < 4)
			continue;
		if (memcmp(ranges[r].old + off - 4, ranges[r].now + off - 4, 4) != 0)
			return false;
	}
	return true;
}

static void change(void)
{
	is_in = !is_in;
	for (int r = 0; r < nr_ranges; r++)
		for (size_t at = 0; at < ranges[r].size; at += 256) {
			size_t n = ranges[r].size - at < 256 ? ranges[r].size - at : 256;

			if (memcmp(ranges[r].old + at, ranges[r].now + at, n) != 0)
				memcpy(ranges[r].at + at,
				       (is_in ? ranges[r].now : ranges[r].old) + at, n);
		}
	nr_changes++;
}

static void on_timer(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig, (void)info;
	/* Other threads would run what changes. */
	if (__libc_single_threaded &&
	    may_change_at((uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]))
		change();
	else
		nr_late++;
	errno = saved;
}

static void make_writable(void)
{
	for (int r = 0; r < nr_ranges; r++) {
		uint64_t start = (uint64_t)ranges[r].at & ~(PAGE - 1);
		uint64_t end = (uint64_t)ranges[r].at + ranges[r].size;

		if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC))
			die("mprotect");
	}
}

/* Return: the segment's run-time address. *@hdr: that of .eh_frame_hdr. */
static uint64_t map_segment(const struct file *now, uint64_t base, uint64_t *size, uint64_t *hdr)
{
	const Elf64_Ehdr *e = (const void *)now->bytes;
	const Elf64_Phdr *p = (const void *)(now->bytes + e->e_phoff), *segment = NULL;
	const char *names;
	int nr;
	const Elf64_Shdr *s = sections(now, &nr, &names);

	for (int i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD)
			segment = &p[i];
		if (p[i].p_type == PT_GNU_EH_FRAME)
			*hdr = base + p[i].p_vaddr;
	}
	for (int i = 1; i < nr; i++) {
		if (strcmp(names + s[i].sh_name, ".morph.counters") != 0)
			continue;
		counters_size = s[i].sh_size;
		counters = mmap((void *)(base + s[i].sh_addr), counters_size,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (counters == MAP_FAILED)
			die("counters");
	}
	*size = segment->p_filesz;
	if (mmap((void *)(base + segment->p_vaddr), *size, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED_NOREPLACE, now->fd,
		 (off_t)segment->p_offset) == MAP_FAILED)
		die("segment");
	return base + segment->p_vaddr;
}

static void lead_unwinders(const struct md_lookup_entry *entry)
{
	static struct md_lookup lookup;
	uint8_t *function = dlsym(RTLD_DEFAULT, "_dl_find_object"), *page = MAP_FAILED;
	uint64_t near = (uint64_t)function & ~(PAGE - 1);

	if (!function) {
		errno = ENOSYS;
		die("_dl_find_object");
	}
	for (uint64_t far = 16 << 20; page == MAP_FAILED && far < UINT64_C(1) << 30; far += 1 << 20)
		page = mmap((void *)(near - far), MD_LOOKUP_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		die("page");
	errno = -md_lookup_make(function, (uint64_t)function, (uint64_t)page, entry, 1, &lookup);
	if (errno)
		die("md_lookup_make");
	memcpy(page, lookup.page, MD_LOOKUP_PAGE);
	if (mprotect(page, MD_LOOKUP_PAGE, PROT_READ | PROT_EXEC) ||
	    mprotect((void *)near, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("mprotect");
	memcpy((void *)lookup.at, lookup.patch, sizeof(lookup.patch));
	mprotect((void *)near, 2 * PAGE, PROT_READ | PROT_EXEC);
}

static void __attribute__((constructor)) put(void)
{
	const char *original = getenv("PUT_ORIGINAL"), *output = getenv("PUT_OUTPUT");
	const char *toggle = getenv("PUT_TOGGLE_US");
	struct wanted w = {.path = original};
	struct md_lookup_entry entry;
	struct file old, now;

	if (!original || !output)
		return;
	dl_iterate_phdr(look, &w);
	if (!w.found)
		return;
	old = open_file(original);
	now = open_file(output);
	find_ranges(&old, &now, w.base);
	entry.start = map_segment(&now, w.base, &entry.size, &entry.eh_frame_hdr);
	entry.original = (uint64_t)ranges[0].at;
	if (!getenv("PUT_NO_LOOKUP"))
		lead_unwinders(&entry);
	make_writable();
	change();
	if (toggle) {
		struct itimerval timer = {.it_interval.tv_usec = atoi(toggle)};
		struct sigaction act = {.sa_sigaction = on_timer,
					.sa_flags = SA_SIGINFO | SA_RESTART};

		timer.it_value = timer.it_interval;
		sigaction(SIGVTALRM, &act, NULL);
		setitimer(ITIMER_VIRTUAL, &timer, NULL);
	}
}

static void __attribute__((destructor)) report(void)
{
	const char *path = getenv("PUT_REPORT");
	int fd;

	if (path && nr_changes) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		dprintf(fd, "%lu %lu\n", nr_changes, nr_late);
		close(fd);
	}
	path = getenv("PUT_COUNTERS");
	if (path && counters) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (write(fd, counters, counters_size) != (ssize_t)counters_size)
			die(path);
		close(fd);
	}
}
