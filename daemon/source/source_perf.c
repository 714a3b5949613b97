// SPDX-License-Identifier: Apache-2.0
/*
 * source_perf - gets samples and side-band events from the kernel's perf subsystem.
 *
 * Merges the rings of all CPUs in time order. Everything written before the clock was last read
 * is complete in every ring. Only that part is given out, so that no mapping arrives after its
 * samples.
 *
 * Where samples bring copies of stacks, events of processes and mappings have rings of their own. A ring
 * has room for some dozen copies only, and is full whenever the reader is away for some milliseconds.
 * A loss of events would make all mappings unknown.
 */
#include "libprof/base/clock.h"
#include "daemon/source/quiet.h"
#include "daemon/source/source.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/source/perf_decode.h"
#include "daemon/source/perf_event.h"
#include "daemon/source/proc_scan.h"

#define BATCH_SIZE    (256u << 10)
#define SCAN_PAUSE_NS UINT64_C(1000000000) /* between two scans of all of /proc */

/* The next record of a ring, during the merge. */
struct head {
	const struct perf_event_header *record; /* NULL: none */
	uint64_t time_ns;			/* UINT64_MAX: none */
};

struct perf {
	struct md_source source;
	struct md_perf_events events;
	struct md_perf_events apart; /* without samples; no rings: @events has all */
	struct md_perf_decoder decoder;
	/* By number: ring n of @events; or ring n of @events is 2n, and of @apart 2n + 1. */
	struct md_perf_ring **rings;
	struct pollfd *fds;
	struct head *heads;
	uint32_t nr_rings;
	struct md_recfile_info info;
	pid_t command;
	uint64_t round_ns; /* time when the rings were last read */
	uint64_t limit_ns; /* records up to this time are complete */
	bool more;	   /* a batch was full: the rings hold more of this round */
	bool said_lost;	   /* the final losses were reported */
	bool is_quiet;	   /* this round had only samples so far */
	int quiet_ms;	   /* the last quiet wait */
	/* mappings found in /proc, to be inserted when the stream reaches scan_ns */
	struct md_buf scan;
	uint64_t scan_ns, last_scan_ns;
};

static void perf_close(struct md_source *source)
{
	struct perf *p = (struct perf *)source;

	if (!p)
		return;
	md_perf_events_close(&p->events);
	md_perf_events_close(&p->apart);
	md_perf_decoder_fini(&p->decoder);
	md_buf_fini(&p->scan);
	free(p->rings);
	free(p->fds);
	free(p->heads);
	free(p);
}

static void fill_info(struct perf *p)
{
	p->info.start_ns = mp_now_ns();
	p->info.start_s = time(NULL);
	p->info.rate_hz = p->events.rate_hz;
	snprintf(p->info.collector, sizeof(p->info.collector), "perf");
	snprintf(p->info.event, sizeof(p->info.event), "%s", p->events.event);
	snprintf(p->info.why, sizeof(p->info.why), "%s", p->events.why);
}

/* Starts sampling of the whole machine. */
static int start_all(struct perf *p, struct mp_err *err)
{
	int ret = md_perf_events_switch(&p->apart, true, err);

	if (!ret)
		ret = md_perf_events_switch(&p->events, true, err);
	if (ret)
		return ret;
	/*
	 * Find what runs already. Events that come meanwhile are repeated by the scan, which is
	 * harmless.
	 */
	ret = md_proc_scan(0, 0, NULL, &p->scan);
	if (ret)
		return mp_err_set(err, -ret, "/proc: %s", strerror(-ret));
	p->decoder.start_ns = mp_now_ns();
	return 0;
}

/*
 * Assumed to be enough for one stack, of which the kernel copies 16 KiB, and which morphd walks. In one
 * run of perl, morphd took 97 ms for 979 samples, its start included.
 */
#define STACK_COST_NS 100000

static void count_rings(struct perf *p)
{
	uint32_t nr = p->events.nr_rings;

	if (p->apart.nr_rings > nr)
		nr = p->apart.nr_rings;
	p->nr_rings = p->apart.rings ? 2 * nr : nr;
	p->decoder.nr_stages = p->nr_rings;
}

static void poll_ring(struct perf *p, uint32_t i)
{
	p->fds[i] =
		(struct pollfd){.fd = p->rings[i]->page ? p->rings[i]->fd : -1, .events = POLLIN};
}

