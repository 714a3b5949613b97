// SPDX-License-Identifier: Apache-2.0
/*
 * push - the loop of a push; see push.h. A batch that was sent and not answered may have arrived. So
 * the server is asked for its token before anything else, and what may be lost is sent again.
 */
#include "daemon/fleet/push.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "daemon/fleet/pg.h"
#include "daemon/fleet/push_send.h"
#include "libprof/base/clock.h"

/* Hosts that wait for a server come within so many seconds after it is back, evenly spread. */
#define WAIT_MAX_S 600.0
/* With a limit of bandwidth, push sends a batch at once, and then waits until these seconds are over. */
#define BATCH_S	  2
#define BATCH_MIN (16 << 10)
/* More forks in one push mean that another process sends from a copy of the store at this moment. */
#define FORKS_MAX 3
/* Batches that the server refused because of their token, one after the other. */
#define REFUSALS_MAX 8

struct push {
	const struct md_push_options *options;
	struct mp_store *store;
	struct md_push_report *report;
	struct md_push_sender sender;
	struct mp_fleet_epoch epoch;
	struct mp_fleet_batch batch;
	double start_s, wait_s; /* monotonic; how long the next wait is */
	double free_s;		/* when the limit of bandwidth allows the next batch */
	unsigned int nr_refusals;
	int64_t last_module;
};

/* ---- time ---------------------------------------------------------------------------------- */

static void sleep_s(double s)
{
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9)};

	while (s > 0 && nanosleep(&t, &t) && errno == EINTR)
		;
}

/*
 * Waits before the next attempt: a random time, so that hosts do not come back together. Return: 0, or
 * @r: the time is up.
 */
static int back_off(struct push *p, int r)
{
	uint32_t random = 0;
	double wait;

	(void)!getrandom(&random, sizeof(random), 0);
	wait = p->wait_s * (0.5 + 0.5 * (double)random / (double)UINT32_MAX);
	p->wait_s = fmin(2 * p->wait_s, WAIT_MAX_S);
	if (mp_now_s() + wait > p->start_s + p->options->give_up_s)
		return r;
	p->report->nr_waits++;
	sleep_s(wait);
	return 0;
}

/* ---- what the server has ------------------------------------------------------------------- */

static int begin_epoch(struct push *p, bool fork, struct mp_err *err)
{
	bool has;
	int r;

	if (fork && p->report->nr_epochs++ == FORKS_MAX)
		return mp_err_set(err, EBUSY,
				  "another process sends counts of a copy of this store right now");
	r = mp_fleet_epoch_begin(p->store, p->options->machine, fork, err);
	return r ? r : mp_fleet_epoch_read(p->store, p->options->machine, &has, &p->epoch, err);
}

/*
 * Compares the server's token with the store's.
 *	one on its way		that attempt arrived
 *	the last confirmed	nothing arrived since
 *	none, or an older one	another server, or one from a backup: send all again
 *	another			another copy of the store went on from here: begin an epoch
 */
static int compare(struct push *p, bool has, int64_t seq, int64_t token, struct mp_err *err)
{
	struct mp_fleet_epoch *e = &p->epoch;
	bool pending = false;
	int r = 0;

	if (!has && e->token)
		return mp_fleet_epoch_send_again(p->store, 0, 0, err);
	if (has)
		r = mp_fleet_is_pending(p->store, token, &pending, err);
	if (r)
		return r;
	if (!has || pending || token == e->token) {
		r = mp_fleet_revert(p->store, err);
		return r || !pending ? r : mp_fleet_confirm(p->store, token, err);
	}
	if (seq < e->seq)
		return mp_fleet_epoch_send_again(p->store, seq, token, err);
	return begin_epoch(p, true, err);
}

/*
 * A store that never sent is a fork, too, if it was made on another machine: the original sends what both
 * have. If it was made on this one, it may now get the machine's other name.
 */
static int is_fork(struct push *p, bool *fork, struct mp_err *err)
{
	struct mp_fleet_epoch made;
	bool has;
	int r = mp_fleet_epoch_read(p->store, p->options->own_machine, &has, &made, err);

	*fork = p->epoch.token || (p->epoch.is_machine_known && !made.is_same_machine);
	return r;
}

/* Finds the store's epoch, and begins one if it is not of this machine. */
static int find_epoch(struct push *p, struct mp_err *err)
{
	bool has = false, fork = false;
	int r = mp_fleet_epoch_read(p->store, p->options->machine, &has, &p->epoch, err);

	if (r || (has && p->epoch.is_same_machine))
		return r;
	if (has)
		r = is_fork(p, &fork, err);
	return r ? r : begin_epoch(p, fork, err);
}

static int synchronise(struct push *p, struct mp_err *err)
{
	int64_t seq = 0, token = 0;
	bool has = false;
	int r = find_epoch(p, err);

	if (!r)
		r = md_push_today(&p->sender, err);
	if (!r)
		r = md_push_ask_epoch(&p->sender, p->epoch.name, &has, &seq, &token, err);
	if (!r)
		r = compare(p, has, seq, token, err);
	if (!r)
		r = mp_fleet_epoch_read(p->store, p->options->machine, &has, &p->epoch, err);
	p->batch.from = 0;
	return r;
}

static int connect_to(struct push *p, struct mp_err *err)
{
	PQfinish(p->sender.conn);
	p->sender.conn = NULL;
	return md_fleet_connect(p->options->database, &p->sender.conn, err);
}

/* ---- batches ------------------------------------------------------------------------------- */

