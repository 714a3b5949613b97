// SPDX-License-Identifier: Apache-2.0
/*
 * stress - stresses the module: readers that break all rules, die, or get no memory, and processes
 * whose files change. stress.sh runs several at once, on a kernel that detects errors
 * (scripts/kernel/kernel-debug).
 *
 *	stress read SECONDS RATE MODE WAKE	a correct reader; no record may be missing
 *	stress hostile SECONDS			threads that share the file and do random things
 *	stress die SECONDS			readers that are killed
 *	stress load SECONDS			processes, threads, mappings
 *	stress notes SECONDS			a program file that changes while it is mapped
 *	stress fail				each allocation of START fails once
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define PAGE	4096UL
#define SKIPPED 77

static struct reader reader;
static uint32_t nr_cpus;
static uint64_t ring_bytes;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t random64(void)
{
	static _Thread_local uint64_t x;

	while (!x)
		x = (uint64_t)(now() * 1e9) ^ (uint64_t)syscall(SYS_gettid) << 32;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* The previous reader may still be exiting. */
static void open_patiently(void)
{
	int tries = 0;

	memset(&reader, 0, sizeof(reader));
	reader.flags = random64() % 2 ? MORPH_START_LAZY : 0;
	while ((reader.fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC)) < 0) {
		if (errno != EBUSY || tries++ == 3000)
			die("open " MORPH_DEV_PATH);
		sleep_ms(10);
	}
	reader.hello.abi_major = MORPH_ABI_MAJOR;
	if (ioctl(reader.fd, MORPH_IOC_HELLO, &reader.hello))
		die("HELLO");
	nr_cpus = reader.hello.nr_cpu_ids;
	ring_bytes = reader.hello.ring_bytes;
}

static void read_well(double seconds, uint32_t rate_hz, int mode, uint32_t wake_bytes)
{
	struct pollfd pollfd;
	struct morph_counts counts;
	double end = now() + seconds;
	uint32_t registers = 0;

	open_patiently();
	pollfd = (struct pollfd){.fd = reader.fd, .events = POLLIN};
	if (random64() % 2) {
		registers = random64() & MORPH_REGS_PATHS;
		if (ioctl(reader.fd, MORPH_IOC_REGISTERS, &registers))
			die("REGISTERS");
	}
	reader_start(&reader, rate_hz, mode, wake_bytes);
	/* Wait for a sample, however slow the machine is. */
	while (now() < end || !reader.nr_samples) {
		uint32_t rate = 1 + random64() % 4000;
		uint64_t synced;

		reader_map(&reader);
		reader_take(&reader);
		reader.bytes = 0;
		poll(&pollfd, 1, 50);
		if (random64() % 16 == 0 && ioctl(reader.fd, MORPH_IOC_SYNC, &synced))
			die("SYNC");
		if (random64() % 16 == 0 && mode == MORPH_MODE_HRTIMER &&
		    ioctl(reader.fd, MORPH_IOC_RATE, &rate))
			die("RATE");
	}
	reader_stop(&reader);
	reader_map(&reader);
	reader_take(&reader);
	counts = reader_counts(&reader);
	printf("rate %u mode %d flags %u registers %#x: %llu samples, %llu lost; %llu events, %llu lost; "
	       "idle %llu times\n",
	       rate_hz, mode, reader.flags, registers, counts.samples, counts.lost_samples,
	       counts.events, counts.lost_events, counts.idle);
	EXPECT(counts.samples == reader.nr_samples + counts.lost_samples,
	       "%llu samples were taken, %llu are there, %llu lost", counts.samples,
	       (unsigned long long)reader.nr_samples, counts.lost_samples);
	EXPECT(counts.events >= reader.nr_events, "%llu events counted, %llu read", counts.events,
	       (unsigned long long)reader.nr_events);
	EXPECT(reader.lost <= counts.lost_samples, "LOST says %llu, %llu were counted",
	       (unsigned long long)reader.lost, counts.lost_samples);
	reader_close(&reader);
}

/* ---- hostile: several threads share the file and break all rules ---- */

