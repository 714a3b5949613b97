// SPDX-License-Identifier: Apache-2.0
/*
 * object_optimize - from a program's profile to a file with rewritten objects: has the program
 * analysed, rewrites, publishes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "editor/emit/publish.h"
#include "editor/object/object.h"
#include "libprof/base/infile.h"
#include "libprof/elf/relobj.h"

struct work {
	const struct me_optimize_options *options; /* of the object */
	struct me_object_report *report;
	const uint8_t *bytes;
	size_t size;
};

static int map_file(const char *path, const uint8_t **bytes, size_t *size, struct mp_err *err)
{
	uint64_t size_bytes;
	void *map;
	int fd = mp_infile_regular(path, &size_bytes, err), code;

	if (fd < 0)
		return fd;
	map = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	code = errno;
	close(fd);
	if (map == MAP_FAILED)
		return mp_err_set(err, code, "%s: cannot be mapped: %s", path, strerror(code));
	*bytes = map;
	*size = size_bytes;
	return 0;
}

/* Writes @bytes to a temporary file. me_publish_end(@publish) always. */
static int begin(const struct work *w, const char *output, const struct me_bytes *bytes,
		 struct me_publish *publish, struct mp_err *err)
{
	struct me_output_parts parts = {0};
	int rc = me_publish_begin(publish, w->options->input, output, err);

	if (!rc &&
	    me_output_parts_add(&parts, bytes->data, bytes->size, 1, ME_OUTPUT_PARTS_BORROW, NULL))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = me_publish_write(publish, &parts, err);
	me_output_parts_fini(&parts);
	return rc;
}

/*
 * The object and its order appear together: both are written before one gets its name, and signals
 * wait until both have theirs. The order comes first, so that no object lacks one.
 */
static int publish(const struct work *w, const struct me_bytes *object,
		   const struct me_bytes *order, struct mp_err *err)
{
	const char *output = w->options->output;
	struct me_publish first, second;
	char *order_path = NULL;
	int rc;

	if (output && asprintf(&order_path, "%s.order", output) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	rc = begin(w, order_path, order, &first, err);
	if (!rc) {
		rc = begin(w, output, object, &second, err);
		if (!rc)
			rc = me_publish_commit(&first, err);
		if (!rc)
			rc = me_publish_commit(&second, err);
		me_publish_end(&second);
	}
	me_publish_end(&first);
	free(order_path);
	return rc;
}

/* The hot functions of the program in the plan's order, one a line. */
static void list_order(const struct me_object_plan *plan, struct me_bytes *order)
{
	uint32_t last = MP_NONE;

	for (uint32_t i = 0; i < plan->plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->plan->blocks[i];
		uint32_t f = plan->cfg->blocks[planned->block].func;

		if (planned->zone != ME_ZONE_HOT || f == last)
			continue;
		last = f;
		if (!*plan->cfg->funcs[f].name)
			continue;
		me_bytes_put(order, plan->cfg->funcs[f].name, strlen(plan->cfg->funcs[f].name));
		me_bytes_u8(order, '\n');
	}
}

/* Called while the program's plan exists. */
static int take_plan(void *ctx, const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const struct me_plan *made, struct mp_err *err)
{
	struct work *w = ctx;
	struct me_object_plan plan;
	struct me_bytes out = {0}, order = {0};
	struct mp_err why = {""};
	int rc = me_object_plan_init(&plan, cfg, counts, made, &why);

	if (!rc)
		rc = mp_relobj_is(w->bytes, w->size)
			     ? me_object_rewrite(w->bytes, w->size, &plan, w->report, &out, &why)
			     : me_object_rewrite_archive(w->bytes, w->size, &plan, w->report, &out,
							 &why);
	if (rc)
		rc = mp_err_set(err, -rc, "%s: %s: nothing was written", w->options->input,
				why.msg);
	list_order(&plan, &order);
	if (!rc && order.failed)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = publish(w, &out, &order, err);
	me_bytes_fini(&out);
	me_bytes_fini(&order);
	me_object_plan_fini(&plan);
	return rc;
}

int me_object_optimize(const struct me_optimize_options *options, const char *program,
		       struct me_object_report *report, struct mp_err *err)
{
	struct me_optimize_options of_program = *options;
	struct me_optimize_report ignored = {0};
	struct work w = {.options = options, .report = report};
	int rc = map_file(options->input, &w.bytes, &w.size, err);

	if (rc)
		return rc;
	of_program.input = program;
	of_program.output = NULL;
	of_program.take_plan = take_plan;
	of_program.take_ctx = &w;
	rc = me_optimize(&of_program, &ignored, err);
	me_optimize_report_fini(&ignored);
	munmap((void *)w.bytes, w.size);
	return rc;
}
