// SPDX-License-Identifier: Apache-2.0
/*
 * audit - runs the pairs, in an order drawn by a coin, until the sequential test
 * decides or a limit is reached. Called by morph_audit.c.
 */
#include "editor/audit/audit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>

#include "editor/audit/audit_run.h"
#include "editor/audit/audit_slot.h"

#define NS_PER_SEC 1e9

enum {
	SIDE_A,
	SIDE_B
};

struct audit_state {
	const struct me_audit_opts *opts;
	struct me_audit *audit;
	struct me_program programs[2];
	struct me_slot slot;
	struct me_run_spec spec;
	char **argv;
	struct me_run reference; /* A's first run */
	uint64_t longest_ns;	 /* the longest of A's runs so far, wall time */
	struct timespec start;
};

static double audit_seconds(const struct audit_state *as)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - as->start.tv_sec) +
	       (double)(now.tv_nsec - as->start.tv_nsec) / NS_PER_SEC;
}

static const char *audit_name(const struct me_audit_opts *opts)
{
	const char *slash = strrchr(opts->a, '/');

	if (opts->name)
		return opts->name;
	return slash ? slash + 1 : opts->a;
}

static int audit_make_argv(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	size_t nr = 0, i = 0;

	while (opts->args && opts->args[nr])
		nr++;
	as->argv = calloc(nr + 2, sizeof(*as->argv));
	if (!as->argv)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!opts->command)
		as->argv[i++] = (char *)me_slot_path(&as->slot);
	for (nr = 0; opts->args && opts->args[nr]; nr++)
		as->argv[i++] = opts->args[nr];
	return 0;
}

static int audit_add_pair(struct me_audit *audit, uint64_t a, uint64_t b, struct mp_err *err)
{
	int ret = me_seq_add(&audit->seq, log((double)a / (double)b));

	if (ret)
		return mp_err_set(err, -ret, "pair %zu: %s", audit->nr_pairs + 1, strerror(-ret));
	audit->a.times_ns[audit->nr_pairs] = a;
	audit->b.times_ns[audit->nr_pairs] = b;
	audit->nr_pairs++;
	return 0;
}

/*
 * Add the pairs of the audit that this one continues. The test is valid at every look,
 * so an audit may be stopped and continued.
 */
static int audit_take_earlier(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	const struct me_audit_pairs *earlier = opts->earlier;
	struct me_audit *audit = as->audit;
	int ret = 0;

	if (!earlier)
		return 0;
	if (earlier->a_hash != audit->a_hash || earlier->b_hash != audit->b_hash)
		return mp_err_set(err, EINVAL,
				  "--continue: the pairs in that file were "
				  "measured with another %s",
				  earlier->a_hash != audit->a_hash ? opts->a : opts->b);
	if (earlier->metric != opts->metric)
		return mp_err_set(err, EINVAL,
				  "--continue: the pairs in that file were "
				  "measured with another --metric");
	if (earlier->nr >= opts->max_pairs)
		return mp_err_set(err, EINVAL,
				  "--continue: that file holds %zu pairs already: raise the "
				  "maximum of --pairs",
				  earlier->nr);
	for (size_t i = 0; !ret && i < earlier->nr; i++)
		ret = audit_add_pair(audit, earlier->a_ns[i], earlier->b_ns[i], err);
	audit->nr_earlier = audit->nr_pairs;
	return ret;
}

static int audit_open(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	int ret, i;

	ret = me_program_open(&as->programs[SIDE_A], opts->a, err);
	if (!ret)
		ret = me_program_open(&as->programs[SIDE_B], opts->b, err);
	if (!ret)
		ret = me_program_hash(&as->programs[SIDE_A], &as->audit->a_hash, err);
	if (!ret)
		ret = me_program_hash(&as->programs[SIDE_B], &as->audit->b_hash, err);
	if (!ret)
		ret = me_slot_open(&as->slot, opts->parent, audit_name(opts), opts->at, err);
	if (!ret)
		ret = audit_make_argv(as, err);
	for (i = 0; !ret && !opts->command && i < 2; i++)
		if (!(as->programs[i].st.st_mode & 0111))
			ret = mp_err_set(err, EACCES, "%s: not executable", as->programs[i].path);
	if (ret)
		return ret;
	as->spec = (struct me_run_spec){
		.path = opts->command ? opts->command : me_slot_path(&as->slot),
		.argv = as->argv,
		.envp = opts->envp,
		.stdin_path = opts->stdin_path,
		.filter = opts->filter,
		.files = opts->files,
		.with_stderr = opts->with_stderr,
		.cpu = opts->cpu,
		.mask = opts->mask,
	};
	as->audit->a.times_ns = calloc(opts->max_pairs, sizeof(uint64_t));
	as->audit->b.times_ns = calloc(opts->max_pairs, sizeof(uint64_t));
	if (!as->audit->a.times_ns || !as->audit->b.times_ns)
		return mp_err_set(err, ENOMEM, "out of memory");
	return audit_take_earlier(as, err);
}

static void audit_close(struct audit_state *as)
{
	me_slot_close(&as->slot);
	me_program_close(&as->programs[SIDE_A]);
	me_program_close(&as->programs[SIDE_B]);
	free(as->argv);
}

