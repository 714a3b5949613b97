// SPDX-License-Identifier: Apache-2.0
/*
 * source_bpf - gets samples and events from BPF programs, and mappings from the perf event that
 * runs them.
 *
 * Decides what is complete, and merges the programs' ring with the events' rings. A sample is
 * given out once everything before it, on every CPU, is known. Documentation/service.md
 * explains why mappings take that way.
 */
#include "libprof/base/clock.h"
#include "daemon/source/quiet.h"
#include "daemon/source/source.h"

#include <errno.h>

#ifdef MORPH_BPF
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "daemon/source/bpf_merge.h"
#include "daemon/source/bpf_programs.h"
#include "daemon/source/perf_event.h"
#include "daemon/source/proc_scan.h"

#define SCAN_PAUSE_NS UINT64_C(1000000000) /* between two scans of all of /proc */

struct bpf {
	struct md_source source;
	struct md_perf_events events;
	struct md_bpf_programs *programs;
	struct md_bpf_merge merge;
	struct md_bpf_totals reported; /* losses reported so far */
	struct md_recfile_info info;
	pid_t command;
	int epoll;
	bool stopped;	       /* only the last records are still to come */
	bool reported_missing; /* samples that were taken but never seen were reported */
	bool is_quiet;	       /* the last round had only samples */
	int quiet_ms;	       /* the last quiet wait */
	/* mappings found in /proc, to be inserted when the stream reaches scan_ns */
	struct md_buf scan;
	uint64_t scan_ns, last_scan_ns;
};

static void bpf_close(struct md_source *source)
{
	struct bpf *b = (struct bpf *)source;

	if (!b)
		return;
	if (b->epoll >= 0)
		close(b->epoll);
	md_perf_events_close(&b->events);
	md_bpf_programs_close(b->programs);
	md_bpf_merge_fini(&b->merge);
	md_buf_fini(&b->scan);
	free(b);
}

