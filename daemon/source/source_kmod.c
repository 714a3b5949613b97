// SPDX-License-Identifier: Apache-2.0
/*
 * source_kmod - gets samples and events from the kernel module, through /dev/morphmon.
 *
 * Decides when to read the rings and when to scan /proc. kmod_merge interprets and orders the
 * records. The module says up to which time the rings are complete. Only that part is given
 * out, so that no mapping arrives after its samples.
 */
#include "libprof/base/clock.h"
#include "daemon/source/quiet.h"
#include "daemon/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/source/kmod_merge.h"
#include "daemon/source/kmod_request.h"
#include "daemon/source/kmod_rows.h"
#include "daemon/source/proc_scan.h"
#include "kmod/uapi/morph_dev.h"

#define SCAN_PAUSE_NS UINT64_C(1000000000) /* between two scans of all of /proc */
#define CPUS_MAX      65536
#define SPIN_PAUSE_MS 10

struct kmod {
	struct md_source source;
	struct md_kmod_merge merge;
	struct md_recfile_info info;
	struct morph_hello hello;
	struct morph_start start;
	int fd;
	size_t page_bytes;
	/* by CPU: start of its mapped tail, which the rest of the ring follows; NULL: no ring */
	void **maps;
	pid_t command;
	int quiet_ms;	       /* the last quiet wait */
	bool is_on;	       /* the module is collecting */
	bool more;	       /* a batch was full: the rings hold more of this round */
	bool was_empty;	       /* the last round gave nothing */
	bool reported_missing; /* samples that were taken but never seen were reported */
	uint64_t limit_ns, last_scan_ns;
};

static int fail(int code, const char *what, struct mp_err *err)
{
	return mp_err_set(err, code, MORPH_DEV_PATH ": %s: %s", what, strerror(code));
}

/* ---- the device ---------------------------------------------------------------------------- */

static size_t ring_map_bytes(const struct kmod *k)
{
	return 2 * k->page_bytes + k->hello.ring_bytes;
}

/* Maps tail and ring next to each other, so that one address stands for both. */
static int map_ring(struct kmod *k, uint32_t cpu)
{
	size_t page = k->page_bytes;
	uint8_t *room =
		mmap(NULL, ring_map_bytes(k), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int code;

	if (room == MAP_FAILED)
		return -errno;
	if (mmap(room, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, k->fd,
		 MORPH_DEV_RING(cpu)) == MAP_FAILED ||
	    mmap(room + page, page + k->hello.ring_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, k->fd,
		 MORPH_DEV_RING(cpu) + page) == MAP_FAILED) {
		code = errno;
		munmap(room, ring_map_bytes(k));
		return -code;
	}
	k->maps[cpu] = room;
	return 0;
}

static int add_ring(struct kmod *k, uint32_t cpu, struct mp_err *err)
{
	uint8_t *map = k->maps[cpu];
	struct md_kmod_ring ring;
	int ret;

	ret = md_kmod_ring_init(&ring, (struct morph_tail *)map,
				(const struct morph_head *)(map + k->page_bytes),
				map + 2 * k->page_bytes, k->hello.ring_bytes, err);
	if (ret)
		return ret;
	return md_kmod_merge_add_ring(&k->merge, &ring) ? mp_err_set(err, ENOMEM, "out of memory")
							: 0;
}

/* Maps rings that are not mapped yet: all at the start, later those of CPUs that came online. */
static int map_rings(struct kmod *k, struct mp_err *err)
{
	int ret = 0, refused = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < k->hello.nr_cpu_ids && k->merge.nr_rings < k->hello.nr_rings; cpu++) {
		if (k->maps[cpu])
			continue;
		ret = map_ring(k, cpu);
		if (ret == -ENXIO)
			continue; /* this CPU has no ring */
		if (ret)
			refused = -ret;
		else if ((ret = add_ring(k, cpu, err)))
			return ret;
	}
	if (k->merge.nr_rings >= k->hello.nr_rings)
		return 0;
	return fail(refused ? refused : ENXIO, "a CPU's ring cannot be mapped", err);
}

