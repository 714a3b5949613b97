// SPDX-License-Identifier: Apache-2.0
/*
 * audit_writer - acts as an audited program, for tests of the reader: several processes and threads
 * write invented windows with known effects into the file of an audit, and obey its verdicts.
 *
 *	audit-writer [OPTION=VALUE...] FILE
 *
 *	functions=8 effects=2,-2,0   per cent by which B is faster; functions take them in turn
 *	noise=gaussian               by the names of audit-simulate
 *	processes=1 threads=1        each writes windows of all functions in turn
 *	rate=0                       pairs a second of each thread; 0: as many as possible
 *	seconds=10                   at most; ends sooner once every function has a verdict
 *	pairs=0                      of each thread, at most; 0: any number
 *	drop=0                       per cent of first windows that are not timed
 *	hash=1                       of the table of functions
 *	die=0                        after so many pairs, begin a record, do not finish it, and kill
 *	                             the process
 *	seed=1
 *
 * Prints, at the end, for each function the number of pairs of each thread of the first process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libprof/note/audit_file.h"
#include "tests/support/audits/windows.h"

#define MAX_EFFECTS 16
#define MAX_THREADS 64

static struct options {
	const char *path;
	uint32_t functions, nr_effects, processes, threads;
	double effects[MAX_EFFECTS];
	enum me_noise noise;
	double rate, seconds, drop;
	uint64_t pairs, hash, die, seed;
} opt = {.functions = 8,
	 .nr_effects = 3,
	 .effects = {0.02, -0.02, 0},
	 .processes = 1,
	 .threads = 1,
	 .seconds = 10,
	 .hash = 1,
	 .seed = 1};

static struct mp_audit_file_header *header;
static struct mp_audit_function *functions;
static struct mp_audit_record *records;
static _Atomic uint64_t nr_pairs;
static struct timespec end;

static void fail(const char *what)
{
	fprintf(stderr, "audit-writer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void parse_effects(char *text)
{
	opt.nr_effects = 0;
	for (char *word = strtok(text, ","); word && opt.nr_effects < MAX_EFFECTS;
	     word = strtok(NULL, ","))
		opt.effects[opt.nr_effects++] = strtod(word, NULL) / 100;
}

static enum me_noise parse_noise(const char *name)
{
	for (int n = 0; n < ME_NR_NOISES; n++)
		if (!strcmp(me_noise_name((enum me_noise)n), name))
			return (enum me_noise)n;
	errno = EINVAL;
	fail(name);
	return 0;
}

static void parse(const char *key, char *value)
{
	uint64_t nr = strtoull(value, NULL, 0);

	if (!strcmp(key, "functions"))
		opt.functions = (uint32_t)nr;
	else if (!strcmp(key, "effects"))
		parse_effects(value);
	else if (!strcmp(key, "noise"))
		opt.noise = parse_noise(value);
	else if (!strcmp(key, "processes"))
		opt.processes = (uint32_t)nr;
	else if (!strcmp(key, "threads"))
		opt.threads = nr < MAX_THREADS ? (uint32_t)nr : MAX_THREADS;
	else if (!strcmp(key, "rate"))
		opt.rate = strtod(value, NULL);
	else if (!strcmp(key, "seconds"))
		opt.seconds = strtod(value, NULL);
	else if (!strcmp(key, "pairs"))
		opt.pairs = nr;
	else if (!strcmp(key, "drop"))
		opt.drop = strtod(value, NULL) / 100;
	else if (!strcmp(key, "hash"))
		opt.hash = nr;
	else if (!strcmp(key, "die"))
		opt.die = nr;
	else if (!strcmp(key, "seed"))
		opt.seed = nr;
	else {
		errno = EINVAL;
		fail(key);
	}
}

/* As the runtime of an audited program: sizes an empty file, and fills in the header, magic last. */
static void attach(void)
{
	size_t table = (opt.functions * sizeof(*functions) + 4095) / 4096 * 4096;
	size_t size = MP_AUDIT_FILE_HEADER_BYTES + table + MP_AUDIT_NR_RECORDS * sizeof(*records);
	int fd = open(opt.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	struct stat st;
	char *map;

	if (fd < 0 || fstat(fd, &st) || (!st.st_size && ftruncate(fd, (off_t)size)))
		fail(opt.path);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail(opt.path);
	close(fd);
	header = (void *)map;
	functions = (void *)(map + MP_AUDIT_FILE_HEADER_BYTES);
	records = (void *)(map + MP_AUDIT_FILE_HEADER_BYTES + table);
	header->table_hash = opt.hash;
	header->version = MP_AUDIT_FILE_VERSION;
	header->header_bytes = MP_AUDIT_FILE_HEADER_BYTES;
	header->nr_functions = opt.functions;
	header->nr_records = MP_AUDIT_NR_RECORDS;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(header->magic, MP_AUDIT_FILE_MAGIC, sizeof(header->magic));
}

static void write_record(const struct mp_audit_record *record, bool dies)
{
	uint64_t number = __atomic_fetch_add(&header->next, 1, __ATOMIC_SEQ_CST);
	struct mp_audit_record *to = &records[number % MP_AUDIT_NR_RECORDS];

	if (dies)
		kill(getpid(), SIGKILL);
	/* All but the number, which is the first member. */
	memcpy((char *)to + sizeof(to->number), (const char *)record + sizeof(record->number),
	       sizeof(*to) - sizeof(to->number));
	__atomic_store_n(&to->number, number + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&functions[record->function].windows[record->fate], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&functions[record->function].starts, record->rounds, __ATOMIC_RELAXED);
	__atomic_fetch_add(&functions[record->function].stops, record->rounds, __ATOMIC_RELAXED);
}

static bool is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec);
}