/* Numbers the rings, also those of CPUs that come online later. */
static int number_rings(struct perf *p, struct mp_err *err)
{
	uint32_t step = p->apart.rings ? 2 : 1, max = p->events.max_rings, i;

	p->rings = calloc((size_t)max * step, sizeof(p->rings[0]));
	p->fds = calloc((size_t)max * step, sizeof(p->fds[0]));
	p->heads = calloc((size_t)max * step, sizeof(p->heads[0]));
	if (!p->rings || !p->fds || !p->heads ||
	    md_perf_decoder_init(&p->decoder, max * step, p->events.rate_hz,
				 p->events.has_branches))
		return mp_err_set(err, ENOMEM, "out of memory");
	for (i = 0; i < max; i++) {
		p->rings[i * step] = &p->events.rings[i];
		if (!p->apart.rings)
			continue;
		p->rings[2 * i + 1] = &p->apart.rings[i];
		p->decoder.stages[2 * i].loss = MD_PERF_LOSS_SAMPLES;
		p->decoder.stages[2 * i + 1].loss = MD_PERF_LOSS_EVENTS;
	}
	for (i = 0; i < max * step; i++)
		poll_ring(p, i);
	return 0;
}

/* Opens the events. Without memory for more rings, all records share one for each CPU. */
static int open_events(struct perf *p, struct md_perf_request *request, struct mp_err *err)
{
	const struct md_perf_request apart = {.command = request->command,
					      .content = MD_PERF_EVENTS};
	struct mp_err unused = {{0}};
	int ret;

	if (request->stacks && !md_perf_events_open(&apart, &p->apart, &unused))
		request->content = MD_PERF_SAMPLES;
	ret = md_perf_events_open(request, &p->events, err);
	if (ret && p->apart.rings) {
		md_perf_events_close(&p->apart);
		request->content = MD_PERF_ALL;
		ret = md_perf_events_open(request, &p->events, err);
	}
	return ret ? ret : number_rings(p, err);
}

static int perf_open(const struct md_source_config *config, struct md_source **out,
		     struct mp_err *err)
{
	struct md_perf_request request = {
		.rate_hz = config->rate_hz,
		.command = config->command,
		.no_kernel = config->no_kernel,
		.registers = config->registers,
		.stacks = md_source_wants_stacks(config->stacks, config->rate_hz, STACK_COST_NS),
	};
	struct perf *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return mp_err_set(err, ENOMEM, "out of memory");
	p->source.ops = &md_source_perf;
	p->command = config->command;
	ret = open_events(p, &request, err);
	if (ret)
		goto fail;
	p->source.has_kernel = p->events.has_kernel;
	p->source.has_stacks = request.stacks;
	if (request.stacks)
		md_perf_decoder_want_stacks(&p->decoder);
	ret = config->registers ? md_perf_decoder_want_registers(&p->decoder, config->registers)
				: 0;
	if (ret) {
		mp_err_set(err, ENOMEM, "out of memory");
		goto fail;
	}
	count_rings(p);
	fill_info(p);
	ret = config->command ? 0 : start_all(p, err);
	if (ret)
		goto fail;
	*out = &p->source;
	return 0;
fail:
	perf_close(&p->source);
	return ret;
}

static void look_at(struct perf *p, uint32_t ring)
{
	struct head *head = &p->heads[ring];

	head->record = md_perf_ring_peek(p->rings[ring]);
	head->time_ns = head->record ? md_perf_record_time(head->record) : UINT64_MAX;
}

/*
 * Return: the ring with the oldest next record. *@until: time up to which no other ring has a
 * record.
 */
static uint32_t oldest_ring(const struct perf *p, uint64_t *until)
{
	uint64_t first = UINT64_MAX, second = UINT64_MAX, time;
	uint32_t oldest = 0, i;

	for (i = 0; i < p->nr_rings; i++) {
		time = p->heads[i].time_ns;
		if (time < first) {
			second = first;
			first = time;
			oldest = i;
		} else if (time < second) {
			second = time;
		}
	}
	*until = second;
	return oldest;
}

static int give_scan(struct perf *p)
{
	void *room;

	md_perf_decoder_flush(&p->decoder);
	room = md_buf_add(&p->decoder.out, p->scan.size);
	if (!room)
		return -ENOMEM;
	memcpy(room, p->scan.data, p->scan.size);
	p->scan.size = 0;
	return 0;
}

static int merge(struct perf *p)
{
	struct head *head;
	uint64_t until;
	uint32_t i;

	p->more = false;
	for (i = 0; i < p->nr_rings; i++)
		look_at(p, i);
	for (;;) {
		i = oldest_ring(p, &until);
		head = &p->heads[i];
		if (!p->nr_rings || !head->record)
			break;
		if (p->scan.size && head->time_ns >= p->scan_ns && give_scan(p))
			return -ENOMEM;
		if (head->time_ns > p->limit_ns)
			break;
		if (until > p->limit_ns)
			until = p->limit_ns;
		if (p->scan.size && until > p->scan_ns)
			until = p->scan_ns;
		while (head->record && head->time_ns <= until && p->decoder.out.size < BATCH_SIZE) {
			p->is_quiet &= head->record->type == PERF_RECORD_SAMPLE;
			md_perf_decode(&p->decoder, i, head->record);
			md_perf_ring_advance(p->rings[i], head->record);
			look_at(p, i);
		}
		if (p->decoder.out.size >= BATCH_SIZE) {
			p->more = true;
			break;
		}
	}
	if (p->scan.size && p->limit_ns >= p->scan_ns && !p->more && give_scan(p))
		return -ENOMEM;
	md_perf_decoder_flush(&p->decoder);
	return p->decoder.failed ? -ENOMEM : 0;
}

