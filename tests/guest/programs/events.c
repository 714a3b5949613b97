// SPDX-License-Identifier: Apache-2.0
/*
 * events - compares the module's records of a program's life with what the kernel says
 * elsewhere: mappings in /proc/self/maps, build-ids in its notes, and CPU time from wait4().
 *
 *  events    starts itself and compares
 *  events run  prints its mappings and build-ids, works for a while, prints its CPU time, exits
 */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define WORK_NS 400000000ULL

/* ---- the program ---- */

static int print_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	const Elf64_Nhdr *note;
	const uint8_t *at, *end, *id;
	uint32_t i, j;

	(void)size;
	(void)arg;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		at = (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		end = at + info->dlpi_phdr[i].p_memsz;
		for (; at + sizeof(*note) <= end; at = id + (note->n_descsz + 3) / 4 * 4) {
			note = (const void *)at;
			id = at + sizeof(*note) + (note->n_namesz + 3) / 4 * 4;
			if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
			    memcmp(note + 1, "GNU", 4))
				continue;
			printf("build-id %lx ", (unsigned long)at);
			for (j = 0; j < note->n_descsz; j++)
				printf("%02x", id[j]);
			printf("\n");
		}
	}
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int run(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400];

	if (!maps)
		die("/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		fputs(line, stdout);
	fclose(maps);
	dl_iterate_phdr(print_build_id, NULL);
	fflush(stdout);
	while (cpu_ns() < WORK_NS)
		;
	printf("used %llu\n", (unsigned long long)cpu_ns());
	fflush(stdout);
	_exit(0);
}

/* ---- records ---- */

static struct reader r;

/* Return: the @nr-th record of @type of process @tgid, or NULL. */
static const void *find(uint32_t tgid, uint16_t type, unsigned int nr)
{
	const struct morph_record *record = NULL;

	while ((record = reader_next(&r, record)))
		if (record->type == type && ((const struct morph_task *)record)->tgid == tgid &&
		    !nr--)
			return record;
	return NULL;
}

static const struct morph_mmap *find_mmap(uint32_t tgid, uint64_t start)
{
	const struct morph_mmap *mmap;
	unsigned int i;

	for (i = 0; (mmap = find(tgid, MORPH_REC_MMAP, i)); i++)
		if (mmap->start <= start && start - mmap->start < mmap->len)
			return mmap;
	return NULL;
}

/* Checks one line of /proc/PID/maps. Return: true if it is code of a file. */
static bool check_mapping(uint32_t tgid, const char *line)
{
	unsigned long long start, end, off, ino;
	unsigned int major, minor;
	const struct morph_mmap *mmap;
	char rights[8], path[4096];

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %4095s", &start, &end, rights, &off, &major,
		   &minor, &ino, path) != 8 ||
	    rights[2] != 'x' || path[0] != '/')
		return false;
	mmap = find_mmap(tgid, start);
	EXPECT(mmap, "no MMAP for %s", line);
	if (mmap)
		EXPECT(mmap->start == start && mmap->len == end - start && mmap->off == off &&
			       mmap->dev_major == major && mmap->dev_minor == minor &&
			       mmap->ino == ino && !strcmp(mmap->path, path),
		       "%llx, %llx bytes, at %llx, %x:%x %llu %s; and in maps %s",
		       (unsigned long long)mmap->start, (unsigned long long)mmap->len,
		       (unsigned long long)mmap->off, mmap->dev_major, mmap->dev_minor,
		       (unsigned long long)mmap->ino, mmap->path, line);
	return true;
}

/* A note lies in the file whose code is mapped last below it, or first above it. */
static bool check_build_id(uint32_t tgid, const char *line)
{
	char want[2 * MORPH_BUILD_ID_MAX + 1], is[2 * MORPH_BUILD_ID_MAX + 1] = "";
	const struct morph_mmap *mmap, *best = NULL;
	unsigned long note;
	unsigned int i;

	if (sscanf(line, "build-id %lx %64s", &note, want) != 2)
		return false;
	for (i = 0; (mmap = find(tgid, MORPH_REC_MMAP, i)); i++)
		if (mmap->start + mmap->len > note && (!best || mmap->start < best->start))
			best = mmap;
	EXPECT(best, "no MMAP of who has the note at %lx", note);
	if (!best)
		return true;
	for (i = 0; i < best->build_id_len; i++)
		sprintf(is + 2 * i, "%02x", best->build_id[i]);
	/* The vDSO has a note, but no file. */
	EXPECT(!strcmp(is, want) || !best->ino, "%s: build-id %s, not %s", best->path, is, want);
	return best->ino != 0;
}

