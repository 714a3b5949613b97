// SPDX-License-Identifier: Apache-2.0
/* audit_stage - sets the stage up, and runs one side on it. */
#include "editor/audit/audit_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/both/audit_both.h"
#include "editor/audit/both/audit_sharing.h"
#include "editor/audit/run/audit_child.h"
#include "editor/audit/run/audit_hooks.h"
#include "editor/audit/run/audit_library.h"
#include "editor/base/soname.h"

/* Can mounts be made here at all? Each kernel and container refuses in its own way. */
static bool namespace_refused(int ret)
{
	return ret == -EPERM || ret == -EACCES || ret == -ENOSPC || ret == -EUSERS ||
	       ret == -ENOSYS;
}

/*
 * Without the right to mount, the library lies in the slot under its soname, and LD_LIBRARY_PATH
 * leads there. If the program looks elsewhere, the run does not open the file, and that is an
 * error.
 */
static int stage_open_library(struct me_stage *stage, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;
	char *soname;
	int ret;

	ret = me_slot_open(&stage->slot, opts->parent, basename(opts->a), opts->at, err);
	if (!namespace_refused(ret))
		return ret;
	soname = me_soname(opts->a);
	ret = me_slot_open(&stage->slot, opts->parent, soname ? soname : basename(opts->a), NULL,
			   err);
	free(soname);
	if (ret)
		return ret;
	stage->envp = me_library_environment(opts->envp, stage->slot.dir);
	return stage->envp ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

static int stage_open_slot(struct me_stage *stage, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;

	if (opts->library)
		return stage_open_library(stage, err);
	return me_slot_open(&stage->slot, opts->parent, opts->name ? opts->name : basename(opts->a),
			    opts->at, err);
}

static int stage_open_programs(struct me_stage *stage, struct mp_err *err)
{
	int ret = me_program_open(&stage->programs[ME_SIDE_A], stage->opts->a, err);

	if (!ret)
		ret = me_program_open(&stage->programs[ME_SIDE_B], stage->opts->b, err);
	for (int i = 0; !ret && !stage->opts->command && i < 2; i++)
		if (!(stage->programs[i].st.st_mode & 0111))
			ret = mp_err_set(err, EACCES, "%s: not executable",
					 stage->programs[i].path);
	return ret;
}

/* Each run reads the input from its start. */
static int stage_check_stdin(const char *path, struct mp_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return mp_err_set(err, EINVAL,
				  "%s: not a file that each run could read from its start", path);
	return 0;
}

/* The files to be compared are removed after each run: none of them may be an input. */
static int stage_check_files(const struct me_stage *stage, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;
	const char *inputs[] = {opts->a, opts->b, opts->command, opts->stdin_path};

	for (char *const *file = opts->files; file && *file; file++) {
		struct stat st, input;

		if (lstat(*file, &st))
			continue;
		if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
			return mp_err_set(err, EINVAL,
					  "%s: not a regular file: --compare-file removes it after "
					  "each run",
					  *file);
		for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
			if (inputs[i] && !stat(inputs[i], &input) && input.st_dev == st.st_dev &&
			    input.st_ino == st.st_ino)
				return mp_err_set(
					err, EINVAL,
					"%s: is %s itself: --compare-file removes it after "
					"each run",
					*file, inputs[i]);
	}
	return 0;
}

static int stage_make_argv(struct me_stage *stage, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;
	size_t nr = 0, i = 0;

	while (opts->args && opts->args[nr])
		nr++;
	stage->argv = calloc(nr + 2, sizeof(*stage->argv));
	if (!stage->argv)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!opts->command)
		stage->argv[i++] = (char *)me_slot_path(&stage->slot);
	for (nr = 0; opts->args && opts->args[nr]; nr++)
		stage->argv[i++] = opts->args[nr];
	return 0;
}

/* If there is a client, its output is compared and its time is measured. */
static void stage_make_specs(struct me_stage *stage)
{
	const struct me_audit_opts *opts = stage->opts;
	const struct me_metric *metric = &opts->metric;
	struct me_run_spec seen = {
		.envp = opts->envp,
		.stdin_path = opts->stdin_path,
		.filter = opts->filter,
		.files = opts->files,
		.with_stderr = opts->with_stderr,
		.cpu = -1,
		.mask = opts->mask,
		.patterns = {metric->pattern.text ? &metric->pattern : NULL,
			     metric->requests.text ? &metric->requests : NULL},
	};

	stage->spec = opts->client ? (struct me_run_spec){.mask = opts->mask} : seen;
	stage->spec.path = opts->command ? opts->command : me_slot_path(&stage->slot);
	stage->spec.argv = stage->argv;
	stage->spec.envp = stage->envp ? stage->envp : opts->envp;
	stage->spec.cpu = opts->cpu;
	if (!opts->client)
		return;
	stage->client = seen;
	stage->client.path = "/bin/sh";
	stage->client_argv[0] = (char *)"sh";
	stage->client_argv[1] = (char *)"-c";
	stage->client_argv[2] = (char *)opts->client;
	stage->client.argv = stage->client_argv;
	stage->server.ready = opts->ready;
	stage->server.ready_ns =
		(uint64_t)((opts->timeout_seconds > 0 ? opts->timeout_seconds : 60) *
			   (double)ME_NS_PER_SEC);
	stage->server.read_cpu = metric->kind == ME_METRIC_CPU || metric->kind == ME_METRIC_USER;
	me_server_open(&stage->server);
}

