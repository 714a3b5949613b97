// SPDX-License-Identifier: Apache-2.0
/* perf_event - opens events and reads their rings; see perf_event.h. */
#include "daemon/source/perf_event.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/source/perf_stack.h"

#define PROBE_NS UINT64_C(1000000000) /* time between two checks whether events are alive */

/*
 * Data pages of a ring. An ordinary user gets 128 and the control page per CPU: that is the
 * limit of kernel.perf_event_mlock_kb (516).
 */
#define RING_PAGES_ROOT	  256
#define RING_PAGES_USER	  128
#define RING_PAGES_STACKS 1024 /* of a command, where nothing limits them: 255 copies of stacks */
#define RING_PAGES_MIN	  8
#define RING_PAGES_EVENTS 64 /* without samples */
/*
 * Wake the reader when a ring is a quarter full. The reader polls every 0.1 to 0.25 s anyway,
 * and a wakeup costs as much as about a thousand samples. The free part lasts three times as
 * long as the filled one took.
 */
#define WATERMARK_PART 4

/* Since Linux 6.0; older headers lack it. */
#define FORMAT_LOST (1U << 4)

struct choice {
	const char *event, *why;
	uint32_t type;
	uint64_t config;
	uint32_t rate_hz; /* default rate */
	bool branches;
};

/*
 * The interrupt of a hardware counter is cheap. In a virtual machine without counters, each
 * tick of the CPU clock takes about 15 microseconds, so its default rate is low.
 */
static const struct choice choices[] = {
	{"cycles", "hardware cycles with branch stacks", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CPU_CYCLES, 1024, true},
	{"cycles", "hardware cycles; the processor offers no branch stacks", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CPU_CYCLES, 1024, false},
	{"cpu-clock", "the CPU clock; the machine offers no hardware counters", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_CPU_CLOCK, 256, false},
};

/* Counts nothing, and so needs no right to see the kernel. */
static const struct choice no_clock = {"dummy", "",   PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY,
				       0,	false};

static void set_attr(struct perf_event_attr *attr, const struct choice *choice, uint32_t rate_hz,
		     const struct md_perf_request *request, bool no_kernel, bool lost)
{
	bool is_command = request->command != 0;
	bool has_mappings = request->content != MD_PERF_SAMPLES;
	bool has_processes = has_mappings && request->content != MD_PERF_MAPPINGS;

	*attr = (struct perf_event_attr){
		.type = choice->type,
		.size = sizeof(*attr),
		.config = choice->config,
		.freq = rate_hz != 0,
		.sample_freq = rate_hz,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | (lost ? FORMAT_LOST : 0),
		.disabled = 1,
		.inherit = is_command,
		.enable_on_exec = is_command,
		.exclude_hv = 1,
		.exclude_idle = 1,
		.exclude_kernel = no_kernel,
		.sample_id_all = 1,
		/*
		 * Do not set attr.build_id: while a system-wide event has it, `perf record` of
		 * other users fails. Build-ids are read from the files.
		 */
		.mmap = has_mappings,
		.mmap2 = has_mappings,
		.comm = has_processes,
		.comm_exec = has_processes,
		.task = has_processes,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
	};
	if (choice->branches) {
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	}
	md_perf_ask_for_stack(attr, request->registers, request->stacks);
}

