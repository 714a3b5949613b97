// SPDX-License-Identifier: Apache-2.0
/*
 * states - the collectors that are active while works run: none, an empty timer, perf,
 * morphmon.
 *
 * Decides how each is set up and how its samples are counted. Checks its stream after each run.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kmod/uapi/morph_dev.h"
#include "tests/guest/cost/guest.h"

#define RATE 1024

/* ---- an empty timer ------------------------------------------------------ */

static void empty_begin(void)
{
	module_load("empty", "rate=1024");
	watch_module("empty");
}

static void empty_end(void)
{
	watch_forget();
	module_unload("empty");
}

/* ---- perf: what perf record -a opens ------------------------------------- */

#define PERF_PAGES 1024

static struct {
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t samples;
} perf;

static void perf_begin(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = RATE,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
	};

	perf.fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf.fd < 0)
		die("perf_event_open: %s", strerror(errno));
	perf.page =
		mmap(NULL, (PERF_PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, perf.fd, 0);
	if (perf.page == MAP_FAILED)
		die("perf: mmap: %s", strerror(errno));
	perf.samples = 0;
}

/* Counts the records in the ring and empties it. */
static uint64_t perf_samples(void)
{
	const char *data = (const char *)perf.page + 4096;
	uint64_t head = __atomic_load_n(&perf.page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = perf.page->data_tail;

	while (tail < head) {
		/* a record's size is a multiple of 8 bytes, so its header never wraps */
		const struct perf_event_header *header =
			(const void *)(data + tail % (PERF_PAGES * 4096UL));

		perf.samples += header->type == PERF_RECORD_SAMPLE;
		if (header->type == PERF_RECORD_LOST)
			die("perf: lost");
		tail += header->size;
	}
	__atomic_store_n(&perf.page->data_tail, tail, __ATOMIC_RELEASE);
	return perf.samples;
}

static void perf_end(void)
{
	munmap(perf.page, (PERF_PAGES + 1) * 4096);
	close(perf.fd);
}

/* ---- morphmon ------------------------------------------------------------ */

static struct {
	int fd;
	uint64_t bytes, samples, records;
	char buffer[65536];
} morph;

static void morph_ioctl(unsigned long request, void *arg, const char *name)
{
	if (ioctl(morph.fd, request, arg))
		die("%s: %s", name, strerror(errno));
}

static void idle_begin(void)
{
	module_load("morphmon", "ring_kib=8192") /* large, because nobody reads meanwhile */;
	watch_module("morphmon");
}

static void idle_end(void)
{
	watch_forget();
	module_unload("morphmon");
}

/* Asks for stacks, and gives the rows of this program, which the host made. */
static void ask_for_stacks(void)
{
	struct morph_segment segments[MORPH_ROWS_SEGMENTS_MAX];
	struct morph_rows rows = {.segments = (uintptr_t)segments};
	uint32_t depth = 127;
	const Elf64_Phdr *phdr = (const void *)getauxval(AT_PHDR);
	int fd = open("/init.rows", O_RDONLY | O_CLOEXEC);
	struct stat st, rows_st;
	void *bytes = MAP_FAILED;

	if (!stat("/init", &st) && !fstat(fd, &rows_st))
		bytes = mmap(NULL, rows_st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		die("/init.rows: %s", strerror(errno));
	for (uint64_t i = 0; i < getauxval(AT_PHNUM); i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_X)
			segments[rows.nr_segments++] = (struct morph_segment){
				phdr[i].p_offset, phdr[i].p_vaddr, phdr[i].p_filesz};
	rows.dev_major = major(st.st_dev);
	rows.dev_minor = minor(st.st_dev);
	rows.ino = st.st_ino;
	rows.bytes = (uintptr_t)bytes;
	rows.size = rows_st.st_size;
	morph_ioctl(MORPH_IOC_STACKS, &depth, "STACKS");
	morph_ioctl(MORPH_IOC_ROWS, &rows, "ROWS");
	munmap(bytes, rows_st.st_size);
	close(fd);
}

static void morph_begin(uint32_t mode, uint32_t registers, bool stacks)
{
	struct morph_hello hello = {.abi_major = MORPH_ABI_MAJOR};
	/* the same request as the service's */
	struct morph_start start = {.mode = mode, .flags = MORPH_START_MODE | MORPH_START_LAZY};

	idle_begin();
	morph.fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (morph.fd < 0)
		die("%s: %s", MORPH_DEV_PATH, strerror(errno));
	morph_ioctl(MORPH_IOC_HELLO, &hello, "HELLO");
	if (registers)
		morph_ioctl(MORPH_IOC_REGISTERS, &registers, "REGISTERS");
	if (stacks)
		ask_for_stacks();
	if (mode == MORPH_MODE_HRTIMER)
		start.rate_hz = RATE;
	morph_ioctl(MORPH_IOC_START, &start, "START");
	morph.bytes = morph.samples = morph.records = 0;
}

static void hrtimer_begin(void)
{
	morph_begin(MORPH_MODE_HRTIMER, 0, false);
}

static void tick_begin(void)
{
	morph_begin(MORPH_MODE_TICK, 0, false);
}

static void registers_begin(void)
{
	morph_begin(MORPH_MODE_HRTIMER, MORPH_REGS_PATHS, false);
}

static void flags_begin(void)
{
	morph_begin(MORPH_MODE_HRTIMER, MORPH_REGS_BRANCHES, false);
}

static void stacks_begin(void)
{
	morph_begin(MORPH_MODE_HRTIMER, 0, true);
}

/* Reads the stream to its end. */
static void morph_drain(void)
{
	ssize_t got;

	while ((got = read(morph.fd, morph.buffer, sizeof(morph.buffer))) > 0) {
		const char *p = morph.buffer, *end = p + got;

		while (p < end) {
			const struct morph_record *r = (const void *)p;

			if (r->size < sizeof(*r) || r->size > end - p)
				die("a record of %u bytes in the %zd left", r->size, end - p);
			if (r->type == MORPH_REC_LOST)
				die("morphmon: lost");
			else if (r->type == MORPH_REC_SAMPLES)
				morph.samples += (r->size - sizeof(struct morph_samples)) / 8;
			else if (r->type != MORPH_REC_PAD)
				morph.records++;
			morph.bytes += r->size;
			p += r->size;
		}
	}
	if (got < 0 && errno != EAGAIN)
		die("read: %s", strerror(errno));
}

static uint64_t morph_samples(void)
{
	struct morph_counts counts;

	morph_drain();
	morph_ioctl(MORPH_IOC_COUNTS, &counts, "COUNTS");
	if (counts.lost_samples || counts.lost_events)
		die("morphmon: lost");
	return counts.samples;
}

static void morph_end(void)
{
	struct morph_counts counts;

	morph_ioctl(MORPH_IOC_STOP, NULL, "STOP");
	morph_drain();
	morph_ioctl(MORPH_IOC_COUNTS, &counts, "COUNTS");
	say("stream %llu bytes, %llu samples, %llu other records; idle %llu, wakeups %llu",
	    (unsigned long long)morph.bytes, (unsigned long long)morph.samples,
	    (unsigned long long)morph.records, (unsigned long long)counts.idle,
	    (unsigned long long)counts.wakeups);
	if (counts.samples != morph.samples)
		die("%llu samples were taken", (unsigned long long)counts.samples);
	close(morph.fd);
	idle_end();
}

static void stacks_end(void)
{
	struct morph_walks w;

	morph_ioctl(MORPH_IOC_WALKS, &w, "WALKS");
	say("walks %llu, %llu frames, %llu read again, %llu complete, %llu busy", w.walks, w.frames,
	    w.read_again, w.stops[MORPH_STACK_BOTTOM], w.busy);
	if (w.stops[MORPH_STACK_BOTTOM] * 10 < w.walks * 9)
		die("%llu of %llu walks are complete", w.stops[MORPH_STACK_BOTTOM], w.walks);
	morph_end();
}

/* Real programs take long, so run them only in states where it matters. */
#define SMALL "loop,switch-futex,switch-pipe,sleep,fork,exec,exec-shared,mmap-exec,mmap"

#define ALL   SMALL ",gzip,sort,perl,cc1"

const struct state states[] = {
	{"none", ALL, NULL, NULL, NULL},
	{"empty", "loop", empty_begin, empty_end, NULL},
	{"perf", SMALL, perf_begin, perf_end, perf_samples},
	{"idle", SMALL, idle_begin, idle_end, NULL},
	{"hrtimer", ALL, hrtimer_begin, morph_end, morph_samples},
	{"tick", SMALL, tick_begin, morph_end, morph_samples},
	{"registers", "loop", registers_begin, morph_end, morph_samples},
	{"flags", "loop", flags_begin, morph_end, morph_samples},
	{"stacks", "loop,stack-10,stack-110,calls-10,calls-60", stacks_begin, stacks_end,
	 morph_samples},
	{NULL, NULL, NULL, NULL, NULL},
};
