// SPDX-License-Identifier: Apache-2.0
/*
 * watch - samples a command and prints where its samples lie, using only the module's records in
 * the order of their times. Tests compare morphd with it.
 *
 *	watch [-r RATE] [-t] COMMAND...		-t samples from the tick
 *
 * Output, for the command's process and its descendants:
 *	file PATH BUILD-ID PAGE NR	samples in this page of a file
 *	memory NAME NR			in memory without a file
 *	unmapped NR			in no known mapping
 *	kernel NR
 * and at the end: total SAMPLES LOST EVENTS LOST-EVENTS, stranger NR (other processes), of which
 * homeless NR were in user code. With LAZY in the environment, a process that calls exec counts as
 * the command's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

/* A mapped file, from an MMAP or a FILE record. */
struct file {
	uint64_t ino;
	uint32_t build_id_len;
	const uint8_t *build_id;
	const char *path;
};

struct map {
	uint64_t start, end, off;
	struct file file; /* no path: watch's own, from before */
};

struct space {
	uint32_t tgid, exec_id;
	struct map *maps;
	size_t nr, room;
	struct space *next;
};

#define NR_HASH 4096
static struct space *spaces[NR_HASH];

static struct space *find(uint32_t tgid, uint32_t exec_id, bool make)
{
	struct space **at = &spaces[(tgid * 31 + exec_id) % NR_HASH], *s;

	for (s = *at; s; s = s->next)
		if (s->tgid == tgid && s->exec_id == exec_id)
			return s;
	if (!make)
		return NULL;
	s = calloc(1, sizeof(*s));
	*s = (struct space){.tgid = tgid, .exec_id = exec_id, .next = *at};
	*at = s;
	return s;
}

/* Later mappings hide what they overlap, since the search starts with the newest. */
static void add(struct space *s, struct map map)
{
	if (s->nr == s->room) {
		s->room = s->room * 2 + 16;
		s->maps = realloc(s->maps, s->room * sizeof(*s->maps));
	}
	s->maps[s->nr++] = map;
}

static const struct map *look_up(const struct space *s, uint64_t ip)
{
	size_t i;

	for (i = s->nr; i--;)
		if (ip >= s->maps[i].start && ip < s->maps[i].end)
			return &s->maps[i];
	return NULL;
}

/* ---- results ---- */

struct count {
	char *what;
	uint64_t nr;
};
static struct count *found;
static size_t nr_found;

static void count(const char *what)
{
	size_t i;

	for (i = 0; i < nr_found; i++)
		if (!strcmp(found[i].what, what))
			break;
	if (i == nr_found) {
		found = realloc(found, ++nr_found * sizeof(*found));
		found[i] = (struct count){strdup(what), 0};
	}
	found[i].nr++;
}

static uint64_t nr_strangers, nr_homeless;

static void sample(const struct morph_task *task, uint64_t ip)
{
	const struct space *s = find(task->tgid, task->exec_id, false);
	const struct map *map;
	char what[4400], id[2 * MORPH_BUILD_ID_MAX + 1] = "-";
	uint32_t i;

	if (!s) {
		nr_strangers++;
		nr_homeless += !(ip >> 63);
		return;
	}
	if (ip >> 63) {
		count("kernel");
		return;
	}
	map = look_up(s, ip);
	if (!map) {
		count("unmapped");
		return;
	}
	if (!map->file.path) {
		count("file watch - 0");
		return;
	}
	if (!map->file.ino) {
		snprintf(what, sizeof(what), "memory %s", map->file.path);
		count(what);
		return;
	}
	for (i = 0; i < map->file.build_id_len; i++)
		sprintf(id + 2 * i, "%02x", map->file.build_id[i]);
	snprintf(what, sizeof(what), "file %s %s %llu", map->file.path, id,
		 (unsigned long long)(ip - map->start + map->off) >> 12);
	count(what);
}

/* ---- in order of time ---- */

struct item {
	uint64_t time_ns;
	size_t at;
};

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The current meaning of each ring's file numbers. */
static const struct morph_file *files[READER_CPUS][MORPH_NR_FILES];

static void play_space(const struct morph_space *space)
{
	uint32_t nr = (space->task.record.size - sizeof(*space)) / sizeof(space->maps[0]), i;
	struct space *s = find(space->task.tgid, space->task.exec_id, true);
	const struct morph_space_map *map;
	const struct morph_file *file;
	uint32_t number;
	uint64_t start;

	if (space->task.flags & MORPH_SPACE_NEW)
		s->nr = 0;
	for (i = 0; i < nr; i++) {
		map = &space->maps[i];
		start = map->start & MORPH_SPACE_START;
		if (map->start & MORPH_SPACE_VDSO) {
			add(s,
			    (struct map){
				    start, start + map->nr_pages * 4096ULL, 0, {.path = "[vdso]"}});
			continue;
		}
		number = map->start & MORPH_SPACE_FILE;
		file = files[space->task.record.cpu % READER_CPUS][number];
		if (!file)
			die("a file with the number %u that was not said", number);
		add(s, (struct map){start,
				    start + map->nr_pages * 4096ULL,
				    map->off_pages * 4096ULL,
				    {file->ino, file->build_id_len, file->build_id, file->path}});
	}
}

