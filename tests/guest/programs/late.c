// SPDX-License-Identifier: Apache-2.0
/*
 * late - tests MORPH_START_LAZY: a process without samples leaves no records; for others, the
 * mappings come first.
 *
 *  late    starts itself, so that the observed processes have called exec
 *  late run FD  runs short programs, maps memory, forks; FD holds a struct ask
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define NR_SHORT  100
#define NR_TOGGLE 300
#define NR_MANY	  200 /* more than the module keeps of one process */

/* ---- the observed program ---- */

/* Shared by the observed program and the observer: "continue after @nr samples". */
struct ask {
	uint32_t nr;
	uint32_t tgid; /* 0: done */
};
static struct ask *ask;

static void map_ask(int fd)
{
	ask = mmap(NULL, sizeof(*ask), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ask == MAP_FAILED)
		die("mmap");
}

static void spin_until_sampled(uint32_t nr)
{
	ask->nr = nr;
	__atomic_store_n(&ask->tgid, getpid(), __ATOMIC_RELEASE);
	while (__atomic_load_n(&ask->tgid, __ATOMIC_ACQUIRE))
		;
}

static void answer(const struct reader *r)
{
	uint32_t tgid = __atomic_load_n(&ask->tgid, __ATOMIC_ACQUIRE);

	if (tgid && reader_user_samples(r, tgid) >= ask->nr)
		__atomic_store_n(&ask->tgid, 0, __ATOMIC_RELEASE);
}

static pid_t forked(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("a child: status %#x", status);
}

