// SPDX-License-Identifier: Apache-2.0
/*
 * test_pipeline - from a recording to the store: samples are conserved, also after damage and
 * SIGKILL.
 */
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/attribute/pipeline.h"
#include "libprof/store/store_drop.h"

static char recording[256], db[256];
static unsigned int nr_warnings;

static void setup(void)
{
	scratch_make();
	snprintf(recording, sizeof(recording), "%s/recording", dir);
	snprintf(db, sizeof(db), "%s/db", dir);
	nr_warnings = 0;
}

#define NR_MODULES   20
#define NR_PROCESSES 40
#define NR_SAMPLES   100 /* in a batch */

static void add(struct md_recwriter *writer, struct md_buf *buf)
{
	struct morph_record *record;
	size_t pos = 0;

	while (!md_record_next(buf->data, buf->size, &pos, &record))
		ck_assert_int_eq(md_recwriter_add(writer, record, NULL), 0);
	buf->size = 0;
}

static void add_module(struct md_buf *buf, uint32_t n)
{
	struct morph_module *r = md_record_add(buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);

	r->module = n;
	r->text_hash = 0x1000 + n;
	r->text_size = 0x100000;
	r->build_id_len = 20;
	memset(r->build_id, n, 20);
	r->nr_segments = 1;
	r->segments[0] = (struct morph_segment){0, 0x400000, 0x100000};
	snprintf((char *)&r->segments[1], 8, "/m%u", n);
}

static void add_process(struct md_buf *buf, uint32_t tgid)
{
	struct morph_exec *exec;
	struct morph_mmap *map;
	uint32_t i;

	exec = md_record_add_task(buf, MORPH_REC_EXEC, sizeof(*exec), 2000, tgid, tgid);
	exec->nr_threads = 1;
	for (i = 0; i < 5; i++) {
		map = md_record_add_mmap(buf, 2000, tgid, tgid, "/m");
		map->module = 1 + (tgid + i) % NR_MODULES;
		map->start = 0x10000000 + i * 0x200000;
		map->len = 0x100000;
	}
}

/* Some samples hit no mapping. Return: number of samples. */
static uint64_t write_recording(unsigned int nr_rounds, bool with_malformed)
{
	struct md_recfile_info info = {.start_ns = 1000, .start_s = 1700000000, .rate_hz = 4000};
	struct md_recwriter *writer;
	struct morph_samples *s;
	struct md_buf buf = {0};
	uint32_t i, k, round, seed = 1;
	uint64_t nr = 0;

	strcpy(info.collector, "perf");
	ck_assert_int_eq(md_recwriter_open(recording, &info, &writer, NULL), 0);
	for (i = 1; i <= NR_MODULES; i++)
		add_module(&buf, i);
	for (i = 1; i <= NR_PROCESSES; i++)
		add_process(&buf, i);
	add(writer, &buf);
	for (round = 0; round < nr_rounds; round++) {
		for (i = 1; i <= NR_PROCESSES; i++) {
			s = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*s) + NR_SAMPLES * 8,
					       3000 + round, i, i);
			for (k = 0; k < NR_SAMPLES; k++) {
				seed = seed * 1103515245 + 12345;
				s->ips[k] = 0x10000000 + (seed >> 8) % 0xb00000;
			}
			nr += NR_SAMPLES;
		}
		add(writer, &buf);
	}
	if (with_malformed) {
		s = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*s) + 8, 1, 1, 1);
		s->task.record.size = 16;
		ck_assert_int_eq(md_recwriter_add(writer, &s->task.record, NULL), 0);
	}
	md_buf_fini(&buf);
	ck_assert_int_eq(md_recwriter_close(writer, NULL), 0);
	return nr;
}

static void warn(void *arg, const char *message)
{
	(void)arg;
	(void)message;
	nr_warnings++;
}

struct run {
	uint32_t nr_repeats;
	double interval_s;
	bool (*should_stop)(void *arg);
	void (*flushed)(void *arg);
	struct mp_ledger total; /* result */
};

static struct md_pipeline *running;

static int run(struct run *r)
{
	struct md_source_config config = {.input = recording, .nr_repeats = r->nr_repeats};
	AUTO_FREE struct md_pipeline *pl = calloc(1, sizeof(*pl));
	int ret;

	ck_assert_ptr_nonnull(pl);
	running = pl;
	ret = md_source_replay.open(&config, &pl->source, &err);
	ck_assert_msg(!ret, "%s", err.msg);
	ret = mp_store_open(db, MP_STORE_WRITE, &pl->store, &err);
	ck_assert_msg(!ret, "%s", err.msg);
	pl->interval_s = r->interval_s;
	pl->warn = warn;
	pl->should_stop = r->should_stop;
	pl->flushed = r->flushed;
	ret = md_pipeline_init(pl, &err);
	ck_assert_msg(!ret, "%s", err.msg);
	ret = md_pipeline_run(pl, &err);
	r->total = pl->total;
	pl->source->ops->close(pl->source);
	mp_store_close(pl->store);
	md_pipeline_fini(pl);
	return ret;
}