static bool is_decided(uint32_t f)
{
	uint32_t verdict = __atomic_load_n(&functions[f].verdict, __ATOMIC_RELAXED);

	return verdict == MP_AUDIT_VERDICT_A || verdict == MP_AUDIT_VERDICT_B;
}

static void write_pair(struct windows *w, uint32_t f, uint32_t thread, uint64_t pair)
{
	struct mp_audit_record both[2];
	bool dropped = opt.drop > 0 &&
		       (double)(rand_r(&(unsigned int){(unsigned int)(pair ^ pair >> 32)}) %
				10000) < 10000 * opt.drop;

	windows_pair(w, f, thread, pair, both);
	if (dropped)
		both[0].fate = MP_AUDIT_PREEMPTED;
	write_record(&both[0], false);
	if (!dropped)
		write_record(&both[1], opt.die && ++nr_pairs == opt.die);
}

/* Sleeps a millisecond where the thread is ahead of its rate. */
static void keep_rate(uint64_t pairs, const struct timespec *began)
{
	static const struct timespec pause = {0, 1000000};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (opt.rate > 0 &&
	    (double)pairs > opt.rate * ((double)(now.tv_sec - began->tv_sec) +
					(double)(now.tv_nsec - began->tv_nsec) / 1e9))
		nanosleep(&pause, NULL);
}

struct worker {
	pthread_t thread;
	uint32_t number;
	uint64_t pairs[MP_AUDIT_MAX_FUNCTIONS];
};

static void *work(void *arg)
{
	struct worker *self = arg;
	struct windows w[MP_AUDIT_MAX_FUNCTIONS];
	uint64_t pairs = 0, seed = opt.seed * 1000003 + self->number;
	struct timespec began;
	bool open = true;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (uint32_t f = 0; f < opt.functions; f++)
		windows_init(&w[f], opt.noise, opt.effects[f % opt.nr_effects],
			     (seed * MP_AUDIT_MAX_FUNCTIONS + f) * 0x9e3779b97f4a7c15u);
	while (open && !is_over() && (!opt.pairs || pairs < opt.pairs)) {
		open = false;
		for (uint32_t f = 0; f < opt.functions; f++) {
			if (is_decided(f))
				continue;
			open = true;
			pairs++;
			self->pairs[f]++;
			write_pair(&w[f], f, self->number, (seed << 32) + pairs);
		}
		keep_rate(pairs, &began);
	}
	return NULL;
}

static void run_process(uint32_t process)
{
	static struct worker workers[MAX_THREADS];

	for (uint32_t t = 0; t < opt.threads; t++) {
		workers[t].number = process * MAX_THREADS + t + 1;
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			fail("thread");
	}
	for (uint32_t t = 0; t < opt.threads; t++)
		pthread_join(workers[t].thread, NULL);
	for (uint32_t f = 0; !process && f < opt.functions; f++) {
		printf("%" PRIu32, f);
		for (uint32_t t = 0; t < opt.threads; t++)
			printf(" %" PRIu64, workers[t].pairs[f]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value || strchr(argv[i], '/')) {
			opt.path = argv[i];
			continue;
		}
		*value++ = '\0';
		parse(argv[i], value);
	}
	if (!opt.path || !opt.functions || opt.functions > MP_AUDIT_MAX_FUNCTIONS ||
	    !opt.nr_effects) {
		fprintf(stderr, "usage: audit-writer [OPTION=VALUE...] FILE\n");
		return 2;
	}
	attach();
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)opt.seconds;
	for (uint32_t p = 1; p < opt.processes; p++)
		if (!fork()) {
			run_process(p);
			_exit(0);
		}
	run_process(0);
	while (wait(NULL) > 0)
		;
	return 0;
}
