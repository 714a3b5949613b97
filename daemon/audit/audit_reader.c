// SPDX-License-Identifier: Apache-2.0
/* audit_reader - reads, tests, writes verdicts, and stores; see audit_reader.h. */
#include "daemon/audit/audit_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/audit/audited_file.h"
#include "daemon/module/sandbox.h"
#include "libprof/base/clock.h"
#include "libprof/audit/program_audit.h"
#include "libprof/note/audit_ring.h"
#include "libprof/store/audits/store_audits.h"

#define TICK_NS	      10000000
#define RECORDS	      1024		  /* read at once */
#define LOOK_NS	      INT64_C(1000000000) /* between two looks at the path */
#define SEARCH_MAX_MS INT64_C(64000) /* most milliseconds between two searches for the program */
#define DEADLINE_MS   10000	     /* for the sandbox to read a file */

struct md_audit_reader {
	struct md_audit_config config;
	int64_t start_s;
	pthread_t thread, searcher;
	pthread_mutex_t lock; /* protects the following members */
	bool ends;
	struct mp_program_audit *audit; /* NULL: there was no file yet */
	uint64_t table_hash;
	uint64_t lost, torn; /* of earlier files at the same path */
	struct mp_audit_ring ring;
	struct md_audited_file file;
	bool known; /* @file is */
	struct mp_err problem;
	/* used by the thread only */
	enum mp_audit_ring_start start;
	bool broken; /* the open file is no longer read */
	int64_t looked_ns;
	/* used by the searcher only */
	int64_t searched_ns, search_ms;
	struct md_sandbox *sandbox;
	bool no_sandbox; /* there can be none */
	/* used by the caller only */
	int64_t key; /* in the store */
	bool ended;
	char remark[MP_ERR_SIZE];
};

static int64_t now_ns(void)
{
	return (int64_t)mp_now_ns();
}

/* ---- the file ------------------------------------------------------------------------------ */

/* The first time, notes verdicts of earlier audits. In a new file, writes those that we have. */
static int exchange_verdicts(struct md_audit_reader *r, bool first, struct mp_err *err)
{
	struct mp_audit_function function;
	int ret = 0;

	for (uint32_t f = 0; f < r->ring.nr_functions && !ret; f++) {
		ret = mp_audit_ring_function(&r->ring, f, &function, err);
		if (ret)
			break;
		if (first)
			mp_program_audit_set_earlier(r->audit, f, function.verdict);
		else if (mp_program_audit_verdict(r->audit, f) != MP_AUDIT_VERDICT_NONE)
			ret = mp_audit_ring_decide(&r->ring, f,
						   mp_program_audit_verdict(r->audit, f), err);
	}
	return ret;
}

/* Return: 0; -EAGAIN: try again later, in silence; -errno. The lock is held. */
static int open_file(struct md_audit_reader *r, struct mp_err *err)
{
	int ret = mp_audit_ring_open(&r->ring, r->config.path, r->start, err);
	bool first = !r->audit;

	if (ret)
		return ret == -ENOENT ? -EAGAIN : ret;
	if (first) {
		r->audit = mp_program_audit_new(r->ring.nr_functions, r->config.alpha);
		r->table_hash = r->ring.table_hash;
		if (!r->audit)
			ret = mp_err_set(err, ENOMEM, "out of memory");
	} else if (r->table_hash != r->ring.table_hash ||
		   mp_program_audit_nr_functions(r->audit) != r->ring.nr_functions) {
		ret = mp_err_set(err, EBADMSG, "%s: replaced by another program's file",
				 r->config.path);
	}
	if (!ret)
		ret = exchange_verdicts(r, first, err);
	if (ret)
		mp_audit_ring_close(&r->ring);
	else
		r->problem.msg[0] = '\0';
	return ret;
}

static void close_file(struct md_audit_reader *r)
{
	r->lost += r->ring.lost;
	r->torn += r->ring.torn;
	mp_audit_ring_close(&r->ring);
	r->ring.lost = r->ring.torn = 0;
	r->broken = false;
	r->start = MP_AUDIT_RING_ALL;
	if (r->audit)
		mp_program_audit_break(r->audit);
}

/* ---- windows ------------------------------------------------------------------------------- */

static int take_records(struct md_audit_reader *r, const struct mp_audit_record *records, size_t nr,
			struct mp_err *err)
{
	uint32_t function;
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++) {
		ret = mp_program_audit_add(r->audit, &records[i], &function);
		if (ret)
			ret = mp_err_set(err, -ret, "out of memory");
		else if (function != UINT32_MAX)
			ret = mp_audit_ring_decide(&r->ring, function,
						   mp_program_audit_verdict(r->audit, function),
						   err);
	}
	return ret;
}

