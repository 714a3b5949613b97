// SPDX-License-Identifier: Apache-2.0
/* audit_both - two child processes, one for each run; their results lie in shared memory. */
#include "editor/audit/both/audit_both.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/run/audit_library.h"
#include "libprof/base/child.h"

/* The report of one child. */
struct both_report {
	int ret;
	struct mp_err err;
	struct me_run run;
};

static int both_run_one(const struct me_both *both, const struct me_run_spec *spec, int nr,
			struct both_report *report)
{
	int watch, ret;

	if (!both->library)
		return me_run(spec, &report->run, &report->err);
	watch = me_library_watch(both->slot->beside[nr], &report->err);
	if (watch < 0)
		return watch;
	ret = me_run(spec, &report->run, &report->err);
	if (!ret && !me_library_opened(watch))
		ret = mp_err_set(&report->err, ENOLINK, "the command did not open it");
	close(watch);
	return ret;
}

/* In the child. The program starts when the parent closes the other end of @go. */
static void both_child(const struct me_both *both, const struct me_run_spec *spec, int nr, int go,
		       struct both_report *report)
{
	char byte;

	/* The program dies with this process, and this process with the audit. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	report->ret = me_slot_enter(both->slot, nr, &report->err);
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	if (!report->ret)
		report->ret = both_run_one(both, spec, nr, report);
	_exit(0);
}

static int both_start(const struct me_both *both, const struct me_run_spec *spec, pid_t pids[2],
		      struct both_report *reports, struct mp_err *err)
{
	int go[2], ret = 0;

	if (pipe2(go, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	for (int i = 0; !ret && i < 2; i++) {
		reports[i].ret = -EIO; /* stays if the child dies */
		mp_err_set(&reports[i].err, EIO, "the process that watches the run died");
		pids[i] = fork();
		if (pids[i] < 0)
			ret = mp_err_set(err, errno, "fork: %s", strerror(errno));
		if (pids[i])
			continue;
		close(go[1]);
		both_child(both, spec, i, go[0], &reports[i]);
	}
	close(go[0]);
	close(go[1]);
	return ret;
}

/* Wait for both children, whatever happens. SIGTERM lets a child end its program first. */
static int both_wait(const pid_t pids[2], const sigset_t *mask, int ret)
{
	for (int i = 0; i < 2; i++) {
		int status;

		if (pids[i] <= 0)
			continue;
		if (!ret)
			ret = me_child_wait(pids[i], 0, mask, &status);
		if (!ret)
			continue;
		kill(pids[i], SIGTERM);
		mp_child_wait(pids[i], &status);
	}
	return ret;
}

int me_both_run(const struct me_both *both, struct me_run runs[2], struct mp_err *err)
{
	struct me_run_spec spec = *both->spec;
	struct both_report *reports;
	pid_t pids[2] = {-1, -1};
	int ret;

	/* This process has just been scheduled on a CPU that the kernel found free. */
	if (spec.cpu < 0)
		spec.cpu = sched_getcpu();
	reports = mmap(NULL, 2 * sizeof(*reports), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reports == MAP_FAILED)
		return mp_err_set(err, errno, "out of memory");
	ret = both_start(both, &spec, pids, reports, err);
	ret = both_wait(pids, spec.mask, ret);
	for (int i = 0; !ret && i < 2; i++) {
		ret = reports[i].ret;
		if (ret)
			*err = reports[i].err;
		runs[i] = reports[i].run;
	}
	munmap(reports, 2 * sizeof(*reports));
	return ret;
}
