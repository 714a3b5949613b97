// SPDX-License-Identifier: Apache-2.0
/* optimize_plan_file - takes the plan from a file instead of a profile, and saves it. Called by optimize.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/optimize/optimize_private.h"
#include "libprof/base/infile.h"
#include "libprof/base/outfile.h"

/* Return: 0; *@data has all bytes. Ownership: free(*@data). */
static int read_file(const char *path, uint8_t **data, size_t *size, struct mp_err *err)
{
	uint64_t bytes = 0, done = 0;
	int fd = mp_infile_regular(path, &bytes, err);
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	*data = bytes <= ME_PLAN_SIZE_MAX ? malloc(bytes + 1) : NULL;
	while (*data && done < bytes && n > 0) {
		n = read(fd, *data + done, bytes - done);
		done += n > 0 ? (uint64_t)n : 0;
	}
	close(fd);
	*size = done;
	if (bytes > ME_PLAN_SIZE_MAX)
		return mp_err_set(err, EFBIG, "%s: is larger than any plan", path);
	if (!*data)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (n >= 0)
		return 0;
	free(*data);
	return mp_err_set(err, EIO, "%s: cannot be read", path);
}

int me_job_read_plan(struct me_job *job, struct me_optimize_options *options, struct mp_err *err)
{
	struct me_plan_file *given = &job->given;
	struct mp_err why = {""};
	uint8_t *data;
	size_t size;
	int rc = read_file(options->plan, &data, &size, err);

	if (rc)
		return rc;
	rc = me_plan_file_read(job->cfg, job->movable, data, size, given, &why);
	free(data);
	/* Options that exclude each other. */
	if (!rc && options->live_at && given->huge_pages)
		rc = mp_err_set(&why, EINVAL,
				"is a plan with huge pages, which --live-at does not go with");
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", options->plan, why.msg);
	options->layout.slots = given->slots;
	options->layout.inline_leaves = given->inlines;
	options->layout.huge_pages = given->huge_pages;
	job->plan = given->plan;
	given->plan = (struct me_plan){0};
	return 0;
}

int me_job_begin_saving(struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	const struct me_plan_file file = {
		.plan = job->plan,
		.slots = o->layout.slots,
		.inlines = o->layout.inline_leaves,
		.huge_pages = o->layout.huge_pages,
		.arranges = o->plan ? job->given.arranges : job->counts.block != NULL,
	};
	struct mp_err why = {""};
	int rc;

	if (job->added.nr_stubs)
		return mp_err_set(
			err, EINVAL,
			"--save-plan: a plan has no code that waits (--adjust=...:wait=)");
	rc = me_plan_check(job->cfg, job->movable, &job->plan, &why);
	if (!rc)
		rc = me_plan_writer_new(job->cfg, &file, &job->saved, &why);
	return rc ? mp_err_set(err, -rc, "--save-plan: %s", why.msg) : 0;
}

int me_job_save_plan(struct me_job *job, struct mp_err *err)
{
	const char *path = job->options->save_plan;
	struct mp_varint_writer bytes = {0};
	struct mp_outfile out;
	int rc = me_plan_writer_end(job->saved, job->replaced, job->nr_replaced, &bytes, err);

	if (!rc)
		rc = mp_outfile_open(path, NULL, &out, err);
	if (!rc) {
		fwrite(bytes.bytes, 1, bytes.size, out.file);
		rc = mp_outfile_commit(&out, err);
	}
	free(bytes.bytes);
	return rc;
}