static int watch(struct bpf *b, int fd)
{
	/*
	 * Edge-triggered: the ring is never empty for long, and an offline CPU's event is
	 * always ready.
	 */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int prepare(struct bpf *b, uint32_t registers, struct mp_err *err)
{
	uint32_t nr_cpus = md_bpf_programs_nr_cpus(b->programs), i;
	int ret;

	if (nr_cpus < b->events.max_rings)
		nr_cpus = b->events.max_rings;
	if (md_bpf_merge_init(&b->merge, nr_cpus, b->events.rate_hz, registers))
		return mp_err_set(err, ENOMEM, "out of memory");
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = b->epoll < 0 ? -errno : watch(b, md_bpf_programs_fd(b->programs));
	for (i = 0; !ret && i < b->events.nr_rings; i++)
		ret = watch(b, b->events.rings[i].fd);
	if (ret)
		return mp_err_set(err, -ret, "epoll: %s", strerror(-ret));
	return md_perf_events_attach(&b->events, md_bpf_programs_sampler(b->programs), err);
}

static int start(struct bpf *b, struct mp_err *err)
{
	int ret;

	if (b->command)
		return 0; /* its exec starts the event */
	ret = md_perf_events_switch(&b->events, true, err);
	if (ret)
		return ret;
	/*
	 * Earlier events must be ignored: an older exec would remove what the scan finds, and
	 * its mappings were not recorded.
	 */
	b->merge.since_ns = mp_now_ns();
	/*
	 * Find what runs already. Events that come meanwhile are repeated by the scan, which is
	 * harmless.
	 */
	ret = md_proc_scan(0, 0, NULL, &b->scan);
	b->merge.decoder.start_ns = mp_now_ns();
	return ret ? mp_err_set(err, -ret, "/proc: %s", strerror(-ret)) : 0;
}

/*
 * Assumed to be enough for one stack, with what morphd does with it; Documentation/lab/contexts.md
 * has the figures.
 */
#define STACK_COST_NS 12000

/* Stacks that are taken only if they cost little are no reason to fail. */
static int open_programs(struct bpf *b, const struct md_source_config *config, struct mp_err *err)
{
	struct md_bpf_request request = {
		.command = config->command,
		.registers = config->registers & MORPH_REGS_BRANCHES,
		.stacks = md_source_wants_stacks(config->stacks, config->rate_hz, STACK_COST_NS),
		.stack_copies = config->stack_copies,
	};
	int ret = md_bpf_programs_open(&request, &b->programs, err);

	if (ret && request.stacks && config->stacks != MD_STACKS_YES) {
		request.stacks = false;
		ret = md_bpf_programs_open(&request, &b->programs, err);
	}
	b->source.has_stacks = !ret && request.stacks;
	return ret;
}

static int bpf_open(const struct md_source_config *config, struct md_source **out,
		    struct mp_err *err)
{
	const struct md_perf_request request = {
		.rate_hz = config->rate_hz,
		.command = config->command,
		.no_kernel = config->no_kernel,
		.content = MD_PERF_MAPPINGS,
	};
	struct bpf *b;
	int ret;

	b = calloc(1, sizeof(*b));
	if (!b)
		return mp_err_set(err, ENOMEM, "out of memory");
	b->source.ops = &md_source_bpf;
	b->command = config->command;
	b->epoll = -1;
	ret = open_programs(b, config, err);
	if (!ret)
		ret = md_perf_events_open(&request, &b->events, err);
	if (!ret)
		ret = prepare(b, config->registers & MORPH_REGS_BRANCHES, err);
	if (ret)
		goto fail;
	b->source.has_kernel = b->events.has_kernel;
	b->info.start_ns = mp_now_ns();
	b->info.start_s = time(NULL);
	b->info.rate_hz = b->events.rate_hz;
	snprintf(b->info.collector, sizeof(b->info.collector), "bpf");
	snprintf(b->info.event, sizeof(b->info.event), "%s", b->events.event);
	snprintf(b->info.why, sizeof(b->info.why), "%s", b->events.why);
	ret = start(b, err);
	if (ret)
		goto fail;
	*out = &b->source;
	return 0;
fail:
	bpf_close(&b->source);
	return ret;
}

/* ---- the order of time -------------------------------------------------------------------- */

static int take(void *arg, void *record, size_t size)
{
	return md_bpf_merge_take(arg, record, size);
}

static struct md_perf_ring *oldest_ring(struct bpf *b, uint64_t *time_ns)
{
	const struct perf_event_header *record;
	struct md_perf_ring *oldest = NULL;
	uint64_t time;
	uint32_t i;

	*time_ns = UINT64_MAX;
	for (i = 0; i < b->events.nr_rings; i++) {
		record = md_perf_ring_peek(&b->events.rings[i]);
		time = record ? md_perf_record_time(record) : UINT64_MAX;
		if (record && time < *time_ns) {
			*time_ns = time;
			oldest = &b->events.rings[i];
		}
	}
	return oldest;
}

static void give_scan(struct bpf *b)
{
	void *room;

	md_bpf_merge_samples(&b->merge, b->scan_ns);
	md_perf_decoder_flush(&b->merge.decoder);
	room = md_buf_add(&b->merge.decoder.out, b->scan.size);
	if (room)
		memcpy(room, b->scan.data, b->scan.size);
	else
		b->merge.decoder.failed = true;
	b->scan.size = 0;
}

static void merge(struct bpf *b, uint64_t limit_ns)
{
	const struct perf_event_header *record;
	struct md_perf_ring *ring;
	uint64_t ring_ns, event_ns, time;

	b->is_quiet = true;
	for (;;) {
		ring = oldest_ring(b, &ring_ns);
		event_ns = md_bpf_merge_event_ns(&b->merge);
		time = event_ns < ring_ns ? event_ns : ring_ns;
		if (b->scan.size && b->scan_ns <= time && b->scan_ns <= limit_ns)
			give_scan(b);
		if (time > limit_ns)
			break;
		b->is_quiet = false;
		if (event_ns <= ring_ns) {
			md_bpf_merge_event(&b->merge);
			continue;
		}
		record = md_perf_ring_peek(ring);
		/* At equal times, the mapping comes first. */
		md_bpf_merge_samples(&b->merge, time);
		md_perf_decode(&b->merge.decoder, ring->cpu, record);
		md_perf_ring_advance(ring, record);
	}
	md_bpf_merge_samples(&b->merge, limit_ns + 1);
	md_perf_decoder_flush(&b->merge.decoder);
}

/*
 * Reports losses. A lost record may have come any time since the last call, so this goes before
 * all others.
 */
static void account_lost(struct bpf *b, uint64_t time_ns)
{
	struct md_bpf_totals totals = md_bpf_programs_totals(b->programs);
	uint64_t nr = totals.nr_lost - b->reported.nr_lost;
	bool events = totals.nr_lost_events != b->reported.nr_lost_events;

	if ((nr || events) &&
	    !md_record_add_lost(&b->merge.decoder.out, time_ns, nr, MORPH_LOST_RING_FULL,
				events ? MORPH_LOST_STATE : 0))
		b->merge.decoder.failed = true;
	b->merge.decoder.lost_events |= events;
	b->reported = totals;
}

/* The programs count the samples that they take. Report those that never arrived. */
static void account_missing(struct bpf *b)
{
	struct md_bpf_totals totals = md_bpf_programs_totals(b->programs);
	uint64_t seen = b->merge.nr_samples + totals.nr_lost;

	if (b->reported_missing)
		return;
	b->reported_missing = true;
	if (totals.nr_samples > seen &&
	    !md_record_add_lost(&b->merge.decoder.out, mp_now_ns(), totals.nr_samples - seen,
				MORPH_LOST_NO_MEMORY, 0))
		b->merge.decoder.failed = true;
}

/*
 * Called before a round: what a new CPU's event missed happened after everything given out so
 * far.
 */
static int follow_cpus(struct bpf *b, uint64_t time_ns, struct mp_err *err)
{
	struct md_perf_ring *ring;
	bool missed;
	uint32_t i;
	int ret = md_perf_events_follow(&b->events, &missed, err);

	if (ret || !missed)
		return ret;
	for (i = 0; i < b->events.nr_rings; i++) {
		ring = &b->events.rings[i];
		ret = ring->is_new ? watch(b, ring->fd) : 0;
		if (ret)
			return mp_err_set(err, -ret, "epoll: %s", strerror(-ret));
		ring->is_new = false;
	}
	b->merge.decoder.lost_events = true;
	if (!md_record_add_lost(&b->merge.decoder.out, time_ns, 0, MORPH_LOST_RING_FULL,
				MORPH_LOST_STATE))
		return mp_err_set(err, ENOMEM, "no memory for records");
	return 0;
}

static int read_rings(struct bpf *b, bool drain, struct mp_err *err)
{
	uint64_t limit_ns;
	uint32_t i;
	int ret;

	if (drain && !b->stopped) {
		ret = md_perf_events_switch(&b->events, false, err);
		if (ret)
			return ret;
		b->stopped = true;
	}
	limit_ns = md_bpf_programs_complete_until_ns(b->programs, drain);
	if (drain)
		limit_ns = UINT64_MAX - 1;
	ret = drain ? 0 : follow_cpus(b, limit_ns, err);
	if (ret)
		return ret;
	account_lost(b, limit_ns);
	ret = md_bpf_programs_read(b->programs, take, &b->merge);
	if (ret)
		return mp_err_set(err, -ret, "the ring of the BPF programs: %s", strerror(-ret));
	/*
	 * Read these after the samples: a sample's mapping was written before the sample was
	 * taken.
	 */
	for (i = 0; i < b->events.nr_rings; i++)
		md_perf_ring_refresh(&b->events.rings[i]);
	merge(b, limit_ns);
	for (i = 0; i < b->events.nr_rings; i++)
		md_perf_ring_release(&b->events.rings[i]);
	return b->merge.decoder.failed ? mp_err_set(err, ENOMEM, "no memory for records") : 0;
}

static int wait_for_records(struct bpf *b, int timeout_ms, struct mp_err *err)
{
	int wait_ms = md_quiet_wait(&b->quiet_ms, b->is_quiet && !b->command, timeout_ms);
	bool sleeps = wait_ms > timeout_ms;
	struct epoll_event events[16];
	int ret;

	if (sleeps)
		md_bpf_programs_sleep(b->programs, true);
	ret = epoll_wait(b->epoll, events, 16, wait_ms);
	if (ret < 0 && errno != EINTR)
		return mp_err_set(err, errno, "epoll: %s", strerror(errno));
	if (sleeps)
		md_bpf_programs_sleep(b->programs, false);
	return 0;
}

static int bpf_next(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		    struct mp_err *err)
{
	struct bpf *b = (struct bpf *)source;
	struct md_perf_decoder *d = &b->merge.decoder;
	int ret;

	d->out.size = 0;
	*batch = (struct md_batch){0};
	ret = drain ? 0 : wait_for_records(b, timeout_ms, err);
	if (ret)
		return ret;
	ret = read_rings(b, drain, err);
	if (ret)
		return ret;
	if (d->lost_events && !b->scan.size && !drain &&
	    mp_now_ns() - b->last_scan_ns > SCAN_PAUSE_NS) {
		d->lost_events = false;
		b->scan_ns = b->last_scan_ns = d->scan_begin_ns = mp_now_ns();
		md_proc_scan(b->command, 0, NULL, &b->scan);
		d->scan_end_ns = mp_now_ns();
	}
	if (drain && !d->out.size)
		account_missing(b);
	batch->data = d->out.data;
	batch->size = d->out.size;
	return 0;
}

static int bpf_pause(struct md_source *source, bool on, struct mp_err *err)
{
	return md_perf_events_switch(&((struct bpf *)source)->events, !on, err);
}

static int bpf_give_rows(struct md_source *source, const struct md_source_rows *rows)
{
	return md_bpf_programs_give_rows(((struct bpf *)source)->programs, rows);
}

static void bpf_describe(const struct md_source *source, struct md_recfile_info *info)
{
	*info = ((const struct bpf *)source)->info;
}

static const char *bpf_remark(const struct md_source *source)
{
	(void)source;
	return NULL;
}

#else

static int bpf_open(const struct md_source_config *config, struct md_source **out,
		    struct mp_err *err)
{
	(void)config;
	(void)out;
	return mp_err_set(err, ENOTSUP, "this morphd was built without it");
}

#define bpf_next      NULL
#define bpf_pause     NULL
#define bpf_give_rows NULL
#define bpf_describe  NULL
#define bpf_remark    NULL
#define bpf_close     NULL
#endif

const struct md_source_ops md_source_bpf = {
	.name = "bpf",
	.is_live = true,
	.open = bpf_open,
	.next = bpf_next,
	.pause = bpf_pause,
	.give_rows = bpf_give_rows,
	.rows_full =
		"the BPF programs have no room for more unwind rows: stacks end at further files",
	.describe = bpf_describe,
	.remark = bpf_remark,
	.close = bpf_close,
};