/* Return: sum of the ledgers in the store, which must equal the counts. */
static struct mp_ledger stored(void)
{
	struct mp_session *sessions;
	struct mp_ledger sum = {0};
	struct mp_store *store;
	size_t nr, i, k;
	int ret;

	ret = mp_store_open(db, MP_STORE_READ, &store, &err);
	ck_assert_msg(!ret, "%s", err.msg);
	ret = mp_store_check(store, &err);
	ck_assert_msg(!ret, "%s", err.msg);
	ck_assert_int_eq(mp_store_list_sessions(store, &sessions, &nr, &err), 0);
	for (i = 0; i < nr; i++) {
		const struct mp_ledger *l = &sessions[i].ledger;

		sum.emitted += l->emitted;
		sum.attributed += l->attributed;
		for (k = 0; k < MP_NR_UNATTR; k++)
			sum.unattributed[k] += l->unattributed[k];
		for (k = 0; k < MP_NR_LOST; k++)
			sum.lost[k] += l->lost[k];
	}
	free(sessions);
	mp_store_close(store);
	ck_assert_uint_eq(sum.emitted,
			  sum.attributed + md_ledger_unattributed(&sum) + md_ledger_lost(&sum));
	return sum;
}

FIXTURE(setup, scratch_remove);

TEST(replay_accounts_for_every_sample)
{
	struct run r = {.interval_s = 10};
	struct mp_ledger sum;
	uint64_t nr = write_recording(50, false);

	ck_assert_int_eq(run(&r), 0);
	sum = stored();
	ck_assert_uint_eq(sum.emitted, nr);
	ck_assert_uint_gt(sum.attributed, nr / 3);
	ck_assert_uint_gt(sum.unattributed[MP_UNATTR_NO_MAPPING], nr / 10);
	ck_assert_mem_eq(&sum, &r.total, sizeof(sum));
	ck_assert_uint_eq(nr_warnings, 0);
}

TEST(repetitions_multiply_every_count)
{
	struct run once = {.interval_s = 10}, many = {.interval_s = 0, .nr_repeats = 7};
	struct mp_ledger sum;

	write_recording(20, false);
	ck_assert_int_eq(run(&once), 0);
	unlink(db);
	ck_assert_int_eq(run(&many), 0);
	sum = stored();
	ck_assert_uint_eq(sum.emitted, 7 * once.total.emitted);
	ck_assert_uint_eq(sum.attributed, 7 * once.total.attributed);
	ck_assert_uint_eq(sum.unattributed[MP_UNATTR_NO_PROCESS], 0);
}

TEST(counts_are_kept_under_the_days_of_the_recording)
{
	struct run r = {.interval_s = 10};
	struct mp_module *modules;
	struct mp_store *store;
	size_t nr;

	write_recording(5, false);
	ck_assert_int_eq(run(&r), 0);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, NULL), 0);
	ck_assert_int_eq(mp_store_list_modules(store, 1700000000 - 86400, &modules, &nr, NULL), 0);
	ck_assert_uint_eq(nr, NR_MODULES);
	ck_assert_int_eq(modules[0].first_s, 1700000000);
	ck_assert_uint_gt(modules[0].nr_samples, 0);
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
}

TEST(truncated_recording_is_accounted_for)
{
	struct run r = {.interval_s = 10};
	struct mp_ledger sum;
	uint64_t nr = write_recording(50, false);
	struct stat st;

	ck_assert_int_eq(stat(recording, &st), 0);
	ck_assert_int_eq(truncate(recording, st.st_size / 2), 0);
	ck_assert_int_eq(run(&r), 0);
	sum = stored();
	ck_assert_uint_gt(sum.attributed, nr / 6);
	ck_assert_uint_lt(sum.emitted, nr);
	ck_assert_uint_gt(sum.lost[MP_LOST_TORN], 0);
}