static int open_event(const struct perf_event_attr *attr, pid_t command, int cpu)
{
	return syscall(SYS_perf_event_open, attr, command ? command : -1, cpu, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

static int read_setting(const char *name, int otherwise)
{
	int value = otherwise;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	f = fopen(path, "re");
	if (!f)
		return otherwise;
	if (fscanf(f, "%d", &value) != 1)
		value = otherwise;
	fclose(f);
	return value;
}

static bool is_capable(int cap)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	return !syscall(SYS_capget, &header, caps) && caps[cap / 32].effective & (1u << cap % 32);
}

static int refuse(pid_t command, int code, struct mp_err *err)
{
	int paranoid = read_setting("perf_event_paranoid", 2);

	if (code == ENOSYS)
		return mp_err_set(err, code, "this kernel has no perf_event_open");
	if (code != EACCES && code != EPERM)
		return mp_err_set(err, code, "perf_event_open: %s", strerror(code));
	/* Up to 2, users may sample their own processes unless a sandbox forbids it. */
	if (command && paranoid <= 2)
		return mp_err_set(
			err, EACCES,
			"sampling is forbidden here (kernel.perf_event_paranoid is %d and "
			"would allow it): a container or sandbox blocks perf_event_open",
			paranoid);
	/* Debian's value 3 requires more capabilities than a service should have. */
	if (!command && paranoid > 2 && is_capable(CAP_PERFMON) && !is_capable(CAP_SYS_ADMIN))
		return mp_err_set(
			err, EACCES,
			"sampling the whole system is not allowed, CAP_PERFMON or not "
			"(kernel.perf_event_paranoid is %d): as root run `sysctl "
			"kernel.perf_event_paranoid=2`, or install morphmon-dkms, the kernel "
			"module",
			paranoid);
	return mp_err_set(err, EACCES,
			  "sampling %s is not allowed (kernel.perf_event_paranoid is %d): as root "
			  "run `sysctl kernel.perf_event_paranoid=%d`, or run morphd as root",
			  command ? "your own programs" : "the whole system", paranoid,
			  command ? 2 : 0);
}

/* Finds the event to use by trying each on the first online CPU. */
static int choose(const struct md_perf_request *request, struct md_perf_events *out,
		  struct mp_err *err)
{
	struct perf_event_attr *attr = &out->attr;
	uint32_t cpu = md_cpus_first(&out->online);
	uint32_t max_hz = read_setting("perf_event_max_sample_rate", INT32_MAX);
	uint32_t asked_hz = request->rate_hz, rate_hz;
	bool is_events = request->content == MD_PERF_EVENTS,
	     no_kernel = request->no_kernel || is_events;
	const struct choice *first = is_events ? &no_clock : choices, *choice;
	size_t i = 0, nr = is_events ? 1 : sizeof(choices) / sizeof(choices[0]);
	pid_t command = request->command;
	bool lost = true;
	int fd, code = EINVAL;

	while (i < nr) {
		choice = &first[i];
		rate_hz = asked_hz ? asked_hz : choice->rate_hz;
		if (rate_hz > max_hz)
			rate_hz = max_hz;
		if (choice->branches && request->content == MD_PERF_MAPPINGS) {
			i++;
			continue;
		}
		set_attr(attr, choice, rate_hz, request, no_kernel, lost);
		fd = open_event(attr, command, cpu);
		if (fd >= 0) {
			close(fd);
			out->has_branches = choice->branches;
			out->has_kernel = !no_kernel;
			out->rate_hz = rate_hz;
			snprintf(out->event, sizeof(out->event), "%s%s", choice->event,
				 no_kernel ? ":u" : "");
			snprintf(out->why, sizeof(out->why), "%s%s%s", choice->why,
				 no_kernel ? "; user code only" : "",
				 rate_hz < asked_hz ? "; rate cut to perf_event_max_sample_rate"
						    : "");
			return 0;
		}
		code = errno;
		if ((code == EACCES || code == EPERM) && !no_kernel) {
			/* Sampling the kernel needs more rights: try without. */
			no_kernel = true;
			continue;
		}
		if (code == EACCES || code == EPERM || code == ENOSYS || code == EMFILE)
			return refuse(command, code, err);
		if (lost && code == EINVAL && i + 1 == nr) {
			lost = false;
			i = 0;
			continue;
		}
		i++;
	}
	return refuse(command, code, err);
}

static int map_ring(struct md_perf_ring *ring, size_t pages, struct mp_err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *map;

	ring->map_size = (pages + 1) * page;
	map = mmap(NULL, ring->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		return mp_err_set(err, errno, "cannot map a ring of CPU %u: %s%s", ring->cpu,
				  strerror(errno),
				  errno == EPERM ? " (kernel.perf_event_mlock_kb is used up)" : "");
	ring->page = map;
	ring->data = (uint8_t *)map + page;
	ring->mask = pages * page - 1;
	return 0;
}

static int attach(const struct md_perf_ring *ring, int prog_fd, struct mp_err *err)
{
	if (!ioctl(ring->fd, PERF_EVENT_IOC_SET_BPF, prog_fd))
		return 0;
	return mp_err_set(err, errno, "cannot attach a program to CPU %u: %s", ring->cpu,
			  strerror(errno));
}

static int switch_ring(const struct md_perf_ring *ring, bool on, struct mp_err *err)
{
	if (!ioctl(ring->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return 0;
	return mp_err_set(err, errno, "cannot %s sampling CPU %u: %s", on ? "start" : "stop",
			  ring->cpu, strerror(errno));
}

static void close_ring(struct md_perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->map_size);
	if (ring->fd >= 0)
		close(ring->fd);
	free(ring->wrapped);
	*ring = (struct md_perf_ring){.fd = -1};
}

/* Return: 0; -EPERM or -ENOMEM: a smaller ring may work; -ENODEV: the CPU is offline; -errno. */
static int try_ring(struct md_perf_events *events, struct md_perf_ring *ring, uint32_t cpu,
		    size_t pages, struct mp_err *err)
{
	int ret;

	*ring = (struct md_perf_ring){.cpu = cpu};
	events->attr.wakeup_watermark = pages * sysconf(_SC_PAGESIZE) / WATERMARK_PART;
	ring->fd = open_event(&events->attr, events->command, cpu);
	if (ring->fd < 0)
		return errno == ENODEV ? -ENODEV : refuse(events->command, errno, err);
	ret = map_ring(ring, pages, err);
	if (!ret && events->prog_fd >= 0)
		ret = attach(ring, events->prog_fd, err);
	if (!ret && events->is_on)
		ret = switch_ring(ring, true, err);
	if (ret)
		close_ring(ring);
	return ret;
}

/* Opens a ring of the wanted size, or the largest possible one. Return: as try_ring(). */
static int open_ring(struct md_perf_events *events, struct md_perf_ring *ring, uint32_t cpu,
		     struct mp_err *err)
{
	size_t pages = events->ring_pages;
	int ret;

	do {
		ret = try_ring(events, ring, cpu, pages, err);
		pages /= 2;
	} while ((ret == -EPERM || ret == -ENOMEM) && pages >= RING_PAGES_MIN);
	return ret;
}

/*
 * A command's events are opened for offline CPUs too. Events of the whole machine are opened
 * when a CPU comes online.
 */
static int open_rings(struct md_perf_events *events, struct mp_err *err)
{
	uint32_t end = events->command ? sysconf(_SC_NPROCESSORS_CONF) : events->max_rings, cpu;
	bool all = events->command || !events->online.text[0];
	int ret;

	for (cpu = 0; cpu < end; cpu++) {
		if (!all && !md_cpus_has(&events->online, cpu))
			continue;
		ret = open_ring(events, &events->rings[events->nr_rings], cpu, err);
		if (!ret)
			events->nr_rings++;
		else if (ret != -ENODEV)
			return ret;
	}
	return 0;
}

/* A process that may sample the whole system is a service, and limits its memory itself. */
static size_t choose_pages(const struct md_perf_request *request)
{
	if (request->content >= MD_PERF_EVENTS)
		return RING_PAGES_EVENTS;
	if (!request->command)
		return RING_PAGES_ROOT;
	if (geteuid())
		return RING_PAGES_USER;
	return request->stacks ? RING_PAGES_STACKS : RING_PAGES_ROOT;
}

int md_perf_events_open(const struct md_perf_request *request, struct md_perf_events *out,
			struct mp_err *err)
{
	struct md_cpu_list possible = {""};
	int fd = md_cpus_open("possible"), ret;

	memset(out, 0, sizeof(*out));
	out->command = request->command;
	out->prog_fd = -1;
	out->ring_pages = choose_pages(request);
	out->max_rings = sysconf(_SC_NPROCESSORS_CONF);
	if (md_cpus_read(fd, &possible) && md_cpus_end(&possible) > out->max_rings)
		out->max_rings = md_cpus_end(&possible);
	if (fd >= 0)
		close(fd);
	out->online_fd = md_cpus_open("online");
	md_cpus_read(out->online_fd, &out->online);
	ret = choose(request, out, err);
	if (ret)
		goto fail;
	out->rings = calloc(out->max_rings, sizeof(*out->rings));
	if (out->rings)
		ret = open_rings(out, err);
	else
		ret = mp_err_set(err, ENOMEM, "no memory for %u rings", out->max_rings);
	if (ret)
		goto fail;
	return 0;
fail:
	md_perf_events_close(out);
	return ret;
}

void md_perf_events_close(struct md_perf_events *events)
{
	uint32_t i;

	for (i = 0; i < events->nr_rings; i++)
		close_ring(&events->rings[i]);
	free(events->rings);
	if (events->online_fd > 0)
		close(events->online_fd);
	memset(events, 0, sizeof(*events));
}

int md_perf_events_switch(struct md_perf_events *events, bool on, struct mp_err *err)
{
	uint32_t i;
	int ret;

	for (i = 0; i < events->nr_rings; i++) {
		ret = events->rings[i].is_off ? 0 : switch_ring(&events->rings[i], on, err);
		if (ret)
			return ret;
	}
	events->is_on = on;
	return 0;
}

int md_perf_events_attach(struct md_perf_events *events, int prog_fd, struct mp_err *err)
{
	uint32_t i;
	int ret;

	events->prog_fd = prog_fd;
	for (i = 0; i < events->nr_rings; i++) {
		ret = attach(&events->rings[i], prog_fd, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- CPUs that come and go ---------------------------------------------------------------- */

/*
 * The event of a CPU that went offline is dead, and stays dead when the CPU returns. If both
 * happened between two checks, the event's enabled time does not advance.
 */
static bool is_dead(struct md_perf_ring *ring)
{
	uint64_t values[3], before = ring->enabled_ns;

	if (read(ring->fd, values, sizeof(values)) < (ssize_t)(2 * sizeof(values[0])))
		return false;
	ring->enabled_ns = values[1];
	return before && values[1] == before;
}

static struct md_perf_ring *ring_of(struct md_perf_events *events, uint32_t cpu)
{
	uint32_t i;

	for (i = 0; i < events->nr_rings; i++)
		if (events->rings[i].cpu == cpu)
			return &events->rings[i];
	return NULL;
}

/* Opens an event on a CPU that has none, or a dead one. Return: 0, -EAGAIN: not yet, -errno. */
static int renew(struct md_perf_events *events, uint32_t cpu, struct mp_err *err)
{
	struct md_perf_ring *ring = ring_of(events, cpu), fresh;
	uint64_t lost = 0;
	int ret;

	if (!ring && events->nr_rings == events->max_rings)
		return 0;
	if (ring) {
		/* First read what the old event wrote. */
		md_perf_ring_refresh(ring);
		if (ring->tail != ring->head)
			return -EAGAIN;
		md_perf_ring_lost(ring, &lost);
	}
	ret = open_ring(events, &fresh, cpu, err);
	if (ret)
		return ret == -ENODEV ? -EAGAIN : ret;
	if (ring)
		close_ring(ring);
	else
		ring = &events->rings[events->nr_rings++];
	*ring = fresh;
	ring->is_new = true;
	ring->lost_before = lost;
	return 0;
}

int md_perf_events_follow(struct md_perf_events *events, bool *missed, struct mp_err *err)
{
	uint64_t now = mp_now_ns();
	bool probe = events->is_on && now - events->probe_ns >= PROBE_NS;
	struct md_perf_ring *ring;
	uint32_t cpu, end;
	int ret = 0;

	*missed = false;
	if (events->command)
		return 0;
	if (!md_cpus_read(events->online_fd, &events->online) && !probe)
		return 0;
	if (!events->online.text[0])
		return 0; /* the list is not known */
	if (probe)
		events->probe_ns = now;
	end = md_cpus_end(&events->online);
	for (cpu = 0; cpu < events->nr_rings; cpu++)
		events->rings[cpu].is_off |= !md_cpus_has(&events->online, events->rings[cpu].cpu);
	for (cpu = 0; cpu < end && !ret; cpu++) {
		if (!md_cpus_has(&events->online, cpu))
			continue;
		ring = ring_of(events, cpu);
		if (ring && !ring->is_off && !(probe && is_dead(ring)))
			continue;
		*missed = true;
		ret = renew(events, cpu, err);
		if (ret != -EAGAIN)
			continue;
		/* Try again at the next call. */
		events->online.text[0] = 0;
		if (ring)
			ring->is_off = true;
		ret = 0;
	}
	return ret;
}

bool md_perf_has_branches(void)
{
	const struct md_perf_request request = {.no_kernel = true};
	struct perf_event_attr attr;
	int fd;

	set_attr(&attr, &choices[0], 1, &request, true, false);
	fd = open_event(&attr, getpid(), -1);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool md_perf_allows_all(void)
{
	const struct md_perf_request request = {.no_kernel = true};
	/* Every machine has the event "CPU clock". */
	const struct choice *clock = &choices[sizeof(choices) / sizeof(choices[0]) - 1];
	struct md_cpu_list online = {""};
	struct perf_event_attr attr;
	int fd = md_cpus_open("online");

	if (fd >= 0) {
		md_cpus_read(fd, &online);
		close(fd);
	}
	set_attr(&attr, clock, 1, &request, true, false);
	fd = open_event(&attr, 0, (int)md_cpus_first(&online));
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

void md_perf_ring_refresh(struct md_perf_ring *ring)
{
	/* Pairs with the kernel's barrier between data and data_head. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *md_perf_ring_peek(struct md_perf_ring *ring)
{
	const struct perf_event_header *record;
	size_t at = ring->tail & ring->mask, size = ring->mask + 1;
	uint8_t *copy;

	if (ring->head - ring->tail < sizeof(*record))
		return NULL;
	/* Records are 8-aligned, so a header never wraps around. */
	record = (const void *)(ring->data + at);
	if (record->size < sizeof(*record) || record->size > ring->head - ring->tail) {
		ring->tail = ring->head; /* malformed, which never happens: skip everything */
		return NULL;
	}
	if (at + record->size <= size)
		return record;
	if (ring->wrapped_size < record->size) {
		copy = realloc(ring->wrapped, 65536);
		if (!copy)
			return NULL;
		ring->wrapped = copy;
		ring->wrapped_size = 65536;
	}
	memcpy(ring->wrapped, record, size - at);
	memcpy(ring->wrapped + (size - at), ring->data, record->size - (size - at));
	return (const void *)ring->wrapped;
}

void md_perf_ring_advance(struct md_perf_ring *ring, const struct perf_event_header *record)
{
	ring->tail += record->size;
}

void md_perf_ring_release(struct md_perf_ring *ring)
{
	/* Pairs with the kernel's read of data_tail before it overwrites the data. */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

bool md_perf_ring_lost(const struct md_perf_ring *ring, uint64_t *nr)
{
	uint64_t values[3]; /* value, time enabled, lost */

	if (read(ring->fd, values, sizeof(values)) != sizeof(values))
		return false;
	*nr = values[2] + ring->lost_before;
	return true;
}
