// SPDX-License-Identifier: Apache-2.0
/*
 * cpus - tests CPUs that go offline and return while sampling, idle CPUs, and CPUs without a
 * tick.
 *
 *  cpus hotplug N    takes a CPU offline and back online, N times
 *  cpus idle    an idle CPU gets no more interrupts with the module than without
 *  cpus nohz    CPU 1, one of nohz_full: samples without its tick
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

static void set_online(bool on)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY);

	if (fd < 0 || write(fd, on ? "1" : "0", 1) != 1)
		die("CPU 1 %s", on ? "on" : "off");
	close(fd);
}

/* Waits until CPU @cpu has given @nr more samples. The limit is generous for slow machines. */
static void until(struct reader *r, int cpu, uint64_t nr, const char *what)
{
	uint64_t before = r->nr_by_cpu[cpu];
	int i;

	for (i = 0; i < 20000 && r->nr_by_cpu[cpu] < before + nr; i++) {
		reader_map(r);
		reader_take(r);
		sleep_ms(10);
	}
	EXPECT(r->nr_by_cpu[cpu] >= before + nr, "%s: %llu samples of CPU %d", what,
	       (unsigned long long)(r->nr_by_cpu[cpu] - before), cpu);
}

static void hotplug(int nr, int mode)
{
	struct morph_counts c;
	struct morph_hello h = {.abi_major = MORPH_ABI_MAJOR};
	struct reader r;
	uint64_t before;
	pid_t on_0, on_1;
	int i;

	/* First START with one CPU offline, which comes online later. */
	set_online(false);
	reader_open(&r);
	reader_start(&r, 4000, mode, 0);
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_HELLO, &h), 0);
	EXPECT(h.nr_rings == 1, "%u rings, with one CPU on", h.nr_rings);
	reader_map(&r);
	EXPECT(!r.rings[1].head, "a ring of a CPU that is off");
	set_online(true);
	EXPECT_ERRNO(ioctl(r.fd, MORPH_IOC_HELLO, &h), 0);
	EXPECT(h.nr_rings == 2, "%u rings, with two CPUs on", h.nr_rings);
	on_0 = spinner(0);
	for (i = 0; i < nr; i++) {
		on_1 = spinner(1);
		until(&r, 1, 100, "CPU 1 on");
		set_online(false);
		reader_take(&r);
		before = r.nr_by_cpu[1];
		until(&r, 0, 100, "CPU 1 off");
		EXPECT(r.nr_by_cpu[1] == before, "%llu samples of a CPU that is off",
		       (unsigned long long)(r.nr_by_cpu[1] - before));
		set_online(true);
		spinner_end(on_1);
	}
	/* STOP while a CPU is offline: its earlier samples are kept and counted. */
	on_1 = spinner(1);
	until(&r, 1, 100, "the last time");
	set_online(false);
	reader_stop(&r);
	set_online(true);
	sleep_ms(100);
	reader_take(&r);
	spinner_end(on_0);
	spinner_end(on_1);
	c = reader_counts(&r);
	EXPECT(c.samples == r.nr_samples + c.lost_samples && c.events == r.nr_events,
	       "%llu samples, %llu read, %llu lost; %llu events, %llu read", c.samples,
	       (unsigned long long)r.nr_samples, c.lost_samples, c.events,
	       (unsigned long long)r.nr_events);
	/* After another START, both CPUs give samples. */
	reader_start(&r, 4000, mode, 0);
	on_1 = spinner(1);
	until(&r, 1, 100, "after another START");
	reader_close(&r);
	spinner_end(on_1);
}

/* Return: timer interrupts of CPU 1 so far. */
static uint64_t interrupts(void)
{
	FILE *f = fopen("/proc/interrupts", "r");
	unsigned long long a, b = 0;
	char line[1024];

	if (!f)
		die("/proc/interrupts");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " LOC: %llu %llu", &a, &b) == 2)
			break;
	fclose(f);
	return b;
}