/* Reads until nothing is new, or until as many records came as the file holds. */
static int read_windows(struct md_audit_reader *r, struct mp_err *err)
{
	struct mp_audit_record records[RECORDS];
	size_t nr = RECORDS, all = 0;
	int ret = 0;

	while (!ret && nr == RECORDS && all < MP_AUDIT_NR_RECORDS) {
		ret = mp_audit_ring_read(&r->ring, now_ns(), records, RECORDS, &nr, err);
		if (nr && !take_records(r, records, nr, err))
			all += nr;
		else if (nr && !ret)
			ret = -EIO;
	}
	return ret;
}

static void tick(struct md_audit_reader *r)
{
	struct mp_err err = {{0}};
	int64_t now = now_ns();
	int ret = 0;

	pthread_mutex_lock(&r->lock);
	if (r->ring.fd >= 0 && !r->broken)
		ret = read_windows(r, &err);
	if (ret) {
		r->broken = true;
		r->problem = err;
	}
	if (now - r->looked_ns >= LOOK_NS || (r->ring.fd < 0 && !r->problem.msg[0])) {
		r->looked_ns = now;
		if (r->ring.fd >= 0 && mp_audit_ring_replaced(&r->ring, r->config.path))
			close_file(r);
		ret = r->ring.fd < 0 ? open_file(r, &err) : 0;
		if (ret && ret != -EAGAIN)
			r->problem = err;
	}
	pthread_mutex_unlock(&r->lock);
}

static void *run(void *arg)
{
	static const struct timespec pause = {0, TICK_NS};
	struct md_audit_reader *r = arg;
	bool ends = false;

	while (!ends) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&r->lock);
		ends = r->ends;
		pthread_mutex_unlock(&r->lock);
		/* After the program's end, one more tick reads what it left. */
		tick(r);
	}
	return NULL;
}

/* ---- the program ------------------------------------------------------------------------- */

/* Which program it is, for the names of its functions. It may start later, or end soon. */
static void search_program(struct md_audit_reader *r, const struct mp_audit_ring *ring)
{
	const struct md_sandbox_config config = {DEADLINE_MS, MD_AUDITED_FILE_REPLY_MAX,
						 MD_SANDBOX_AUDITS};
	struct md_audited_file *file = malloc(sizeof(*file));

	r->searched_ns = now_ns();
	r->search_ms = r->search_ms < SEARCH_MAX_MS ? 2 * r->search_ms : SEARCH_MAX_MS;
	if (!r->sandbox && !r->no_sandbox)
		r->no_sandbox = md_sandbox_open(&config, &r->sandbox, NULL);
	if (file && (r->sandbox || !md_sandbox_is_needed()) &&
	    !md_audited_file_find(ring->dev, ring->ino, r->config.path, ring->table_hash,
				  r->sandbox, file) &&
	    file->nr_functions == ring->nr_functions) {
		pthread_mutex_lock(&r->lock);
		r->file = *file;
		r->known = true;
		pthread_mutex_unlock(&r->lock);
	}
	free(file);
}