static void play(const struct morph_record *record)
{
	const struct morph_file *file = (const void *)record;
	const struct morph_task *task = (const void *)record;
	const struct morph_mmap *mmap = (const void *)record;
	const struct morph_fork *fork = (const void *)record;
	const struct morph_samples *samples = (const void *)record;
	struct space *s, *parent;
	uint64_t i;

	switch (record->type) {
	case MORPH_REC_MMAP:
		/* A process that comes from ours: by fork, or by exec, which has a new number. */
		s = find(task->tgid, task->exec_id, false);
		if (!s && find(task->tgid, task->exec_id - 1, false))
			s = find(task->tgid, task->exec_id, true);
		if (s)
			add(s, (struct map){mmap->start,
					    mmap->start + mmap->len,
					    mmap->off,
					    {mmap->ino, mmap->build_id_len, mmap->build_id,
					     mmap->path}});
		break;
	case MORPH_REC_FILE: files[record->cpu % READER_CPUS][file->number] = file; break;
	case MORPH_REC_SPACE: play_space((const void *)record); break;
	case MORPH_REC_FORK:
		parent = find(fork->parent_tgid, task->exec_id, false);
		if (!parent || fork->parent_tgid == task->tgid)
			break;
		s = find(task->tgid, task->exec_id, true);
		for (i = 0; i < parent->nr; i++)
			add(s, parent->maps[i]);
		break;
	case MORPH_REC_SAMPLES:
		for (i = 0; i < reader_nr_ips(record); i++)
			sample(task, samples->ips[i]);
		break;
	}
}

static void play_all(const struct reader *r)
{
	const struct morph_record *record;
	struct item *items = NULL;
	size_t nr = 0, room = 0, i;

	for (record = reader_next(r, NULL); record; record = reader_next(r, record)) {
		if (nr == room) {
			room = room * 2 + 4096;
			items = realloc(items, room * sizeof(*items));
		}
		/* time_ns has the same offset in all of them. */
		items[nr++] = (struct item){((const struct morph_task *)record)->time_ns,
					    (const uint8_t *)record - r->stream};
	}
	qsort(items, nr, sizeof(*items), by_time);
	for (i = 0; i < nr; i++)
		play((const void *)(r->stream + items[i].at));
	free(items);
}

/* This process's mappings existed before START. */
static void add_own(struct reader *r)
{
	struct morph_exec_id e = {.tgid = getpid()};
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[4400];
	struct space *s;

	if (!f || ioctl(r->fd, MORPH_IOC_EXEC_ID, &e))
		die("own mappings");
	s = find(e.tgid, e.exec_id, true);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			add(s, (struct map){.start = start, .end = end});
	fclose(f);
}

int main(int argc, char **argv)
{
	int mode = -1, opt, status, ret;
	uint32_t rate = 0;
	struct morph_counts c;
	struct reader r;
	uint64_t in_all = 0;
	pid_t pid;
	size_t i;

	while ((opt = getopt(argc, argv, "+r:t")) != -1) {
		if (opt == 'r')
			rate = atoi(optarg);
		else if (opt == 't')
			mode = MORPH_MODE_TICK;
		else
			return 2;
	}
	if (optind == argc)
		return 2;
	reader_open(&r);
	add_own(&r);
	reader_start(&r, rate, mode, 0);
	reader_map(&r);
	pid = fork();
	if (!pid) {
		execvp(argv[optind], argv + optind);
		_exit(127);
	}
	while (!(ret = waitpid(pid, &status, WNOHANG))) {
		reader_take(&r);
		sleep_ms(20);
	}
	reader_stop(&r);
	reader_take(&r);
	c = reader_counts(&r);
	play_all(&r);
	for (i = 0; i < nr_found; i++) {
		printf("%s %llu\n", found[i].what, (unsigned long long)found[i].nr);
		in_all += found[i].nr;
	}
	printf("homeless %llu\n", (unsigned long long)nr_homeless);
	printf("stranger %llu\n", (unsigned long long)nr_strangers);
	printf("total %llu %llu %llu %llu\n", c.samples, c.lost_samples, c.events, c.lost_events);
	EXPECT(c.samples == r.nr_samples + c.lost_samples && r.nr_samples == in_all + nr_strangers,
	       "%llu samples, %llu read, %llu lost, %llu placed, %llu strangers", c.samples,
	       (unsigned long long)r.nr_samples, c.lost_samples, (unsigned long long)in_all,
	       (unsigned long long)nr_strangers);
	EXPECT(c.events == r.nr_events, "%llu events, %llu read", c.events,
	       (unsigned long long)r.nr_events);
	EXPECT(!status, "the command's status is %#x", status);
	return finish();
}