TEST(damage_in_the_middle_loses_a_chunk_and_what_it_said_of_processes)
{
	struct run r = {.interval_s = 10};
	struct mp_ledger sum;
	uint64_t nr = write_recording(50, false);
	uint8_t byte = 0xff;
	struct stat st;
	int fd;

	ck_assert_int_eq(stat(recording, &st), 0);
	fd = open(recording, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	close(fd);
	ck_assert_int_eq(run(&r), 0);
	sum = stored();
	ck_assert_uint_eq(sum.emitted, nr);
	ck_assert_uint_gt(sum.lost[MP_LOST_TORN], 0);
	/* Events in the damaged part are unknown, so later samples stay unattributed. */
	ck_assert_uint_gt(sum.unattributed[MP_UNATTR_NO_PROCESS], nr / 4);
	ck_assert_uint_gt(sum.attributed, nr / 6);
}

TEST(malformed_record_costs_the_rest_of_its_chunk)
{
	struct run r = {.interval_s = 10};
	struct mp_ledger sum;
	uint64_t nr = write_recording(50, true);

	ck_assert_int_eq(run(&r), 0);
	sum = stored();
	ck_assert_uint_eq(sum.lost[MP_LOST_TORN], 1);
	ck_assert_uint_eq(sum.emitted, nr + 1);
	ck_assert_uint_eq(nr_warnings, 1);
}

static bool stop_after_a_while(void *arg)
{
	static int turns;

	(void)arg;
	return ++turns == 5;
}

TEST(stopping_early_keeps_what_was_read)
{
	struct run r = {.interval_s = 10, .nr_repeats = 1000, .should_stop = stop_after_a_while};
	uint64_t nr = write_recording(50, false);

	ck_assert_int_eq(run(&r), 0);
	ck_assert_uint_gt(r.total.emitted, 0);
	ck_assert_uint_lt(r.total.emitted, nr * 1000);
	ck_assert_uint_eq(stored().emitted, r.total.emitted);
}

TEST(change_of_source_begins_a_session_and_keeps_all_counts)
{
	struct md_source_config config = {.input = recording};
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct md_source *second;
	AUTO_FREE struct mp_session *sessions = NULL;
	struct mp_store *store;
	uint64_t nr = write_recording(30, false);
	struct mp_ledger total;
	size_t nr_modules, nr_sessions;

	ck_assert_int_eq(md_source_replay.open(&config, &pl->source, &err), 0);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &pl->store, &err), 0);
	pl->interval_s = 10;
	ck_assert_int_eq(md_pipeline_init(pl, &err), 0);
	ck_assert_int_eq(md_pipeline_run(pl, &err), 0);
	ck_assert_uint_eq(pl->total.emitted, nr);
	nr_modules = md_pipeline_nr_modules(pl);
	ck_assert_int_eq(md_source_replay.open(&config, &second, &err), 0);
	pl->source->ops->close(pl->source);
	ck_assert_int_eq(md_pipeline_change(pl, second, &err), 0);
	ck_assert_int_eq(md_pipeline_run(pl, &err), 0);
	total = pl->total;
	/* The same modules, without duplicates. */
	ck_assert_uint_eq(md_pipeline_nr_modules(pl), nr_modules);
	pl->source->ops->close(pl->source);
	mp_store_close(pl->store);
	md_pipeline_fini(pl);
	free(pl);
	ck_assert_uint_eq(total.emitted, 2 * nr);
	ck_assert_uint_eq(total.unattributed[MP_UNATTR_NO_PROCESS], 0);
	ck_assert_uint_eq(stored().emitted, 2 * nr);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), 0);
	ck_assert_int_eq(mp_store_list_sessions(store, &sessions, &nr_sessions, &err), 0);
	ck_assert_uint_eq(nr_sessions, 2);
	ck_assert_uint_eq(sessions[0].ledger.emitted, nr);
	ck_assert_uint_eq(sessions[1].ledger.emitted, nr);
	mp_store_close(store);
}

TEST(modules_that_morph_worker_drops_meanwhile_are_stored_anew)
{
	struct md_source_config config = {.input = recording};
	AUTO_FREE struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct mp_module *modules;
	struct md_source *second;
	struct mp_store *store;
	uint64_t nr = write_recording(10, false);
	size_t nr_modules;

	ck_assert_int_eq(md_source_replay.open(&config, &pl->source, &err), 0);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &pl->store, &err), 0);
	pl->interval_s = 10;
	ck_assert_int_eq(md_pipeline_init(pl, &err), 0);
	ck_assert_int_eq(md_pipeline_run(pl, &err), 0);
	/* morph-worker is another connection. It drops all, so that no key stays what it was. */
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	ck_assert_int_eq(mp_store_list_modules(store, 0, &modules, &nr_modules, &err), 0);
	ck_assert_uint_eq(nr_modules, NR_MODULES);
	for (size_t i = 0; i < nr_modules; i++)
		ck_assert_int_eq(mp_store_drop_module(store, modules[i].key, &err), 0);
	mp_store_free_modules(modules, nr_modules);
	ck_assert_int_eq(md_source_replay.open(&config, &second, &err), 0);
	pl->source->ops->close(pl->source);
	ck_assert_int_eq(md_pipeline_change(pl, second, &err), 0);
	ck_assert_int_eq(md_pipeline_run(pl, &err), 0);
	ck_assert_uint_eq(pl->total.emitted, 2 * nr);
	ck_assert_int_eq(mp_store_list_modules(store, 0, &modules, &nr_modules, &err), 0);
	ck_assert_uint_eq(nr_modules, NR_MODULES);
	mp_store_free_modules(modules, nr_modules);
	ck_assert_msg(!mp_store_check(store, &err), "%s", err.msg);
	mp_store_close(store);
	pl->source->ops->close(pl->source);
	mp_store_close(pl->store);
	md_pipeline_fini(pl);
}