static double hostile_end;

static void *write_rubbish(void *arg)
{
	int fd = *(int *)arg;
	struct morph_tail **tails = calloc(nr_cpus, sizeof(*tails));
	unsigned int cpu;

	while (now() < hostile_end) {
		for (cpu = 0; cpu < nr_cpus; cpu++) {
			if (!tails[cpu]) {
				void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					       MORPH_DEV_RING(cpu));
				if (p == MAP_FAILED)
					continue;
				tails[cpu] = p;
			}
			switch (random64() % 6) {
			case 0: tails[cpu]->tail = random64(); break;
			case 1: tails[cpu]->tail += random64() % ring_bytes; break;
			case 2: tails[cpu]->tail -= random64() % 64; break;
			case 3: tails[cpu]->tail = 0; break;
			case 4: memset(tails[cpu], random64(), PAGE); break;
			case 5:
				munmap(tails[cpu], PAGE);
				tails[cpu] = NULL;
				break;
			}
		}
		if (random64() % 64 == 0)
			sleep_ms(1);
	}
	return NULL;
}

static void *map_anywhere(void *arg)
{
	int fd = *(int *)arg;

	while (now() < hostile_end) {
		uint64_t page = random64() % (ring_bytes / PAGE + 4);
		uint64_t pages = 1 + random64() % (ring_bytes / PAGE + 4);
		uint64_t cpu = random64() % 8 ? random64() % nr_cpus : random64() >> 40;
		int prot = random64() % 8, flags = random64() % 4 ? MAP_SHARED : MAP_PRIVATE;
		off_t off = (off_t)((cpu << 32) + page * PAGE);
		volatile uint8_t *p;

		if (random64() % 64 == 0)
			off = (off_t)(random64() & ~(PAGE - 1)) & 0x7fffffffffffffff;
		p = mmap(NULL, pages * PAGE, prot, flags, fd, off);
		if (p == MAP_FAILED)
			continue;
		if (page && (prot & PROT_WRITE))
			die("records were mapped to be written: page %llu",
			    (unsigned long long)page);
		if (page && !mprotect((void *)p, PAGE, PROT_READ | PROT_WRITE))
			die("records were made to be written");
		if (page + pages > ring_bytes / PAGE + 2)
			die("%llu pages at page %llu were mapped", (unsigned long long)pages,
			    (unsigned long long)page);
		if (prot & PROT_READ) {
			(void)p[0];
			(void)p[pages * PAGE - 1];
		}
		if (random64() % 4 == 0)
			mremap((void *)p, pages * PAGE, (pages + 1) * PAGE, MREMAP_MAYMOVE);
		madvise((void *)p, pages * PAGE, random64() % 26);
		munmap((void *)p, pages * PAGE);
	}
	return NULL;
}

static void *read_badly(void *arg)
{
	int fd = *(int *)arg;
	char *page =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(page + PAGE, PAGE, PROT_NONE);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (now() < hostile_end) {
		size_t off = random64() % PAGE, room = random64() % (2 * PAGE);
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};

		if (read(fd, page + off, room) > (ssize_t)room)
			die("read() gave more than there is room for");
		if (random64() % 16 == 0)
			poll(&pollfd, 1, random64() % 5);
		if (random64() % 64 == 0)
			read(fd, (void *)(uintptr_t)random64(), PAGE);
	}
	return NULL;
}

static void *ask_anything(void *arg)
{
	int fd = *(int *)arg;
	uint64_t words[16];
	unsigned int i;

	while (now() < hostile_end) {
		unsigned int nr = random64() % 9, size = random64() % 64;
		unsigned long request = _IOC(random64() % 4, 'M', nr, size);
		static const unsigned long known[] = {
			MORPH_IOC_HELLO,  MORPH_IOC_START,   MORPH_IOC_STOP, MORPH_IOC_RATE,
			MORPH_IOC_COUNTS, MORPH_IOC_EXEC_ID, MORPH_IOC_SYNC, MORPH_IOC_REGISTERS,
		};

		for (i = 0; i < 16; i++)
			words[i] = random64() % 3 ? random64() % 8192 : random64();
		if (random64() % 4)
			request = known[random64() % 8];
		ioctl(fd, request, random64() % 8 ? (void *)words : (void *)(uintptr_t)random64());
		if (random64() % 4 == 0) {
			struct morph_start s = {
				.rate_hz = random64() % 5000,
				.mode = random64() % 2,
				.flags = random64() % 8,
				.wake_bytes = random64() % (2 * ring_bytes),
			};
			ioctl(fd, MORPH_IOC_START, &s);
		}
	}
	return NULL;
}

