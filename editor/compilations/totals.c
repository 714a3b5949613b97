// SPDX-License-Identifier: Apache-2.0
/* totals - traces a program, and reads its markers when it is about to exit; see totals.h. */
#include "editor/compilations/totals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit/run/audit_run.h"
#include "editor/marker/marker.h"
#include "libprof/cli/exit_status.h"
#include "libprof/elf/mappings.h"

static int by_name(const void *a, const void *b)
{
	const struct me_total *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The distance between the addresses of the file and of the process. */
static int find_bias(pid_t pid, const struct mp_elf *elf, uint64_t *bias, struct mp_err *err)
{
	char path[64], exe[PATH_MAX + 16];
	struct mp_mappings maps;
	struct mp_mapping map;
	ssize_t n;
	int r;

	*bias = 0;
	if (elf->ehdr.e_type == ET_EXEC)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, PATH_MAX);
	if (n <= 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	exe[n] = '\0';
	r = mp_mappings_open(&maps, pid);
	while (!r && !*bias && mp_mappings_next(&maps, &map) > 0)
		if (!strcmp(map.path, exe))
			*bias = map.start;
	mp_mappings_close(&maps);
	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)pid, strerror(-r));
	for (uint32_t i = 0; *bias && i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD) {
			*bias -= elf->phdrs[i].p_vaddr & ~UINT64_C(4095);
			return 0;
		}
	return mp_err_set(err, ENOEXEC, "%s: is not the program that runs", elf->path);
}

/* Adds up variables of one name. */
static void merge(struct me_totals *out)
{
	size_t kept = 0;

	qsort(out->list, out->nr, sizeof(*out->list), by_name);
	for (size_t i = 0; i < out->nr; i++) {
		if (!kept || strcmp(out->list[kept - 1].name, out->list[i].name)) {
			out->list[kept++] = out->list[i];
			continue;
		}
		out->list[kept - 1].value += out->list[i].value;
		free(out->list[i].name);
	}
	out->nr = kept;
}

static int read_totals(pid_t pid, const struct mp_elf *elf, struct me_totals *out,
		       struct mp_err *err)
{
	struct me_markers markers;
	uint64_t bias = 0;
	int rc = me_markers_find(elf, &markers, err);

	if (!rc)
		rc = find_bias(pid, elf, &bias, err);
	me_totals_fini(out); /* of an earlier program image */
	out->list = calloc((size_t)markers.nr + 1, sizeof(*out->list));
	if (!rc && !out->list)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < markers.nr && !rc; i++) {
		const char *name = markers.list[i].name + strlen(ME_MARKER_PREFIX);
		struct me_total *t = &out->list[out->nr];
		struct iovec to = {&t->value, sizeof(t->value)}, from;

		from = (struct iovec){(void *)(uintptr_t)(markers.list[i].vaddr + bias),
				      sizeof(t->value)};
		if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof(t->value))
			rc = mp_err_set(err, errno, "%s: %s", markers.list[i].name,
					strerror(errno));
		t->name = strndup(name, strcspn(name, ".")); /* .lto_priv.0 */
		out->nr += t->name != NULL;
	}
	me_markers_fini(&markers);
	merge(out);
	return rc;
}

/* In the child. */
static void start(const struct me_totals_run *run)
{
	int fd = run->stdin_path ? open(run->stdin_path, O_RDONLY) : STDIN_FILENO;
	int nowhere = run->quiet ? open("/dev/null", O_WRONLY) : -1;

	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 ||
	    (run->quiet && (dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0)))
		_exit(MP_EXIT_NOT_FOUND);
	personality(ADDR_NO_RANDOMIZE);
	if (run->mask)
		sigprocmask(SIG_SETMASK, run->mask, NULL);
	if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		execv(run->path, run->argv);
	_exit(MP_EXIT_NOT_FOUND);
}

/* Return: 0, -ECANCELED, -errno. */
static int wait_for(pid_t pid, int *status, struct mp_err *err)
{
	while (waitpid(pid, status, 0) != pid) {
		if (errno != EINTR)
			return mp_err_set(err, errno, "waitpid: %s", strerror(errno));
		if (me_run_cancelled())
			return -ECANCELED;
	}
	return 0;
}

/* Runs until the program is about to exit; its memory is still there. */
static int trace(pid_t pid, const struct mp_elf *elf, struct me_totals *out, struct mp_err *err)
{
	int status, rc;

	for (;;) {
		int signal = 0;

		rc = wait_for(pid, &status, err);
		if (rc)
			return rc;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			out->status = status;
			return 0;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			rc = read_totals(pid, elf, out, err);
		else if (WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		if (rc)
			return rc;
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal))
			return mp_err_set(err, errno, "PTRACE_CONT: %s", strerror(errno));
	}
}

static int begin(pid_t pid, const char *path, struct mp_err *err)
{
	int status, rc = wait_for(pid, &status, err);

	if (rc)
		return rc;
	if (!WIFSTOPPED(status))
		return mp_err_set(err, ENOEXEC, "%s: does not start", path);
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
		   (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)) ||
	    ptrace(PTRACE_CONT, pid, NULL, NULL))
		return mp_err_set(err, errno, "%s: cannot be traced: %s", path, strerror(errno));
	return 0;
}

int me_totals_take(const struct me_totals_run *run, const struct mp_elf *elf, struct me_totals *out,
		   struct mp_err *err)
{
	sigset_t before;
	pid_t pid;
	int rc;

	*out = (struct me_totals){0};
	pid = fork();
	if (pid < 0)
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	if (!pid)
		start(run);
	sigprocmask(SIG_SETMASK, run->mask, &before);
	rc = begin(pid, run->path, err);
	if (!rc)
		rc = trace(pid, elf, out, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else if (!out->list) {
		rc = mp_err_set(err, ENOEXEC, "%s: ended before its markers could be read",
				run->path);
	}
	return rc;
}

void me_totals_fini(struct me_totals *totals)
{
	for (size_t i = 0; i < totals->nr; i++)
		free(totals->list[i].name);
	free(totals->list);
	*totals = (struct me_totals){.status = totals->status};
}