static unsigned int nr_steps;

static void count_step(void *arg)
{
	(void)arg;
	nr_steps++;
}

TEST(each_batch_is_a_step)
{
	struct md_source_config config = {.input = recording, .nr_repeats = 40};
	AUTO_FREE struct md_pipeline *pl = calloc(1, sizeof(*pl));

	write_recording(10, false);
	ck_assert_int_eq(md_source_replay.open(&config, &pl->source, &err), 0);
	pl->interval_s = 10;
	pl->step = count_step;
	ck_assert_int_eq(md_pipeline_init(pl, &err), 0);
	ck_assert_int_eq(md_pipeline_run(pl, &err), 0);
	ck_assert_uint_ge(nr_steps, 40);
	pl->source->ops->close(pl->source);
	md_pipeline_fini(pl);
}

TEST(recording_a_replay_gives_the_same_recording)
{
	struct md_source_config config = {.input = recording};
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct md_recfile_info info;
	char copy[256];
	struct run r = {.interval_s = 10};
	struct mp_ledger first;

	write_recording(30, false);
	ck_assert_int_eq(run(&r), 0);
	first = r.total;
	snprintf(copy, sizeof(copy), "%s/copy", dir);
	ck_assert_int_eq(md_source_replay.open(&config, &pl->source, NULL), 0);
	pl->source->ops->describe(pl->source, &info);
	ck_assert_int_eq(md_recwriter_open(copy, &info, &pl->writer, NULL), 0);
	pl->interval_s = 10;
	ck_assert_int_eq(md_pipeline_init(pl, NULL), 0);
	ck_assert_int_eq(md_pipeline_run(pl, NULL), 0);
	ck_assert_mem_eq(&pl->total, &first, sizeof(first));
	ck_assert_int_eq(md_recwriter_close(pl->writer, NULL), 0);
	pl->source->ops->close(pl->source);
	md_pipeline_fini(pl);
	free(pl);
	ck_assert_int_eq(rename(copy, recording), 0);
	unlink(db);
	ck_assert_int_eq(run(&r), 0);
	ck_assert_mem_eq(&r.total, &first, sizeof(first));
}

/* ---- SIGKILL -------------------------------------------------------------------------------- */

static int report_fd;

static void tell_total(void *arg)
{
	uint64_t total = running->total.emitted;

	(void)arg;
	if (write(report_fd, &total, sizeof(total)) != sizeof(total))
		_exit(1);
}

/*
 * A child flushes as often as it can and is killed while flushing. All that it reported as
 * stored must be there, and at most one more interval.
 */
TEST_EACH(killed_in_mid_flush_loses_one_interval_at_most, 20)
{
	uint64_t said = 0, before = 0, step = 0, total;
	struct mp_ledger sum;
	struct run r = {.nr_repeats = 1000000, .flushed = tell_total};
	int fds[2], status;
	pid_t pid;

	write_recording(50, false);
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		report_fd = fds[1];
		run(&r);
		_exit(0);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &total, sizeof(total)), sizeof(total));
	usleep(1000 + _i * 3777);
	kill(pid, SIGKILL);
	do {
		if (total - before > step)
			step = total - before;
		before = said = total;
	} while (read(fds[0], &total, sizeof(total)) == sizeof(total));
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	sum = stored();
	ck_assert_uint_ge(sum.emitted, said);
	/* An interval may have one batch more or less. */
	ck_assert_uint_le(sum.emitted, said + 2 * step);
	/* The next daemon continues with the database. */
	r = (struct run){.interval_s = 10};
	ck_assert_int_eq(run(&r), 0);
	ck_assert_uint_eq(stored().emitted, sum.emitted + r.total.emitted);
}