static _Noreturn void be_hostile(double seconds)
{
	void *(*const all[])(void *) = {write_rubbish, map_anywhere, read_badly, ask_anything,
					map_anywhere};
	const size_t nr = sizeof(all) / sizeof(all[0]);
	pthread_t threads[sizeof(all) / sizeof(all[0])];
	size_t i;

	open_patiently();
	hostile_end = now() + seconds;
	reader_start(&reader, 2000, -1, 0);
	for (i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, all[i], &reader.fd))
			die("pthread_create");
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	exit(0);
}

/* After a hostile reader, the device must work normally for others. */
static void outlive_hostile(double seconds)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		be_hostile(seconds);
	waitpid(pid, &status, 0);
	EXPECT(!status, "the hostile reader: %x", status);
	read_well(1, 1000, MORPH_MODE_HRTIMER, 0);
}

/* ---- die ---- */

static _Noreturn void live_until_killed(void)
{
	char buffer[4096];

	open_patiently();
	reader_start(&reader, 500 + random64() % 4000, random64() % 2, 0);
	reader_map(&reader);
	/* A child may keep the file and the mappings a moment longer. */
	if (random64() % 2 && !fork()) {
		sleep_ms(random64() % 50);
		_exit(0);
	}
	for (;;)
		if (read(reader.fd, buffer, sizeof(buffer)) < 0 && errno != EINTR)
			_exit(1);
}

static void keep_dying(double seconds)
{
	double end = now() + seconds;
	unsigned int nr = 0;
	int status;

	for (; now() < end; nr++) {
		pid_t pid = fork();

		if (!pid)
			live_until_killed();
		sleep_ms(20 + random64() % 200);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		EXPECT(WIFSIGNALED(status), "a reader ended by itself: %x", status);
	}
	printf("%u readers died\n", nr);
}

/* ---- load: events that the module must follow ---- */

static void *nothing(void *arg)
{
	return arg;
}

/* An exec by another thread than the first takes over the first thread's id. */
static void *exec_spin(void *self)
{
	execl(self, self, "spin", (char *)NULL);
	_exit(127);
}

static _Noreturn void load_once(char *self)
{
	const size_t size = 64 * PAGE;
	pthread_t thread;
	int fd, i;
	void *p;

	switch (random64() % 6) {
	case 0: execl("/bin/true", "true", (char *)NULL); _exit(127);
	case 1: exec_spin(self); break;
	case 2:
		fd = open(self, O_RDONLY);
		for (i = 0; i < 50; i++) {
			p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
			mprotect(p, PAGE, PROT_READ);
			mprotect(p, PAGE, PROT_READ | PROT_EXEC);
			munmap(p, PAGE);
		}
		break;
	case 3:
		for (i = 0; i < 10; i++)
			if (!pthread_create(&thread, NULL, nothing, NULL))
				pthread_join(thread, NULL);
		break;
	case 4:
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, 1, size);
		mprotect(p, size, PROT_READ | PROT_EXEC);
		break;
	case 5:
		if (!pthread_create(&thread, NULL, exec_spin, self))
			pthread_join(thread, NULL);
		break;
	}
	_exit(0);
}