static void audit_describe_end(const struct me_run *run, char *to, size_t size)
{
	if (run->timed_out)
		snprintf(to, size, "did not end in time");
	else if (WIFSIGNALED(run->status))
		snprintf(to, size, "killed by signal %d (%s)", WTERMSIG(run->status),
			 strsignal(WTERMSIG(run->status)));
	else
		snprintf(to, size, "exit status %d", WEXITSTATUS(run->status));
}

static bool output_same(const struct me_run_output *x, const struct me_run_output *y)
{
	return x->hash[0] == y->hash[0] && x->hash[1] == y->hash[1] &&
	       x->size_bytes == y->size_bytes;
}

static void describe_output(char *to, size_t size, const char *what,
			    const struct me_run_output *ref, const struct me_run_output *got)
{
	if (ref->size_bytes == got->size_bytes)
		snprintf(to, size, "%s: %llu bytes, but different ones", what,
			 (unsigned long long)got->size_bytes);
	else
		snprintf(to, size, "%s: %llu bytes instead of %llu", what,
			 (unsigned long long)got->size_bytes, (unsigned long long)ref->size_bytes);
}

/* Describe in @what how @run differs from the reference. Return: false if it does not. */
static bool audit_differs(const struct audit_state *as, const struct me_run *run, char *what,
			  size_t size)
{
	const struct me_run *ref = &as->reference;
	char end[64], ref_end[64];

	if (run->status != ref->status || run->timed_out) {
		audit_describe_end(run, end, sizeof(end));
		audit_describe_end(ref, ref_end, sizeof(ref_end));
		snprintf(what, size, "%s instead of %s%s%s", end, ref_end,
			 run->last_stderr_line[0] ? "; it said: " : "", run->last_stderr_line);
	} else if (!output_same(&run->out, &ref->out)) {
		describe_output(what, size, "stdout", &ref->out, &run->out);
	} else if (!output_same(&run->err, &ref->err)) {
		describe_output(what, size, "stderr", &ref->err, &run->err);
	} else if (!output_same(&run->files, &ref->files)) {
		describe_output(what, size, "files", &ref->files, &run->files);
	} else {
		return false;
	}
	return true;
}

static uint64_t audit_timeout_ns(const struct audit_state *as)
{
	if (as->opts->timeout_seconds > 0)
		return (uint64_t)(as->opts->timeout_seconds * NS_PER_SEC);
	if (!as->longest_ns)
		return 0;
	return 10 * as->longest_ns + (uint64_t)(10 * NS_PER_SEC);
}

static int audit_run_side(struct audit_state *as, int side, struct me_run *run, struct mp_err *err)
{
	const char *path = as->programs[side].path;
	struct mp_err cause = {""};
	int ret = me_slot_put(&as->slot, &as->programs[side], err);

	if (ret)
		return ret;
	as->spec.timeout_ns = audit_timeout_ns(as);
	ret = me_run(&as->spec, run, &cause);
	as->audit->nr_runs++;
	if (ret == -EACCES && !as->opts->at)
		return mp_err_set(err, EACCES,
				  "%s: cannot be executed from %s: %s (--dir names another place)",
				  path, as->slot.dir, strerror(EACCES));
	if (ret)
		return mp_err_set(err, -ret, "%s: %s", path, cause.msg);
	if (side == SIDE_A && run->wall_ns > as->longest_ns)
		as->longest_ns = run->wall_ns;
	if (as->opts->progress)
		as->opts->progress(&as->audit->seq, as->opts->progress_arg);
	return 0;
}

/* Run A once: every later run is compared with this one. */
static int audit_take_reference(struct audit_state *as, struct mp_err *err)
{
	struct me_run *ref = &as->reference;
	char end[64];
	int ret = audit_run_side(as, SIDE_A, ref, err);

	if (ret)
		return ret;
	if (ref->timed_out || WIFSIGNALED(ref->status)) {
		audit_describe_end(ref, end, sizeof(end));
		return mp_err_set(err, EINVAL, "%s: %s%s%s", as->opts->a, end,
				  ref->last_stderr_line[0] ? "; it said: " : "",
				  ref->last_stderr_line);
	}
	return 0;
}

/*
 * Run once and compare with the reference. If B differs, run A again: if A then differs
 * from its own first run, nothing is known about B. Return: 0, 1 if B differs, -errno.
 */
static int audit_checked_run(struct audit_state *as, int side, struct me_run *run,
			     struct mp_err *err)
{
	struct me_audit *audit = as->audit;
	char what[sizeof(audit->difference)];
	struct me_run again;
	int ret = audit_run_side(as, side, run, err);

	if (ret)
		return ret;
	if (!audit_differs(as, run, what, sizeof(what)))
		return 0;
	if (side == SIDE_B) {
		memcpy(audit->difference, what, sizeof(what));
		ret = audit_run_side(as, SIDE_A, &again, err);
		if (ret)
			return ret;
		if (!audit_differs(as, &again, what, sizeof(what)))
			return 1;
		audit->difference[0] = 0;
	}
	return mp_err_set(err, EINVAL, "%s: its runs give different results (%.120s)%s",
			  as->opts->a, what,
			  as->opts->filter ? "" : "; --filter can remove what varies");
}

