// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_write - from a plan to a file on disk: emit, write, verify, publish. No output appears
 * that verify has not accepted. Called by optimize.c.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "editor/optimize/optimize_private.h"
#include "editor/emit/publish.h"
#include "libprof/elf/own_output.h"
#include "libprof/store/store.h"

/* A huge page of x86-64 has 2 MiB. */
#define HUGE_PAGE_LOG2 21

/* The name of the debug file in the output. NULL: named by the build-id. */
static const char *debug_name(const struct me_job *job)
{
	const char *path = job->report->debug_output;

	if (job->options->files)
		return NULL;
	if (!path)
		path = job->report->debug_file;
	return path ? basename(path) : NULL;
}

/* A file that was written: its name in messages, and its descriptor. */
struct written {
	const char *path;
	int fd; /* -1: not there */
};

/* The database record for an output. */
static struct mp_output output_of(const struct mp_elf *original, const struct mp_elf *output)
{
	const struct mp_section *paths = mp_elf_section(output, MP_PATH_TABLE_SECTION);
	struct mp_output is = {.id = output->id, .original = original->id};

	if (paths && paths->type == SHT_PROGBITS && paths->size)
		is.paths_hash = mp_path_table_hash(output->data + paths->off, paths->size);
	return is;
}

/*
 * Collectors with this database then know the output without verifying it themselves. Without
 * permission to write the database, nothing is noted: the collector then verifies the output, if
 * the original is there.
 */
static void note_output_in_store(const struct me_job *job)
{
	struct mp_store *store;

	if (!job->options->db || job->options->all || job->options->keeps_nothing ||
	    (!job->options->files && !job->options->output) ||
	    mp_store_open(job->options->db, MP_STORE_WRITE, &store, NULL))
		return;
	mp_store_put_output(store, &job->verified, NULL);
	mp_store_close(store);
}

static int verify_file(struct me_job *job, const struct written *file,
		       const struct written *debug_file, struct mp_err *err)
{
	const struct mp_elf *original = job->elf;
	struct me_verify_debug debug = {job->debug, NULL, debug_name(job)};
	struct mp_elf *output = NULL, *debug_output = NULL;
	char own_name[2 * MP_BUILD_ID_MAX + sizeof(".debug")];
	struct mp_err why;
	int rc = mp_elf_open_fd(file->path, file->fd, MP_ELF_ALL, &output, &why);

	if (!rc && job->debug) {
		rc = mp_elf_open_fd(debug_file->path, debug_file->fd, MP_ELF_DEBUG | MP_ELF_SYMBOLS,
				    &debug_output, &why);
		debug.output = debug_output;
	}
	if (!rc && job->debug && !debug.name) {
		char text[2 * MP_BUILD_ID_MAX + 1] = {0};

		mp_id_format_build_id(&output->id, text);
		sprintf(own_name, "%s.debug", text + 2);
		debug.name = own_name;
	}
	if (!rc)
		rc = me_verify_parallel(original, output, job->debug ? &debug : NULL,
					job->options->nr_threads, &job->report->verified, &why);
	if (!rc)
		job->verified = output_of(original, output);
	mp_elf_close(debug_output);
	mp_elf_close(output);
	if (rc == -EBADMSG || rc == -ENOEXEC)
		return mp_err_set(err, EPERM,
				  "%s: the output does not verify, nothing was written: %s",
				  original->path, why.msg);
	return rc ? mp_err_set(err, -rc, "%s: verify: %s", original->path, why.msg) : 0;
}

/* Frees the analysis: nothing needs it from here on, and verify must not use it. */
static void forget_analysis(struct me_job *job)
{
	mp_cfg_free(job->cfg);
	job->cfg = NULL;
	mp_elf_drop_pages(job->elf);
}

static void end_writing(struct me_job *job)
{
	me_output_parts_fini(&job->report->emitted.output);
	me_output_parts_fini(&job->report->emitted.debug_output);
	malloc_trim(0);
	me_job_end_stage(job, ME_STAGE_WRITE);
}