static void make_load(char *self, double seconds)
{
	double end = now() + seconds;
	unsigned int nr = 0;

	for (; now() < end; nr++) {
		pid_t pid = fork();

		if (!pid)
			load_once(self);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	printf("%u processes\n", nr);
}

static void spin(void)
{
	volatile unsigned long i;

	for (i = 0; i < 200000; i++)
		;
}

/* ---- files that change while they are mapped ---- */

static atomic_bool rewriting = true;
static uint8_t *rewritten;

/* The sizes in the notes change all the time. */
static void *rewrite(void *arg)
{
	while (rewriting) {
		size_t at = 64 + random64() % 1024 / 4 * 4;
		uint32_t old;

		memcpy(&old, rewritten + at, 4);
		__atomic_store_n((uint32_t *)(rewritten + at), (uint32_t)random64(),
				 __ATOMIC_RELAXED);
		__atomic_store_n((uint32_t *)(rewritten + at), 0xfffffff0, __ATOMIC_RELAXED);
		__atomic_store_n((uint32_t *)(rewritten + at), old, __ATOMIC_RELAXED);
	}
	return arg;
}

static void rewrite_notes(double seconds)
{
	double end = now() + seconds;
	pthread_t threads[2];
	unsigned int nr = 0;
	int fd = memfd_create("notes", 0), own = open("/proc/self/exe", O_RDONLY);

	if (fd < 0 || ftruncate(fd, PAGE))
		die("memfd_create");
	rewritten = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rewritten == MAP_FAILED || read(own, rewritten, PAGE) != (ssize_t)PAGE)
		die("mmap");
	pthread_create(&threads[0], NULL, rewrite, NULL);
	pthread_create(&threads[1], NULL, rewrite, NULL);
	for (; now() < end || nr < 100; nr++) {
		void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			die("mmap");
		munmap(p, PAGE);
	}
	rewriting = false;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%u mappings of a changing file\n", nr);
}

/* ---- fail ---- */

/*
 * Makes the @nth allocation of this thread from now on fail; 0: none. Return: false if the last
 * failure did not occur.
 */
static bool fail_nth(unsigned int nth)
{
	static int fd = -1; /* opened while nothing fails */
	char path[64], text[16] = "";

	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth", syscall(SYS_gettid));
		fd = open(path, O_RDWR);
	}
	if (fd < 0)
		exit(SKIPPED);
	if (pread(fd, text, sizeof(text) - 1, 0) < 1)
		die("fail-nth");
	snprintf(path, sizeof(path), "%u", nth);
	if (pwrite(fd, path, strlen(path), 0) < 1)
		die("fail-nth");
	return text[0] == '0';
}

static void fail_allocations(void)
{
	unsigned int nth, failed = 0, unnoticed = 0;

	for (nth = 1; unnoticed < 20 && nth < 2000; nth++) {
		struct morph_start s = {.rate_hz = 1000};
		int ret, error;
		bool came;

		open_patiently();
		fail_nth(nth);
		ret = ioctl(reader.fd, MORPH_IOC_START, &s);
		error = errno;
		came = fail_nth(0);
		if (ret) {
			EXPECT(error == ENOMEM, "START, allocation %u failing: %s", nth,
			       strerror(error));
			failed++;
			/* START was undone completely: now it succeeds. */
			reader_start(&reader, 1000, -1, 0);
		}
		unnoticed = came ? 0 : unnoticed + 1;
		reader_map(&reader);
		reader_take(&reader);
		reader_close(&reader);
	}
	printf("START failed %u times, of %u\n", failed, nth - 1);
	EXPECT(failed, "no allocation failed");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 5;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "read"))
		read_well(seconds, argc > 3 ? atoi(argv[3]) : 0, argc > 4 ? atoi(argv[4]) : -1,
			  argc > 5 ? atoi(argv[5]) : 0);
	else if (!strcmp(what, "hostile"))
		outlive_hostile(seconds);
	else if (!strcmp(what, "die"))
		keep_dying(seconds);
	else if (!strcmp(what, "load"))
		make_load(argv[0], seconds);
	else if (!strcmp(what, "spin"))
		spin();
	else if (!strcmp(what, "notes"))
		rewrite_notes(seconds);
	else if (!strcmp(what, "fail"))
		fail_allocations();
	else
		die("stress: what?");
	return finish();
}