static uint64_t interrupts_in(long ms)
{
	uint64_t before = interrupts();

	sleep_ms(ms);
	return interrupts() - before;
}

static void idle(void)
{
	const long ms = 3000;
	uint64_t without, with, again, before, nr;
	struct reader r;
	long waited;
	cpu_set_t set;
	pid_t busy;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	busy = spinner(0);
	without = interrupts_in(ms);
	reader_open(&r);
	reader_start(&r, 4000, MORPH_MODE_HRTIMER, 0);
	before = interrupts();
	/* The busy CPU's samples show how often a timer fires here. */
	for (waited = 0; waited < ms || reader_counts(&r).samples < 2000; waited += 100)
		sleep_ms(100);
	with = interrupts() - before;
	nr = reader_counts(&r).samples;
	reader_stop(&r);
	again = interrupts_in(ms);
	if (again > without)
		without = again;
	without = without * waited / ms;
	printf("idle: %llu interrupts without, %llu with; %llu samples; %llu found it idle\n",
	       (unsigned long long)without, (unsigned long long)with, (unsigned long long)nr,
	       reader_counts(&r).idle);
	/* A timer that kept firing would cause as many interrupts as the busy CPU has samples. */
	EXPECT(with < 4 * without + nr / 10,
	       "an idle CPU is woken: %llu interrupts, %llu without, %llu samples of the other",
	       (unsigned long long)with, (unsigned long long)without, (unsigned long long)nr);
	spinner_end(busy);
	reader_close(&r);
}

/* The kernel's own housekeeping leaves some of Debian's 250 ticks a second. */
#define HOUSEKEEPING_HZ 100

/* Waits until CPU 1 runs without its tick. Return: interrupts in @ms. */
static uint64_t without_tick(long ms)
{
	uint64_t nr = interrupts_in(ms);
	int i;

	for (i = 0; i < 20 && nr >= (uint64_t)(HOUSEKEEPING_HZ * ms / 1000); i++)
		nr = interrupts_in(ms);
	return nr;
}

/*
 * A nohz_full CPU has no tick while it runs a single program. Sampling must neither need the
 * tick nor bring it back.
 */
static void nohz(void)
{
	const uint64_t nr_wanted = 1000;
	const long ms = 3000;
	uint64_t without, with, after, nr;
	pid_t busy = spinner(1);
	struct reader r;
	long waited;

	without = without_tick(ms);
	EXPECT(without < HOUSEKEEPING_HZ * ms / 1000, "its tick goes on: %llu interrupts",
	       (unsigned long long)without);
	reader_open(&r);
	reader_start(&r, 1000, MORPH_MODE_HRTIMER, 0);
	reader_map(&r);
	with = interrupts();
	for (waited = 0; waited < ms || r.nr_by_cpu[1] < nr_wanted; waited += 100) {
		sleep_ms(100);
		reader_take(&r);
	}
	with = interrupts() - with;
	reader_stop(&r);
	reader_take(&r);
	nr = r.nr_by_cpu[1];
	after = without_tick(ms);
	printf("nohz: %llu interrupts without, %llu with and %llu samples, %llu after\n",
	       (unsigned long long)without, (unsigned long long)with, (unsigned long long)nr,
	       (unsigned long long)after);
	EXPECT(with < nr + HOUSEKEEPING_HZ * waited / 1000, "%llu interrupts for %llu samples",
	       (unsigned long long)with, (unsigned long long)nr);
	EXPECT(after < HOUSEKEEPING_HZ * ms / 1000, "its tick is back: %llu interrupts",
	       (unsigned long long)after);
	spinner_end(busy);
	reader_close(&r);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "hotplug") && argc > 2) {
		hotplug(atoi(argv[2]), MORPH_MODE_HRTIMER);
		hotplug(1, MORPH_MODE_TICK);
	} else if (!strcmp(what, "idle")) {
		idle();
	} else if (!strcmp(what, "nohz")) {
		nohz();
	} else {
		return 2;
	}
	return finish();
}