int me_stage_open(struct me_stage *stage, const struct me_audit_opts *opts, struct mp_err *err)
{
	int ret;

	*stage = (struct me_stage){.opts = opts, .programs = {{.fd = -1}, {.fd = -1}}};
	/* The slot comes first: the hooks then see the same mounts as the programs. */
	ret = stage_open_slot(stage, err);
	if (!ret) {
		stage->set_up = true;
		ret = me_hook_run("--setup", opts->hooks.setup, 0, NULL, opts->mask, err);
	}
	/* Else the message would name A, which is not what cannot be executed. */
	if (!ret && opts->command && access(opts->command, X_OK))
		ret = mp_err_set(err, errno, "%s: cannot be executed: %s", opts->command,
				 strerror(errno));
	if (!ret)
		ret = stage_open_programs(stage, err);
	if (!ret && opts->stdin_path)
		ret = stage_check_stdin(opts->stdin_path, err);
	if (!ret)
		ret = stage_check_files(stage, err);
	if (!ret)
		ret = stage_make_argv(stage, err);
	if (!ret)
		stage_make_specs(stage);
	return ret;
}

static uint64_t stage_timeout_ns(const struct me_stage *stage)
{
	if (stage->opts->timeout_seconds > 0)
		return (uint64_t)(stage->opts->timeout_seconds * (double)ME_NS_PER_SEC);
	if (!stage->longest_ns)
		return 0;
	return 10 * stage->longest_ns + 10 * ME_NS_PER_SEC;
}

/* Run the program, or the server with its client. */
static int stage_execute(struct me_stage *stage, struct me_run *run, struct mp_err *err)
{
	struct stat library;
	bool watched = stage->opts->library;

	stage->spec.timeout_ns = stage->client.timeout_ns = stage_timeout_ns(stage);
	if (!stage->opts->client)
		return me_run(&stage->spec, run, err);
	if (watched && stat(stage->slot.copy, &library))
		return mp_err_set(err, errno, "%s: %s", stage->slot.copy, strerror(errno));
	return me_server_run(&stage->server, &stage->spec, &stage->client,
			     watched ? &library : NULL, run, err);
}

static int stage_execute_library(struct me_stage *stage, struct me_run *run, struct mp_err *err)
{
	int watch = me_library_watch(stage->slot.copy, err), ret;

	if (watch < 0)
		return watch;
	ret = stage_execute(stage, run, err);
	if (!ret && !run->server[0] && !me_library_opened(watch))
		ret = mp_err_set(err, ENOLINK, "the command did not open it");
	close(watch);
	return ret;
}

/* Name the program in the message about a failed run. */
static int stage_say(const struct me_stage *stage, int side, int ret, const struct mp_err *cause,
		     struct mp_err *err)
{
	const char *path = stage->programs[side].path;

	if (ret == -EACCES && !stage->opts->at)
		return mp_err_set(err, EACCES,
				  "%s: cannot be executed from %s: %s (--dir names another place)",
				  path, stage->slot.dir, strerror(EACCES));
	if (ret == -ENOLINK)
		return mp_err_set(err, ENOLINK,
				  "%s: nothing was measured: the command does not use the library "
				  "as %s",
				  path, me_slot_path(&stage->slot));
	return ret ? mp_err_set(err, -ret, "%s: %s", path, cause->msg) : 0;
}

int me_stage_run(struct me_stage *stage, int side, struct me_run *run, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;
	const char *path = stage->programs[side].path;
	struct mp_err cause = {""};
	int ret = me_slot_put(&stage->slot, &stage->programs[side], err);

	if (!ret)
		ret = me_hook_run("--prepare", opts->hooks.prepare, side == ME_SIDE_A ? 'A' : 'B',
				  path, opts->mask, err);
	if (ret)
		return ret;
	ret = opts->library ? stage_execute_library(stage, run, &cause)
			    : stage_execute(stage, run, &cause);
	ret = stage_say(stage, side, ret, &cause, err);
	if (ret)
		return ret;
	if (side == ME_SIDE_A && run->wall_ns > stage->longest_ns)
		stage->longest_ns = run->wall_ns;
	return 0;
}

int me_stage_run_both(struct me_stage *stage, int first, struct me_run runs[2], struct mp_err *err)
{
	struct me_both both = {&stage->slot, &stage->spec, stage->opts->library};
	struct me_run in_order[2];
	struct mp_err cause = {""};
	int ret = 0;

	for (int i = 0; !ret && i < 2; i++)
		ret = me_slot_put_beside(&stage->slot, &stage->programs[first ^ i], i, err);
	if (ret)
		return ret;
	stage->spec.timeout_ns = stage_timeout_ns(stage);
	ret = me_both_run(&both, in_order, &cause);
	runs[first] = in_order[0];
	runs[!first] = in_order[1];
	return stage_say(stage, ME_SIDE_A, ret, &cause, err);
}

int me_stage_watch(struct me_stage *stage, char *why, size_t size, struct mp_err *err)
{
	int ret = me_slot_put(&stage->slot, &stage->programs[ME_SIDE_A], err);

	if (ret)
		return ret;
	stage->spec.timeout_ns = stage_timeout_ns(stage);
	return me_sharing_watch(&stage->spec, why, size, err);
}

int me_stage_close(struct me_stage *stage, struct mp_err *err)
{
	const struct me_audit_opts *opts = stage->opts;
	int ret = 0;

	if (opts->client)
		me_server_close(&stage->server);
	me_slot_close(&stage->slot);
	me_program_close(&stage->programs[ME_SIDE_A]);
	me_program_close(&stage->programs[ME_SIDE_B]);
	free(stage->argv);
	me_library_environment_free(stage->envp);
	if (stage->set_up)
		ret = me_hook_run("--teardown", opts->hooks.teardown, 0, NULL, opts->mask, err);
	return ret;
}