/* A CPU that comes online gets its ring before anything runs on it. */
static int map_new_rings(struct kmod *k, struct mp_err *err)
{
	struct morph_hello now = {.abi_major = MORPH_ABI_MAJOR};
	int ret = md_kmod_request(k->fd, MORPH_IOC_HELLO, &now);

	if (ret)
		return fail(-ret, "cannot ask for its rings", err);
	if (now.nr_rings <= k->hello.nr_rings || now.nr_rings > k->hello.nr_cpu_ids)
		return 0;
	k->hello.nr_rings = now.nr_rings;
	return map_rings(k, err);
}

static int open_device(struct kmod *k, struct mp_err *err)
{
	struct morph_hello *hello = &k->hello;
	int ret;

	if (!md_proc_is_whole())
		return mp_err_set(err, ENOTSUP, "morphd runs in a PID namespace");
	k->fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC);
	if (k->fd < 0 && errno == ENOENT)
		return mp_err_set(err, ENOENT, "no " MORPH_DEV_PATH ": morphmon.ko is not loaded");
	if (k->fd < 0 && errno == EBUSY)
		return mp_err_set(err, EBUSY, MORPH_DEV_PATH " is in use by another reader");
	if (k->fd < 0 && (errno == EACCES || errno == EPERM))
		return mp_err_set(err, errno,
				  MORPH_DEV_PATH ": only its owner and root may open it");
	if (k->fd < 0)
		return fail(errno, "cannot open", err);
	*hello = (struct morph_hello){.abi_major = MORPH_ABI_MAJOR, .abi_minor = MORPH_ABI_MINOR};
	ret = md_kmod_request(k->fd, MORPH_IOC_HELLO, hello);
	if (ret == -EPROTO)
		return mp_err_set(err, EPROTO,
				  "morphmon.ko speaks record format %u.%u, this morphd %u.%u",
				  hello->abi_major, hello->abi_minor, MORPH_ABI_MAJOR,
				  MORPH_ABI_MINOR);
	if (ret)
		return fail(-ret, "no answer", err);
	if (!hello->nr_cpu_ids || hello->nr_cpu_ids > CPUS_MAX || hello->ring_bytes > UINT32_MAX)
		return mp_err_set(err, EBADMSG, MORPH_DEV_PATH ": its answer makes no sense");
	k->maps = calloc(hello->nr_cpu_ids, sizeof(k->maps[0]));
	return k->maps ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

static int get_exec_id(void *arg, pid_t pid, uint32_t *exec_id)
{
	const struct kmod *k = arg;
	struct morph_exec_id id = {.tgid = pid};
	int ret = md_kmod_request(k->fd, MORPH_IOC_EXEC_ID, &id);

	*exec_id = id.exec_id;
	return ret;
}

static int switch_on(struct kmod *k, struct mp_err *err)
{
	int ret = k->is_on ? 0 : md_kmod_request(k->fd, MORPH_IOC_START, &k->start);

	if (ret)
		return fail(-ret, "cannot start", err);
	k->is_on = true;
	return 0;
}

static int switch_off(struct kmod *k, struct mp_err *err)
{
	int ret = k->is_on ? md_kmod_request(k->fd, MORPH_IOC_STOP, NULL) : 0;

	if (ret)
		return fail(-ret, "cannot stop", err);
	k->is_on = false;
	return 0;
}