static size_t batch_bytes(const struct push *p)
{
	uint64_t bytes = p->options->bytes_per_s * BATCH_S;

	if (!p->options->bytes_per_s || bytes > p->options->batch_bytes)
		return p->options->batch_bytes;
	return bytes < BATCH_MIN ? BATCH_MIN : (size_t)bytes;
}

/* The batch takes as long as its bytes take at the limit. */
static void limit_bandwidth(struct push *p, size_t nr_bytes)
{
	double now = mp_now_s();

	if (!p->options->bytes_per_s)
		return;
	p->free_s = fmax(p->free_s, now) + (double)nr_bytes / (double)p->options->bytes_per_s;
	sleep_s(p->free_s - now);
}

static void report_batch(struct push *p, size_t nr_bytes)
{
	const struct mp_fleet_batch *b = &p->batch;

	p->report->nr_batches++;
	p->report->nr_rows += b->nr_rows;
	p->report->nr_bytes += nr_bytes;
	for (size_t i = 0; i < b->nr_modules; i++) {
		if (b->modules[i].key <= p->last_module)
			continue;
		p->report->nr_modules++;
		p->last_module = b->modules[i].key;
	}
}

/* Bytes of a row, and of a module, on the wire beside the counts: keys, names and lengths. */
#define ROW_BYTES    12
#define MODULE_BYTES 130

static int send_batch(struct push *p, struct mp_err *err)
{
	size_t nr_bytes;
	int r = md_push_send(&p->sender, p->epoch.name, &p->batch, &p->options->names, &nr_bytes,
			     err);

	if (!r)
		r = mp_fleet_confirm(p->store, p->batch.token, err);
	else
		(void)mp_fleet_revert(p->store, NULL);
	if (r)
		return r;
	report_batch(p, nr_bytes);
	p->wait_s = p->options->first_wait_s;
	p->nr_refusals = 0;
	limit_bandwidth(p, nr_bytes + p->batch.nr_rows * ROW_BYTES +
				   p->batch.nr_modules * MODULE_BYTES);
	return 0;
}

/*
 * The server takes rows of the batch for damaged. One odd module must not hold up the others: from now on
 * each batch has one module, and one that is refused is left out of this push.
 */
static void leave_out(struct push *p, const struct mp_err *err)
{
	struct mp_fleet_batch *b = &p->batch;

	b->from = b->modules[0].key;
	b->ended = false;
	if (b->nr_modules == 1) {
		b->from++;
		p->report->nr_refused++;
		snprintf(p->report->refused, sizeof(p->report->refused), "%.180s: %.300s",
			 b->modules[0].path, err->msg);
	}
	b->alone = true;
}

/* Finds what the server lacks now. */
static int collect(struct push *p, struct mp_err *err)
{
	p->batch.sparing = p->options->sparing;
	p->batch.today = (int64_t)time(NULL) / MP_SECONDS_PER_DAY;
	return mp_fleet_collect(p->store, &p->batch, batch_bytes(p), err);
}

/* *@has: is there something to send? A store without an epoch is to be shown to the server. */
static int find_news(struct push *p, bool *has, struct mp_err *err)
{
	int r = mp_fleet_epoch_read(p->store, p->options->machine, has, &p->epoch, err);

	if (r || !*has || !p->epoch.is_same_machine) {
		*has = true;
		return r;
	}
	do {
		r = collect(p, err);
	} while (!r && !p->batch.token && !p->batch.ended);
	*has = p->batch.token != 0;
	if (!r && *has)
		r = mp_fleet_revert(p->store, err);
	p->batch.from = 0;
	p->batch.nr_too_large = 0;
	return r;
}

static int send_all(struct push *p, struct mp_err *err)
{
	int r = 0;

	do {
		r = collect(p, err);
		if (!r && p->batch.token)
			r = send_batch(p, err);
		if (r == -EINVAL && p->batch.token) {
			leave_out(p, err);
			r = 0;
		}
		if (r == -EEXIST && p->nr_refusals++ < REFUSALS_MAX) {
			r = synchronise(p, err);
			p->batch.ended = false;
		}
	} while (!r && !p->batch.ended);
	return r;
}

static bool is_worth_waiting(int r)
{
	return r == -ENOTCONN || r == -ECONNREFUSED || r == -EAGAIN;
}

int md_push_run(const struct md_push_options *options, struct mp_store *store,
		struct md_push_report *report, struct mp_err *err)
{
	struct push p = {.options = options,
			 .store = store,
			 .report = report,
			 .batch = {.when = options->contexts,
				   .today = time(NULL) / MP_SECONDS_PER_DAY},
			 .start_s = mp_now_s(),
			 .wait_s = options->first_wait_s};
	bool has_news = true;
	int r = 0;

	memset(report, 0, sizeof(*report));
	if (options->sparing)
		r = find_news(&p, &has_news, err);
	while (!r && has_news) {
		r = p.sender.conn && PQstatus(p.sender.conn) == CONNECTION_OK ? 0
									      : connect_to(&p, err);
		if (!r)
			r = synchronise(&p, err);
		if (!r)
			r = send_all(&p, err);
		if (!is_worth_waiting(r) || back_off(&p, r))
			break;
		r = 0;
	}
	report->nr_too_large = p.batch.nr_too_large;
	mp_fleet_batch_fini(&p.batch);
	md_push_sender_fini(&p.sender);
	return is_worth_waiting(r) || r == -EDQUOT ? -EAGAIN : r;
}
