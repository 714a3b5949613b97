// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_several - further outputs of one file (me_optimize_options.then), without reading the file again for each:
 * where they begin to differ from the first one, a child process goes on with each. It has the analysis as it is at
 * that moment, and what it does with it touches no other output. Called by optimize.c and optimize_plan.c.
 *
 *	file, blocks, functions --+--> profile, counts, layout --+--> ... the first output
 *	                          +--> another profile, or none  +--> the same layout with other stubs
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/optimize/optimize_private.h"
#include "libprof/base/clock.h"

/* What a child tells its parent. */
struct me_several_result {
	bool ended;
	int rc;
	struct mp_err err;
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* May outputs by these options share anything? Others are rare, and read the file again. */
static bool is_simple(const struct me_optimize_options *o)
{
	return o->output && !o->files && !o->debug_file && !o->sampled_db && !o->stress &&
	       !o->stress_inline && !o->plan && !o->save_plan && !o->skip.given && !o->only.given &&
	       !o->adjust_words.nr && !o->nr_adjusts && !o->audited_db && !o->remove_markers &&
	       !o->print && !o->take_plan && !o->counting.none && !o->counting.paths &&
	       !o->counting.audit && !o->counting.calls &&
	       (!o->layout.original || o->counting.meter);
}

static bool same_file(const struct me_optimize_options *a, const struct me_optimize_options *b)
{
	return is_simple(a) && is_simple(b) && !strcmp(a->input, b->input) &&
	       !a->live_at == !b->live_at;
}

/* Neither a meter nor its lack changes a layout; counters of all edges do. */
static bool same_layout(const struct me_optimize_options *a, const struct me_optimize_options *b)
{
	/* A metered version reads the profile without storing its fingerprint. */
	return same_file(a, b) && !a->all && !b->all && !a->counting.edges && !b->counting.edges &&
	       (!me_counting_any(&a->counting) || me_counting_any(&b->counting)) &&
	       same_text(a->db, b->db) && a->since_s == b->since_s &&
	       a->min_samples == b->min_samples && a->estimator == b->estimator &&
	       a->stale.never == b->stale.never && same_text(a->stale.from, b->stale.from) &&
	       a->exact_profile == b->exact_profile &&
	       !memcmp(&a->layout, &b->layout, sizeof(a->layout));
}

static enum me_branch branch_of(const struct me_optimize_options *a,
				const struct me_optimize_options *b)
{
	if (same_layout(a, b))
		return ME_BRANCH_LAYOUT;
	return same_file(a, b) ? ME_BRANCH_FILE : ME_BRANCH_START;
}

const char *me_several_meter(const struct me_several *s)
{
	for (uint32_t i = 0; i < s->nr_more; i++)
		if (s->more[i].counting.meter && same_file(&s->own, &s->more[i]))
			return s->more[i].counting.meter;
	return NULL;
}

/* Waits for the child, and passes on the signals that end this process. Return: the last of them; 0: none came. */
static int wait_for(pid_t pid, const sigset_t *mask)
{
	int passed = 0;

	while (!waitpid(pid, NULL, WNOHANG)) {
		int sig = sigwaitinfo(mask, NULL);

		if (sig <= 0 || sig == SIGCHLD)
			continue;
		kill(pid, sig);
		passed = sig;
	}
	return passed;
}

/* Return: 1 in the child; 0 in the parent, after the child has made its output; -errno. */
static int run_child(struct me_several_result *result, const char *output, struct mp_err *err)
{
	sigset_t mask, before;
	pid_t pid, parent = getpid();
	int sig;

	/* Whoever started this process may ignore it: then no signal would come. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, &before);
	pid = fork();
	if (!pid) {
		/* If the parent is killed, nobody waits for this output. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (getppid() != parent)
			_exit(1);
		return 1;
	}
	sig = pid < 0 ? 0 : wait_for(pid, &mask);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (sig)
		raise(sig);
	if (pid < 0)
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	if (!result->ended)
		return mp_err_set(err, EIO, "%s: the process that makes it was ended", output);
	if (result->rc && err)
		*err = result->err;
	return result->rc;
}

/* The same, with room for the result. In the child, the room stays. */
static int branch(struct me_several *s, const struct me_optimize_options *o, struct mp_err *err)
{
	struct me_several_result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (result == MAP_FAILED)
		return mp_err_code(err, ENOMEM);
	rc = run_child(result, o->output, err);
	if (rc <= 0) {
		munmap(result, sizeof(*result));
		return rc;
	}
	s->own = *o;
	s->own.all |= o->layout.original;
	s->nr_more = 0;
	s->result = result;
	return 1;
}

int me_several_branch(struct me_several *s, enum me_branch at, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->nr_more; i++)
		if (branch_of(&s->own, &s->more[i]) == at)
			rc = branch(s, &s->more[i], err);
	return rc;
}

void me_several_end(const struct me_several *s, int rc, const struct mp_err *err)
{
	if (!s->result)
		return;
	s->result->rc = rc;
	if (rc)
		s->result->err = *err;
	s->result->ended = true;
	_exit(0);
}

int me_job_branch(struct me_job *job, enum me_branch at, enum me_stage stage, struct mp_err *err)
{
	int rc;

	if (!job->several->nr_more)
		return 0;
	me_job_end_stage(job, stage);
	rc = me_several_branch(job->several, at, err);
	job->stage_start_s = mp_now_s();
	return rc;
}