static void *wait_until(void *end)
{
	while (!__atomic_load_n((bool *)end, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	return NULL;
}

static int run(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const char *dir = getenv("GUEST");
	bool end = false;
	char program[256];
	pthread_t thread;
	char *many;
	pid_t pid;
	int i;

	/*
	 * These processes are mostly in the kernel: from fork to exit takes little more than a
	 * sample's interval.
	 */
	snprintf(program, sizeof(program), "%s/variant1", dir ? dir : ".");
	for (i = 0; i < NR_SHORT; i++) {
		pid = forked();
		if (!pid) {
			execl(program, program, "0", NULL);
			_exit(1);
		}
		reap(pid);
	}
	/*
	 * A child that runs code mapped by its parent, whose mappings may or may not have been
	 * sent.
	 */
	pid = forked();
	if (!pid) {
		spin_until_sampled(10);
		_exit(0);
	}
	reap(pid);
	/* Mapping the same memory repeatedly is nothing new. */
	many = mmap(NULL, NR_MANY * 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (many == MAP_FAILED)
		die("mmap");
	for (i = 0; i < NR_TOGGLE; i++)
		if (mprotect(many, page, PROT_READ | PROT_EXEC) ||
		    mprotect(many, page, PROT_READ | PROT_WRITE))
			die("mprotect");
	spin_until_sampled(20);
	/* No record told of this thread, so no record may tell of its exit. */
	if (pthread_create(&thread, NULL, wait_until, &end))
		die("pthread_create");
	/* More mappings than the module keeps: from now on they are sent at once. */
	for (i = 0; i < NR_MANY; i++)
		if (mprotect(many + i * 2 * page, page, PROT_READ | PROT_EXEC))
			die("mprotect");
	__atomic_store_n(&end, true, __ATOMIC_RELEASE);
	if (pthread_join(thread, NULL) || pthread_create(&thread, NULL, wait_until, &end) ||
	    pthread_join(thread, NULL))
		die("pthread");
	spin_until_sampled(30);
	return 0;
}

/* ---- records ---- */

struct item {
	uint64_t time_ns;
	const struct morph_record *record;
};

/* Records of one process. */
struct seen {
	uint32_t tgid, exec_id;
	unsigned int nr_batches, nr_user, nr_spaces, nr_maps, nr_mmaps, nr_forks, nr_execs,
		nr_exits;
	bool is_mapped; /* for this exec_id */
};
static struct seen all[4096];
static size_t nr_all;

static struct seen *of(const struct morph_task *task)
{
	size_t i;

	for (i = 0; i < nr_all && all[i].tgid != task->tgid; i++)
		;
	if (i == sizeof(all) / sizeof(all[0]))
		die("so many processes");
	if (i == nr_all)
		all[nr_all++] = (struct seen){.tgid = task->tgid};
	if (all[i].exec_id != task->exec_id)
		all[i].is_mapped = false;
	all[i].exec_id = task->exec_id;
	return &all[i];
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->record < y->record ? -1 : x->record > y->record;
}

static bool has_vdso(const struct morph_space *space)
{
	size_t i, nr = (space->task.record.size - sizeof(*space)) / sizeof(space->maps[0]);

	for (i = 0; i < nr; i++)
		if (space->maps[i].start & MORPH_SPACE_VDSO)
			return true;
	return false;
}

static void look(const struct morph_record *record)
{
	const struct morph_task *task = (const void *)record;
	const struct morph_samples *samples = (const void *)record;
	struct seen *seen;
	uint64_t i;

	if (record->type == MORPH_REC_FILE || record->type == MORPH_REC_LOST)
		return;
	seen = of(task);
	switch (record->type) {
	case MORPH_REC_SAMPLES:
		seen->nr_batches++;
		for (i = 0; i < reader_nr_ips(record); i++) {
			if (samples->ips[i] >> 63)
				continue;
			seen->nr_user++;
			EXPECT(!task->flags,
			       "a sample of process %u where only its program is named",
			       task->tgid);
		}
		break;
	case MORPH_REC_SPACE:
		EXPECT(seen->is_mapped || task->flags & MORPH_SPACE_NEW,
		       "process %u: more mappings before the first", task->tgid);
		EXPECT(!seen->is_mapped || !(task->flags & MORPH_SPACE_NEW),
		       "process %u: all mappings twice", task->tgid);
		/* A sample in the middle of an exec, before there is a vDSO, is kernel code. */
		EXPECT(!(task->flags & MORPH_SPACE_NEW) || has_vdso((const void *)record),
		       "process %u: no [vdso]", task->tgid);
		seen->is_mapped = true;
		seen->nr_spaces++;
		seen->nr_maps += (record->size - sizeof(struct morph_space)) /
				 sizeof(struct morph_space_map);
		break;
	case MORPH_REC_MMAP: seen->nr_mmaps++; break;
	case MORPH_REC_FORK: seen->nr_forks++; break;
	case MORPH_REC_EXEC: seen->nr_execs++; break;
	case MORPH_REC_EXIT:
		EXPECT(!seen->nr_spaces || task->flags & MORPH_EXIT_PROCESS,
		       "process %u: the end of a thread that nobody heard of", task->tgid);
		seen->nr_exits++;
		break;
	}
}

static void look_at_all(const struct reader *r)
{
	const struct morph_record *record = NULL;
	struct item *items = NULL;
	size_t nr = 0, i;

	while ((record = reader_next(r, record))) {
		if (nr % 4096 == 0)
			items = realloc(items, (nr + 4096) * sizeof(*items));
		items[nr++] = (struct item){((const struct morph_task *)record)->time_ns, record};
	}
	qsort(items, nr, sizeof(*items), by_time);
	for (i = 0; i < nr; i++)
		look(items[i].record);
	free(items);
}

static void check(pid_t runner)
{
	unsigned int nr_sampled = 0, nr_user = 0, nr_known = 0;
	const struct seen *s;
	size_t i;

	for (i = 0; i < nr_all; i++) {
		s = &all[i];
		/* Skip this process and older ones. */
		if (s->tgid == (uint32_t)getpid() || s->tgid < (uint32_t)getpid())
			continue;
		if (s->tgid == (uint32_t)runner) {
			EXPECT(s->nr_forks == 1 && !s->nr_execs,
			       "the runner: %u FORK of who was not known, %u EXEC", s->nr_forks,
			       s->nr_execs);
			EXPECT(s->nr_user >= 30, "only %u samples of the runner", s->nr_user);
			EXPECT(s->nr_spaces >= 1 && s->nr_maps >= 128 && s->nr_maps < 200,
			       "the runner: %u mappings in %u SPACEs", s->nr_maps, s->nr_spaces);
			EXPECT(s->nr_mmaps > 50 && s->nr_mmaps < NR_MANY,
			       "the runner: %u mappings said at once", s->nr_mmaps);
			EXPECT(s->nr_exits == 1, "the runner: %u EXITs", s->nr_exits);
			continue;
		}
		nr_known++;
		nr_sampled += s->nr_batches != 0;
		nr_user += s->nr_spaces != 0;
		EXPECT(!s->nr_mmaps && !s->nr_forks && !s->nr_execs,
		       "process %u: %u MMAP, %u FORK, %u EXEC", s->tgid, s->nr_mmaps, s->nr_forks,
		       s->nr_execs);
		EXPECT(s->nr_exits <= 1, "process %u: %u EXITs", s->tgid, s->nr_exits);
		EXPECT(s->nr_batches, "process %u was not sampled, and was spoken of", s->tgid);
		EXPECT(!s->nr_user || s->nr_spaces, "process %u: samples before its mappings",
		       s->tgid);
		EXPECT(s->nr_exits || !s->nr_spaces, "process %u did not end", s->tgid);
	}
	printf("late: %u processes spoken of, %u sampled, %u in their own code\n", nr_known,
	       nr_sampled, nr_user);
	EXPECT(nr_user, "no child was sampled in its own code");
}

int main(int argc, char **argv)
{
	static struct reader r;
	struct morph_counts c;
	char fd_text[16];
	int status, fd;
	pid_t pid;

	if (argc > 2) {
		map_ask(atoi(argv[2]));
		return run();
	}
	fd = memfd_create("ask", 0);
	if (fd < 0 || ftruncate(fd, sizeof(*ask)))
		die("memfd_create");
	map_ask(fd);
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	reader_open(&r);
	r.flags = MORPH_START_LAZY;
	reader_start(&r, 200, MORPH_MODE_HRTIMER, 0);
	reader_map(&r);
	pid = forked();
	if (!pid) {
		execl("/proc/self/exe", argv[0], "run", fd_text, NULL);
		_exit(127);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		reader_take(&r);
		answer(&r);
		sleep_ms(20);
	}
	if (status)
		die("the runner: status %#x", status);
	reader_stop(&r);
	reader_take(&r);
	c = reader_counts(&r);
	EXPECT(c.samples == r.nr_samples && c.events == r.nr_events && !c.lost_events,
	       "%llu samples, %llu events; read %llu and %llu", c.samples, c.events,
	       (unsigned long long)r.nr_samples, (unsigned long long)r.nr_events);
	look_at_all(&r);
	check(pid);
	reader_close(&r);
	return finish();
}