/* A thread of its own: while it reads large files, the windows must not wait. */
static void *search(void *arg)
{
	static const struct timespec pause = {0, 50000000};
	struct md_audit_reader *r = arg;
	bool ends = false;

	while (!ends && !r->known) {
		struct mp_audit_ring ring;

		pthread_mutex_lock(&r->lock);
		ends = r->ends;
		ring = r->ring;
		pthread_mutex_unlock(&r->lock);
		if (!ends && ring.fd >= 0 && now_ns() - r->searched_ns >= r->search_ms * 1000000)
			search_program(r, &ring);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void join(struct md_audit_reader *r, pthread_t thread)
{
	pthread_mutex_lock(&r->lock);
	r->ends = true;
	pthread_mutex_unlock(&r->lock);
	pthread_join(thread, NULL);
}

int md_audit_reader_start(const struct md_audit_config *config, struct md_audit_reader **out,
			  struct mp_err *err)
{
	struct md_audit_reader *r = calloc(1, sizeof(*r));
	sigset_t all, before;
	struct stat st;
	int ret;

	*out = NULL;
	if (!r)
		return mp_err_set(err, ENOMEM, "out of memory");
	r->config = *config;
	r->ring.fd = -1;
	r->search_ms = 250;
	r->searched_ns = -1000000000;
	r->start_s = mp_clock_ns(CLOCK_REALTIME) / 1000000000;
	/* Windows of an earlier run are not those of this audit. */
	r->start = !lstat(config->path, &st) && st.st_size ? MP_AUDIT_RING_FRESH
							   : MP_AUDIT_RING_ALL;
	pthread_mutex_init(&r->lock, NULL);
	tick(r);
	/* The thread must not take signals that others wait for. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&r->thread, NULL, run, r);
	if (!ret) {
		ret = pthread_create(&r->searcher, NULL, search, r);
		if (ret)
			join(r, r->thread);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret) {
		r->ended = true;
		md_audit_reader_free(r);
		return mp_err_set(err, ret, "a thread for the audit: %s", strerror(ret));
	}
	*out = r;
	return 0;
}

void md_audit_reader_end(struct md_audit_reader *r)
{
	if (r->ended)
		return;
	r->ended = true;
	join(r, r->thread);
	join(r, r->searcher);
	if (r->audit)
		mp_program_audit_break(r->audit);
}

void md_audit_reader_free(struct md_audit_reader *r)
{
	if (!r)
		return;
	md_audit_reader_end(r);
	mp_audit_ring_close(&r->ring);
	mp_program_audit_free(r->audit);
	md_sandbox_close(r->sandbox);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* ---- results ------------------------------------------------------------------------------- */

static void read_machine(char *to, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	*to = '\0';
	while (file && !*to && fgets(line, sizeof(line), file))
		if (!strncmp(line, "model name", 10) && strchr(line, ':'))
			snprintf(to, size, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"),
				 strchr(line, ':') + 2);
	if (file)
		fclose(file);
}

/* Copies what is known. The lock is held. */
static void fill(struct md_audit_reader *r, struct mp_stored_audit *a)
{
	a->key = r->key;
	a->table_hash = r->table_hash;
	a->alpha = r->config.alpha;
	a->start_s = r->start_s;
	a->last_s = mp_clock_ns(CLOCK_REALTIME) / 1000000000;
	a->lost = r->lost + r->ring.lost;
	a->torn = r->torn + r->ring.torn;
	a->nr_foreign = mp_program_audit_foreign(r->audit);
	if (r->known) {
		a->id = r->file.id;
		a->original = r->file.original;
	}
	for (uint32_t f = 0; f < a->nr_functions; f++) {
		mp_program_audit_effect(r->audit, f, r->ended, &a->effects[f].effect);
		a->effects[f].vaddr = r->known ? r->file.vaddrs[f] : 0;
	}
}

int md_audit_reader_save(struct md_audit_reader *r, struct mp_store *store, struct mp_err *err)
{
	struct mp_stored_audit a = {0};
	int ret = 0;

	pthread_mutex_lock(&r->lock);
	if (r->audit && store) {
		a.nr_functions = mp_program_audit_nr_functions(r->audit);
		a.effects = calloc(a.nr_functions, sizeof(*a.effects));
		a.path = strdup(r->known ? r->file.path : "");
		if (a.effects && a.path)
			fill(r, &a);
		else
			ret = mp_err_set(err, ENOMEM, "out of memory");
	}
	pthread_mutex_unlock(&r->lock);
	if (!ret && a.nr_functions) {
		read_machine(a.machine, sizeof(a.machine));
		ret = mp_store_put_audit(store, &a, err);
	}
	/* A key that was not committed is not used. */
	if (!ret && a.nr_functions)
		r->key = a.key;
	free(a.effects);
	free(a.path);
	return ret;
}

void md_audit_reader_totals(struct md_audit_reader *r, struct md_audit_totals *out)
{
	struct mp_audit_effect effect;

	*out = (struct md_audit_totals){0};
	md_audit_reader_end(r);
	out->nr_functions = r->audit ? mp_program_audit_nr_functions(r->audit) : 0;
	out->lost = r->lost + r->ring.lost;
	out->torn = r->torn + r->ring.torn;
	for (uint32_t f = 0; f < out->nr_functions; f++) {
		mp_program_audit_effect(r->audit, f, false, &effect);
		out->nr_a += effect.verdict == MP_AUDIT_VERDICT_A;
		out->nr_b += effect.verdict == MP_AUDIT_VERDICT_B;
		out->pairs += effect.pairs;
		for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
			out->dropped += effect.drops[i];
	}
}

const char *md_audit_reader_remark(struct md_audit_reader *r)
{
	struct md_audit_totals totals;

	md_audit_reader_totals(r, &totals);
	if (r->problem.msg[0])
		snprintf(r->remark, sizeof(r->remark), "%s", r->problem.msg);
	else if (!r->audit)
		snprintf(r->remark, sizeof(r->remark),
			 "%.200s: no program filled in this file: nothing was audited",
			 r->config.path);
	else if (!totals.pairs && !totals.dropped)
		snprintf(r->remark, sizeof(r->remark), "%.200s: the program wrote no new windows",
			 r->config.path);
	else if (totals.lost)
		snprintf(r->remark, sizeof(r->remark),
			 "%.200s: %" PRIu64 " windows were overwritten before they were read",
			 r->config.path, totals.lost);
	else
		return NULL;
	return r->remark;
}