static int get_counts(struct kmod *k, struct morph_counts *counts, struct mp_err *err)
{
	int ret = md_kmod_request(k->fd, MORPH_IOC_COUNTS, counts);

	return ret ? fail(-ret, "cannot count", err) : 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void kmod_close(struct md_source *source)
{
	struct kmod *k = (struct kmod *)source;
	uint32_t cpu;

	if (!k)
		return;
	for (cpu = 0; k->maps && cpu < k->hello.nr_cpu_ids; cpu++)
		if (k->maps[cpu])
			munmap(k->maps[cpu], ring_map_bytes(k));
	free(k->maps);
	md_kmod_merge_fini(&k->merge);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

/*
 * Scans /proc. @whole: also for processes from before collecting began, so that the stream
 * starts with them.
 */
static int scan(struct kmod *k, bool whole, struct mp_err *err)
{
	const struct md_proc_ids ids = {get_exec_id, k};
	struct morph_counts counts;
	int ret;

	ret = get_counts(k, &counts, err);
	if (ret)
		return ret;
	k->last_scan_ns = mp_now_ns();
	md_kmod_merge_begin_scan(&k->merge, whole ? 0 : k->last_scan_ns, counts.lost_events);
	ret = md_proc_scan(k->command, 0, &ids, &k->merge.scan);
	if (!ret)
		ret = md_kmod_merge_end_scan(&k->merge, mp_now_ns());
	return ret ? mp_err_set(err, -ret, "/proc: %s", strerror(-ret)) : 0;
}

static bool has_flags(const struct kmod *k)
{
	return k->hello.abi_minor >= 12;
}

static void describe(struct kmod *k, const struct md_source_config *config)
{
	const struct morph_hello *hello = &k->hello;
	bool is_tick = hello->mode == MORPH_MODE_TICK;

	k->source.has_kernel = hello->has_kernel && !config->no_kernel;
	k->source.kernel_base = MORPH_KERNEL_BASE;
	k->source.fixed_hz = is_tick ? hello->tick_hz : 0;
	k->info.start_ns = mp_now_ns();
	k->info.start_s = time(NULL);
	k->info.rate_hz = is_tick	     ? hello->tick_hz
			  : k->start.rate_hz ? k->start.rate_hz
					     : hello->rate_hz;
	snprintf(k->info.collector, sizeof(k->info.collector), "kmod");
	snprintf(k->info.event, sizeof(k->info.event), "%s%s", is_tick ? "tick" : "hrtimer",
		 k->source.has_kernel ? "" : ":u");
	snprintf(k->info.why, sizeof(k->info.why), "%s%s%s",
		 is_tick ? "morphmon at the kernel's tick" : "morphmon with timers of its own",
		 config->no_kernel || hello->has_kernel
			 ? ""
			 : "; where the kernel's code lies is not known",
		 has_flags(k) || !(config->registers >> MORPH_REG_FLAGS)
			 ? ""
			 : "; registers without flags, which came with record format 1.12");
}

static int ask_for_registers(const struct kmod *k, uint32_t registers, struct mp_err *err)
{
	int ret;

	/* Fewer ways of branches are known without flags: no reason to fail. */
	if (!has_flags(k))
		registers &= ~(1U << MORPH_REG_FLAGS);

	if (k->hello.abi_minor < 4)
		return mp_err_set(err, ENOTSUP,
				  "morphmon.ko speaks record format %u.%u, registers came with 1.4",
				  k->hello.abi_major, k->hello.abi_minor);
	ret = md_kmod_request(k->fd, MORPH_IOC_REGISTERS, &registers);
	if (ret == -EPERM)
		return mp_err_set(err, EPERM,
				  MORPH_DEV_PATH ": registers can hold secrets of any program: "
						 "CAP_PERFMON is needed");
	return ret ? fail(-ret, "cannot ask for registers", err) : 0;
}

/*
 * Assumed to be enough for one stack, with what morphd does with it: some twenty callers read again
 * and a few new ones.
 */
#define STACK_COST_NS 3000

/* Stacks that are taken only if they cost little are no reason to fail. */
static int ask_for_stacks(struct kmod *k, const struct md_source_config *config, struct mp_err *err)
{
	uint32_t rate_hz = k->hello.mode == MORPH_MODE_TICK ? k->hello.tick_hz
			   : k->start.rate_hz		    ? k->start.rate_hz
							    : k->hello.rate_hz;
	int ret;

	if (!md_source_wants_stacks(config->stacks, rate_hz, STACK_COST_NS))
		return 0;
	ret = md_kmod_rows_ask(k->fd, k->hello.abi_minor, err);
	k->source.has_stacks = !ret;
	return config->stacks == MD_STACKS_YES ? ret : 0;
}

static int kmod_open(const struct md_source_config *config, struct md_source **out,
		     struct mp_err *err)
{
	struct kmod *k = calloc(1, sizeof(*k));
	uint32_t exec_id = 0;
	int ret;

	if (!k)
		return mp_err_set(err, ENOMEM, "out of memory");
	k->source.ops = &md_source_kmod;
	k->fd = -1;
	k->page_bytes = sysconf(_SC_PAGESIZE);
	k->command = config->command;
	ret = open_device(k, err);
	if (!ret && k->command) {
		ret = get_exec_id(k, k->command, &exec_id);
		if (ret)
			fail(-ret, "the command", err);
	}
	if (!ret && md_kmod_merge_init(&k->merge, k->command, exec_id))
		ret = mp_err_set(err, ENOMEM, "out of memory");
	if (ret)
		goto fail;
	k->start.rate_hz = config->rate_hz < MORPH_RATE_MAX ? config->rate_hz : MORPH_RATE_MAX;
	k->start.flags = config->no_kernel ? MORPH_START_NO_KERNEL : 0;
	/*
	 * A command's children are found by their FORK records. Older modules do not know this
	 * flag.
	 */
	if (!k->command && k->hello.abi_minor >= 3)
		k->start.flags |= MORPH_START_LAZY;
	if (config->registers) {
		ret = ask_for_registers(k, config->registers, err);
		if (ret)
			goto fail;
	}
	ret = ask_for_stacks(k, config, err);
	if (ret)
		goto fail;
	describe(k, config);
	ret = switch_on(k, err);
	if (!ret)
		ret = map_new_rings(k, err);
	/* A command is seen completely, from its exec on. */
	if (!ret && !k->command) {
		k->merge.drop_hidden_samples = true;
		ret = scan(k, true, err);
	}
	if (ret)
		goto fail;
	*out = &k->source;
	return 0;
fail:
	kmod_close(&k->source);
	return ret;
}

/* ---- records ------------------------------------------------------------------------------- */

static int wait_for_records(struct kmod *k, int timeout_ms, struct mp_err *err)
{
	struct pollfd one = {.fd = k->fd, .events = POLLIN};
	int nr;

	timeout_ms = md_quiet_wait(&k->quiet_ms, k->merge.is_quiet && !k->command, timeout_ms);
	k->merge.is_quiet = true;
	nr = poll(&one, 1, timeout_ms);
	if (nr < 0 && errno != EINTR)
		return fail(errno, "poll", err);
	/* The module says "ready", but nothing can be given out yet: wait a little. */
	if (nr > 0 && k->was_empty)
		poll(NULL, 0, SPIN_PAUSE_MS);
	return 0;
}

/*
 * Determines up to which time the rings are complete. Asks the module only if there are
 * records: the answer waits until every CPU has passed through the scheduler, which is a waste
 * on an idle machine.
 */
static int begin_round(struct kmod *k, bool drain, struct mp_err *err)
{
	struct morph_counts counts;
	__u64 limit_ns = UINT64_MAX - 1;
	int ret;

	if (drain) {
		ret = switch_off(k, err);
		if (ret)
			return ret;
	} else {
		ret = map_new_rings(k, err);
		if (!ret)
			ret = md_kmod_merge_refresh(&k->merge, err);
		if (ret)
			return ret;
		k->limit_ns = 0;
		if (!md_kmod_merge_is_pending(&k->merge))
			return 0;
		ret = md_kmod_request(k->fd, MORPH_IOC_SYNC, &limit_ns);
		if (ret)
			return fail(-ret, "cannot wait for its records", err);
	}
	/* The order matters: rings, losses and records from before the limit must all be seen. */
	ret = map_new_rings(k, err);
	if (!ret)
		ret = get_counts(k, &counts, err);
	if (!ret)
		ret = md_kmod_merge_refresh(&k->merge, err);
	if (ret)
		return ret;
	k->limit_ns = limit_ns;
	ret = md_kmod_merge_set_lost(&k->merge, counts.lost_events, drain ? mp_now_ns() : limit_ns);
	return ret ? mp_err_set(err, ENOMEM, "no memory for records") : 0;
}

/* The module counts the samples that it takes. Report those that never arrived. */
static int account_missing(struct kmod *k, struct mp_err *err)
{
	struct md_kmod_merge *m = &k->merge;
	struct morph_counts counts;
	uint64_t here;
	int ret;

	if (k->reported_missing)
		return 0;
	k->reported_missing = true;
	ret = get_counts(k, &counts, err);
	if (ret)
		return ret;
	here = counts.samples - counts.lost_samples;
	/* These were lost at the end, so no later record in the ring reported them. */
	if (counts.lost_samples > m->nr_lost &&
	    !md_record_add_lost(&m->out, mp_now_ns(), counts.lost_samples - m->nr_lost,
				MORPH_LOST_RING_FULL, 0))
		return mp_err_set(err, ENOMEM, "no memory for records");
	if (here > m->nr_samples && !md_record_add_lost(&m->out, mp_now_ns(), here - m->nr_samples,
							MORPH_LOST_NO_MEMORY, 0))
		return mp_err_set(err, ENOMEM, "no memory for records");
	return 0;
}

static int kmod_next(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		     struct mp_err *err)
{
	struct kmod *k = (struct kmod *)source;
	struct md_kmod_merge *m = &k->merge;
	int ret = 0;

	m->out.size = 0;
	*batch = (struct md_batch){0};
	if (!k->more) {
		if (!drain)
			ret = wait_for_records(k, timeout_ms, err);
		if (!ret)
			ret = begin_round(k, drain, err);
		if (ret)
			return ret;
	}
	ret = md_kmod_merge_run(m, k->limit_ns, err);
	if (ret < 0)
		return ret;
	k->more = ret;
	md_kmod_merge_release(m);
	k->was_empty = !m->out.size;
	if (m->wants_scan && !k->more && !drain && !m->scan.size &&
	    mp_now_ns() - k->last_scan_ns > SCAN_PAUSE_NS) {
		m->drop_hidden_samples = false;
		ret = scan(k, false, err);
		if (ret)
			return ret;
	}
	if (drain && !m->out.size) {
		ret = account_missing(k, err);
		if (ret)
			return ret;
	}
	batch->data = m->out.data;
	batch->size = m->out.size;
	return 0;
}

static int kmod_pause(struct md_source *source, bool on, struct mp_err *err)
{
	struct kmod *k = (struct kmod *)source;

	/* Switching on by hand does not wait for an exec. */
	k->merge.is_waiting = false;
	return on ? switch_off(k, err) : switch_on(k, err);
}

static int kmod_give_rows(struct md_source *source, const struct md_source_rows *rows)
{
	return md_kmod_rows_give(((const struct kmod *)source)->fd, rows);
}

static void kmod_describe(const struct md_source *source, struct md_recfile_info *info)
{
	*info = ((const struct kmod *)source)->info;
}

static const char *kmod_remark(const struct md_source *source)
{
	(void)source;
	return NULL;
}

const struct md_source_ops md_source_kmod = {
	.name = "kmod",
	.is_live = true,
	.is_exclusive = true,
	.open = kmod_open,
	.next = kmod_next,
	.pause = kmod_pause,
	.give_rows = kmod_give_rows,
	.rows_full =
		"the kernel module has no room for more unwind rows: stacks end at further files; its "
		"parameter rows_mib raises the limit",
	.describe = kmod_describe,
	.remark = kmod_remark,
	.close = kmod_close,
};