static uint64_t usage_ns(struct timeval t)
{
	return t.tv_sec * 1000000000ULL + t.tv_usec * 1000ULL;
}

/* @used_ns: the CPU time that the program had used when it last asked. */
static void check_life(uint32_t tgid, const struct rusage *usage, unsigned long long used_ns)
{
	const struct morph_fork *fork = find(tgid, MORPH_REC_FORK, 0);
	const struct morph_exec *exec = find(tgid, MORPH_REC_EXEC, 0);
	const struct morph_exit *exit = find(tgid, MORPH_REC_EXIT, 0);
	const struct morph_mmap *mmap = find(tgid, MORPH_REC_MMAP, 0);
	/* Two values in microseconds, each rounded down. */
	uint64_t whole_ns = usage_ns(usage->ru_utime) + usage_ns(usage->ru_stime) + 2000;

	EXPECT(fork && exec && mmap && exit, "no FORK, EXEC, MMAP or EXIT");
	if (!fork || !exec || !mmap || !exit)
		return;
	EXPECT(fork->parent_tgid == (uint32_t)getpid(), "a child of %u", fork->parent_tgid);
	EXPECT(fork->task.time_ns < mmap->task.time_ns && mmap->task.time_ns < exit->task.time_ns &&
		       fork->task.time_ns < exec->task.time_ns &&
		       exec->task.time_ns < exit->task.time_ns,
	       "times: FORK %llu, EXEC %llu, MMAP %llu, EXIT %llu", fork->task.time_ns,
	       exec->task.time_ns, mmap->task.time_ns, exit->task.time_ns);
	EXPECT(exec->task.exec_id == mmap->task.exec_id && exec->task.exec_id != fork->task.exec_id,
	       "exec_id: FORK %u, EXEC %u, MMAP %u", fork->task.exec_id, exec->task.exec_id,
	       mmap->task.exec_id);
	printf("%llu ns at its end, %llu ns in EXIT, %llu ns by wait4()\n", used_ns,
	       exit->cpu_time_ns, (unsigned long long)whole_ns);
	/* The kernel updates the CPU time when the program asks, and it only grows. */
	EXPECT(used_ns >= WORK_NS && exit->cpu_time_ns >= used_ns && exit->cpu_time_ns <= whole_ns,
	       "EXIT says %llu ns", exit->cpu_time_ns);
	EXPECT(!find(tgid, MORPH_REC_EXIT, 1) && !find(tgid, MORPH_REC_FORK, 1), "said twice");
}

int main(int argc, char **argv)
{
	unsigned int nr_mappings = 0, nr_ids = 0, nr_lines = 0, i;
	unsigned long long used_ns = 0;
	static char lines[512][4400];
	int pipes[2], status;
	struct rusage usage;
	pid_t pid;
	FILE *in;

	if (argc > 1)
		return run();
	if (pipe(pipes))
		die("pipe");
	reader_open(&r);
	reader_start(&r, 1000, MORPH_MODE_HRTIMER, 0);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], 1);
		close(pipes[0]);
		close(pipes[1]);
		execl("/proc/self/exe", argv[0], "run", NULL);
		_exit(1);
	}
	close(pipes[1]);
	in = fdopen(pipes[0], "r");
	while (in && nr_lines < 512 && fgets(lines[nr_lines], sizeof(lines[0]), in))
		nr_lines++;
	if (wait4(pid, &status, 0, &usage) != pid || status)
		die("the program: status %#x", status);
	reader_stop(&r);
	reader_map(&r);
	reader_take(&r);
	for (i = 0; i < nr_lines; i++) {
		nr_mappings += check_mapping(pid, lines[i]);
		nr_ids += check_build_id(pid, lines[i]);
		sscanf(lines[i], "used %llu", &used_ns);
	}
	printf("%u mappings and %u build-ids are as they are said\n", nr_mappings, nr_ids);
	/* The program, libc and the loader. */
	EXPECT(nr_mappings >= 3 && nr_ids >= 3, "of %u lines", nr_lines);
	check_life(pid, &usage, used_ns);
	reader_close(&r);
	return finish();
}