/* Reports losses for which no LOST record came, because the rings stayed full. */
static void account_lost(struct perf *p)
{
	uint64_t nr;
	uint32_t i;

	if (p->said_lost)
		return;
	p->said_lost = true;
	for (i = 0; i < p->nr_rings; i++)
		if (p->decoder.stages[i].loss != MD_PERF_LOSS_EVENTS && p->rings[i]->page &&
		    md_perf_ring_lost(p->rings[i], &nr) && nr > p->decoder.stages[i].lost)
			md_record_add_lost(&p->decoder.out, p->round_ns,
					   nr - p->decoder.stages[i].lost, MORPH_LOST_RING_FULL, 0);
}

static int wait_for_records(struct perf *p, int timeout_ms, struct mp_err *err)
{
	uint32_t i;

	timeout_ms = md_quiet_wait(&p->quiet_ms, p->is_quiet && !p->command, timeout_ms);
	p->is_quiet = true;
	if (poll(p->fds, p->nr_rings, timeout_ms) < 0)
		return errno == EINTR ? 0 : mp_err_set(err, errno, "poll: %s", strerror(errno));
	/* The event of an offline CPU is always ready: stop polling it. */
	for (i = 0; i < p->nr_rings; i++)
		if (p->fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			p->fds[i].fd = -1;
	return 0;
}

/*
 * Called after a round: what a new CPU's event missed happened after everything given out so
 * far.
 */
static int follow_cpus(struct perf *p, struct mp_err *err)
{
	bool missed, missed_apart = false;
	uint32_t i;
	int ret = md_perf_events_follow(&p->events, &missed, err);

	if (!ret && p->apart.rings)
		ret = md_perf_events_follow(&p->apart, &missed_apart, err);
	if (ret || (!missed && !missed_apart))
		return ret;
	count_rings(p);
	for (i = 0; i < p->nr_rings; i++) {
		if (p->rings[i]->is_new)
			poll_ring(p, i);
		p->rings[i]->is_new = false;
	}
	p->decoder.lost_events = true;
	if (!md_record_add_lost(&p->decoder.out, p->limit_ns, 0, MORPH_LOST_RING_FULL,
				MORPH_LOST_STATE))
		return mp_err_set(err, ENOMEM, "no memory for records");
	return 0;
}

static int perf_next(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		     struct mp_err *err)
{
	struct perf *p = (struct perf *)source;
	uint32_t i;
	int ret;

	p->decoder.out.size = 0;
	*batch = (struct md_batch){0};
	if (!p->more) {
		ret = drain ? 0 : wait_for_records(p, timeout_ms, err);
		if (ret)
			return ret;
		p->limit_ns = drain ? UINT64_MAX - 1 : p->round_ns;
		p->round_ns = mp_now_ns();
		for (i = 0; i < p->nr_rings; i++)
			if (p->rings[i]->page)
				md_perf_ring_refresh(p->rings[i]);
	}
	if (merge(p))
		return mp_err_set(err, ENOMEM, "no memory for records");
	for (i = 0; i < p->nr_rings; i++)
		if (p->rings[i]->page)
			md_perf_ring_release(p->rings[i]);
	ret = p->more || drain ? 0 : follow_cpus(p, err);
	if (ret)
		return ret;
	if (p->decoder.lost_events && !p->scan.size && !drain &&
	    p->round_ns - p->last_scan_ns > SCAN_PAUSE_NS) {
		p->decoder.lost_events = false;
		p->scan_ns = p->last_scan_ns = p->decoder.scan_begin_ns = mp_now_ns();
		md_proc_scan(p->command, 0, NULL, &p->scan);
		p->decoder.scan_end_ns = mp_now_ns();
	}
	if (drain && !p->decoder.out.size)
		account_lost(p);
	batch->data = p->decoder.out.data;
	batch->size = p->decoder.out.size;
	return 0;
}

static void perf_describe(const struct md_source *source, struct md_recfile_info *info)
{
	*info = ((const struct perf *)source)->info;
}

static const char *perf_remark(const struct md_source *source)
{
	(void)source;
	return NULL;
}

static int perf_pause(struct md_source *source, bool on, struct mp_err *err)
{
	struct perf *p = (struct perf *)source;
	int ret = md_perf_events_switch(&p->apart, !on, err);

	return ret ? ret : md_perf_events_switch(&p->events, !on, err);
}

const struct md_source_ops md_source_perf = {
	.name = "perf",
	.is_live = true,
	.open = perf_open,
	.next = perf_next,
	.pause = perf_pause,
	.describe = perf_describe,
	.remark = perf_remark,
	.close = perf_close,
};