static uint64_t audit_time(const struct audit_state *as, const struct me_run *run)
{
	uint64_t ns = as->opts->metric == ME_METRIC_WALL   ? run->wall_ns
		      : as->opts->metric == ME_METRIC_USER ? run->user_ns
							   : run->cpu_ns;

	return ns ? ns : 1000; /* less than the clock's unit, a microsecond */
}

/* A fair coin, 0 or 1. The test is valid only if the coin decides each pair's order. */
static int audit_coin(void)
{
	unsigned char byte = 0;

	while (getrandom(&byte, 1, 0) != 1)
		;
	return byte & 1;
}

/* Return: 0, 1 if B differs, -errno. */
static int audit_pair(struct audit_state *as, bool counted, struct mp_err *err)
{
	int first = audit_coin(), i, ret;
	struct me_run runs[2];

	for (i = 0; i < 2; i++) {
		int side = first ^ i;

		ret = audit_checked_run(as, side, &runs[side], err);
		if (ret)
			return ret;
	}
	if (!counted)
		return 0;
	return audit_add_pair(as->audit, audit_time(as, &runs[SIDE_A]),
			      audit_time(as, &runs[SIDE_B]), err);
}

/* Is the interval as narrow as the user asked for? */
static bool audit_precise(const struct audit_state *as)
{
	double lo, hi;

	if (as->opts->precision <= 0)
		return true;
	me_seq_interval(&as->audit->seq, &lo, &hi);
	return (hi - lo) / 2 <= as->opts->precision;
}

/* Should the audit stop now, and with which verdict? The test is valid after every pair. */
static bool audit_decide(const struct audit_state *as, enum me_audit_verdict *verdict)
{
	const struct me_audit_opts *opts = as->opts;
	const struct me_seq *seq = &as->audit->seq;
	double eq = opts->indifference;
	bool limit = seq->nr >= opts->max_pairs || (seq->nr >= opts->pairs_despite_timeout &&
						    audit_seconds(as) >= opts->max_seconds);

	*verdict = ME_AUDIT_UNDECIDED;
	if (seq->verdict == ME_SEQ_POSITIVE)
		*verdict = ME_AUDIT_FASTER;
	else if (seq->verdict == ME_SEQ_NEGATIVE)
		*verdict = ME_AUDIT_SLOWER;
	else if (eq > 0 && me_seq_holds(seq, 0) && !me_seq_holds(seq, eq) &&
		 !me_seq_holds(seq, -eq))
		*verdict = ME_AUDIT_EQUAL;
	if (limit)
		return true;
	if (seq->nr < opts->min_pairs || *verdict == ME_AUDIT_UNDECIDED)
		return false;
	return *verdict == ME_AUDIT_EQUAL || audit_precise(as);
}

static int u64_compare(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

static double audit_median(const uint64_t *times, size_t nr)
{
	uint64_t *sorted;
	double median;

	sorted = nr ? malloc(nr * sizeof(*sorted)) : NULL;
	if (!sorted)
		return 0;
	memcpy(sorted, times, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), u64_compare);
	median = ((double)sorted[(nr - 1) / 2] + (double)sorted[nr / 2]) / 2;
	free(sorted);
	return median;
}

static int audit_pairs(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	size_t i;
	int ret;

	ret = audit_take_reference(as, err);
	for (i = 0; !ret && i < opts->warmup; i++)
		ret = audit_pair(as, false, err);
	if (ret)
		return ret;
	do
		ret = audit_pair(as, true, err);
	while (!ret && !audit_decide(as, &as->audit->verdict));
	return ret;
}

int me_audit_run(const struct me_audit_opts *opts, struct me_audit *audit, struct mp_err *err)
{
	struct audit_state as = {
		.opts = opts, .audit = audit, .programs = {{.fd = -1}, {.fd = -1}}};
	int ret;

	memset(audit, 0, sizeof(*audit));
	me_seq_init(&audit->seq, opts->alpha);
	clock_gettime(CLOCK_MONOTONIC, &as.start);
	ret = audit_open(&as, err);
	if (!ret)
		ret = audit_pairs(&as, err);
	if (ret == 1) {
		audit->verdict = ME_AUDIT_DIFFERS;
		ret = 0;
	}
	me_seq_interval(&audit->seq, &audit->lo, &audit->hi);
	audit->a.median_ns = audit_median(audit->a.times_ns, audit->nr_pairs);
	audit->b.median_ns = audit_median(audit->b.times_ns, audit->nr_pairs);
	audit->seconds = audit_seconds(&as);
	audit->status = as.reference.status;
	audit->size_bytes = as.reference.out.size_bytes + as.reference.err.size_bytes +
			    as.reference.files.size_bytes;
	audit_close(&as);
	return ret;
}

void me_audit_fini(struct me_audit *audit)
{
	me_seq_fini(&audit->seq);
	free(audit->a.times_ns);
	free(audit->b.times_ns);
	audit->a.times_ns = audit->b.times_ns = NULL;
}