/* Writes the temporary debug file. */
static int begin_debug(struct me_job *job, struct me_publish *publish, struct mp_err *err)
{
	const struct me_optimize_report *r = job->report;
	struct stat a, b;
	int rc = me_publish_begin(publish, job->options->input, r->debug_output, err);

	if (rc)
		return rc;
	/* A debug file is not executable. */
	publish->mode &= 0666;
	if (r->debug_output && !stat(r->debug_file, &a) && !stat(r->debug_output, &b) &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return mp_err_set(err, EINVAL, "%s: is the input's debug file; give another name",
				  r->debug_output);
	return me_publish_write(publish, &r->emitted.debug_output, err);
}

/*
 * Without the note, root does not adopt the output, and the message then says so. @before: hash of the original before
 * verify read it; if it changed meanwhile, verify may have seen parts of both.
 */
static void note_own(const struct me_job *job, const struct me_publish *publish,
		     const uint8_t before[MP_SHA256_BYTES])
{
	struct mp_own_proof proof = {0};
	bool same;

	if (!publish->final)
		return;
	mp_sha256(job->elf->data, job->elf->size, proof.original);
	same = !memcmp(proof.original, before, sizeof(proof.original));
	strcpy(proof.kind, me_kind_name(job->report->verified.kind));
	mp_own_output_note(publish->fd, same ? &proof : NULL, NULL);
}

/*
 * Publish the debug file first, so that no output lacks one. If the process is killed between the
 * two, the old output's link has another checksum, so debuggers ignore the new debug file.
 */
static int publish(struct me_job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	struct me_publish publish, debug = {.fd = -1, .dir = -1};
	uint8_t original[MP_SHA256_BYTES];
	int rc = me_publish_begin(&publish, job->options->input, job->options->output, err);

	if (rc)
		return rc;
	if (job->debug)
		rc = begin_debug(job, &debug, err);
	if (!rc)
		rc = me_publish_write(&publish, &r->emitted.output, err);
	end_writing(job);
	mp_sha256(job->elf->data, job->elf->size, original);
	if (!rc)
		rc = verify_file(job, &(struct written){publish.temporary, publish.fd},
				 &(struct written){debug.temporary, debug.fd}, err);
	me_job_end_stage(job, ME_STAGE_VERIFY);
	if (!rc && job->debug)
		rc = me_publish_commit(&debug, err);
	if (!rc)
		note_own(job, &publish, original);
	if (!rc)
		rc = me_publish_commit(&publish, err);
	if (debug.fd >= 0 || debug.temporary || debug.final)
		me_publish_end(&debug);
	me_publish_end(&publish);
	return rc;
}

static int write_open(struct me_job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	const struct me_optimize_files *files = job->options->files;
	int rc = 0;

	/* The debug file first: its head is a part of the output's, which is lost when it is written. */
	if (job->debug)
		rc = me_output_parts_write(&r->emitted.debug_output, files->debug);
	if (!rc)
		rc = me_output_parts_write(&r->emitted.output, files->output);
	if (rc)
		return mp_err_set(err, -rc, "%s: cannot write its new version: %s",
				  job->options->input, strerror(-rc));
	end_writing(job);
	rc = verify_file(job, &(struct written){job->options->input, files->output},
			 &(struct written){r->debug_file, files->debug}, err);
	/* Last, so that the digest is of the bytes that verify saw, even if the file has
	 * changed. */
	me_digest_memory(job->elf->data, job->elf->size, &r->input_digest);
	me_job_end_stage(job, ME_STAGE_VERIFY);
	return rc;
}

/* A stage that cannot make the copy of a function: the next attempt leaves the function out. */
static void note_failed(struct me_job *job, const struct mp_err *why)
{
	struct me_verify_report *v = &job->report->verified;

	v->refused[0].vaddr = job->report->emitted.failed_at;
	v->nr_refused = v->refused[0].vaddr != 0;
	snprintf(v->refused[0].why, sizeof(v->refused[0].why), "%.*s",
		 (int)sizeof(v->refused[0].why) - 1, why->msg);
}

/* Frees the blocks of the plan as soon as they are placed, since large files have many. */
static int emit(struct me_job *job, struct mp_err *err)
{
	struct me_emitter *emitter;
	const struct me_placement *placement;
	int rc;

	job->report->emitted = (struct me_emitted){0};
	rc = me_emitter_new(job->cfg, &job->plan, &job->added, &emitter, err);
	if (rc)
		return rc;
	placement = me_emitter_placement(emitter);
	rc = me_job_note_adjusted(job, placement, err);
	if (!rc)
		rc = me_job_print(job, ME_PRINT_PLACE, placement, err);
	free(job->plan.blocks);
	job->plan.blocks = NULL;
	if (!rc)
		rc = me_emitter_write(emitter, job->debug, debug_name(job), &job->report->emitted,
				      err);
	me_emitter_free(emitter);
	return rc;
}

int me_job_produce(struct me_job *job, struct mp_err *err)
{
	struct me_optimize_report *r = job->report;
	struct mp_err why;
	int rc;

	job->plan.page_log2 = job->options->layout.huge_pages ? HUGE_PAGE_LOG2 : 0;
	job->plan.live_at = job->options->live_at;
	rc = emit(job, &why);
	if (rc) {
		note_failed(job, &why);
		return mp_err_set(err, rc == -ERANGE ? EPERM : -rc, "%s: %s", job->options->input,
				  why.msg);
	}
	forget_analysis(job);
	me_job_end_stage(job, ME_STAGE_EMIT);
	r->stage_s[ME_STAGE_DEBUG] = r->emitted.debug.seconds;
	r->stage_s[ME_STAGE_EMIT] -= r->emitted.debug.seconds;
	r->stage_cpu_s[ME_STAGE_DEBUG] = r->emitted.debug.cpu_seconds;
	r->stage_cpu_s[ME_STAGE_EMIT] -= r->emitted.debug.cpu_seconds;
	r->new_size = r->emitted.output.size_bytes;
	r->new_holes = me_output_parts_holes(&r->emitted.output);
	r->debug_new_size = r->emitted.debug_output.size_bytes;
	rc = job->options->files ? write_open(job, err) : publish(job, err);
	if (!rc)
		note_output_in_store(job);
	return rc;
}
