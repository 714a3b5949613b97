// SPDX-License-Identifier: Apache-2.0
/* inplace - the order of the steps: refuse, optimise, verify, keep the original, replace. */
#include "editor/replace/inplace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "editor/replace/backup.h"
#include "editor/replace/backup_debug.h"
#include "editor/replace/replace.h"
#include "editor/evidence/selfcheck.h"
#include "editor/verify/verify.h"
#include "libprof/elf/own_output.h"
#include "libprof/note/map.h"

/* ---- the present file ----------------------------------------------------------------------- */

static int check_signed(const struct me_replace *r, struct mp_err *err)
{
	struct mp_err why;
	int rc = me_selfcheck_signed(r->old_fd, &r->attributes, &why);

	return rc ? mp_err_set(err, -rc, "%s: %s", r->path, why.msg) : 0;
}

/* Checks the target of a symbolic link; optimize checks the name that was given. */
static int check_companions(const struct me_replace *r, struct mp_err *err)
{
	struct mp_err why;
	int rc = me_selfcheck_companions(r->path, &why);

	return rc ? mp_err_set(err, -rc, "%s: %s", r->path, why.msg) : 0;
}

/*
 * Sets @original if the file is an output. @digest: of the file; NULL: not known yet. Return: 0, -ENOENT it is not an
 * output, -errno.
 */
static int read_output(const char *path, int fd, const struct me_digest *digest,
		       struct mp_id *original, struct me_backup_output *output, struct mp_err *err)
{
	struct mp_elf *elf;
	struct mp_err why;
	int rc = mp_elf_open_fd(path, fd, MP_ELF_ID, &elf, err);

	if (rc)
		return rc;
	*output = (struct me_backup_output){.id = elf->id};
	rc = mp_map_read_original(elf, original, &why);
	if (rc && rc != -ENOENT)
		mp_err_set(err, -rc, "%s: %s", path, why.msg);
	mp_elf_close(elf);
	if (!rc && digest) {
		output->digest = *digest;
	} else if (!rc) {
		rc = me_digest_copy(fd, -1, &output->digest, NULL);
		if (rc)
			mp_err_set(err, -rc, "%s: %s", path, strerror(-rc));
	}
	return rc;
}

static unsigned int flags_of(const struct me_inplace_options *options)
{
	return (options->break_links ? ME_REPLACE_BREAK_LINKS : 0) |
	       (options->no_symlinks ? ME_REPLACE_NO_SYMLINKS : 0);
}

/* ---- optimise ------------------------------------------------------------------------------- */

struct work {
	const struct me_inplace_options *options;
	struct me_inplace_report *done;
	struct me_replace replace;
	struct me_backup backup;
	struct me_original original;	    /* fd -1: the file itself is the original */
	struct me_backup_output old_output; /* the output that is replaced, if it is one */
	struct me_digest copied;	    /* of the new file; empty: not known yet */
	int debug_fd;			    /* the new debug file; -1: not asked for */
};

/* The original of an output is in the backup; any other file is an original itself. */
static int find_original(struct work *w, struct mp_err *err)
{
	struct mp_id id;
	int rc = read_output(w->replace.path, w->replace.old_fd, NULL, &id, &w->old_output, err);

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	w->done->was_output = true;
	rc = me_backup_open(&w->backup, w->options->backup_dir, false, err);
	if (!rc)
		rc = me_backup_find(&w->backup, &id, w->replace.path, &w->old_output, &w->original,
				    err);
	return rc;
}

/* Save the original, and record the output that will replace it. */
static int keep(struct work *w, const struct me_optimize_report *report,
		const struct me_backup_output *output, struct mp_err *err)
{
	const struct me_backup_debug_source debug = {w->debug_fd, report->debug_file};
	int rc;

	if (w->original.fd >= 0) {
		if (!me_digest_equal(&report->input_digest, &w->original.digest))
			return mp_err_set(err, EPERM, "%s: its backup %s is damaged",
					  w->replace.path, w->original.path);
		rc = me_backup_add_output(&w->backup, &w->original, w->replace.path, output, &debug,
					  err);
		if (!rc) {
			w->done->backup = w->original.path;
			w->original.path = NULL;
		}
		return rc;
	}
	rc = me_backup_open(&w->backup, w->options->backup_dir, true, err);
	if (!rc)
		rc = me_backup_put(&w->backup, w->replace.old_fd, w->replace.path, &report->id,
				   &report->input_digest, &w->replace.attributes, output, &debug,
				   &w->done->backup, err);
	return rc;
}

/* Choose the place of the output's debug file, if one was made. */
static int name_debug(const struct work *w, struct me_optimize_report *report,
		      struct me_backup_output *output, struct mp_err *err)
{
	const struct mp_id *id = &output->id, *old = &report->id;
	int rc;

	if (!report->debug_file)
		return 0;
	/* With the same build-id it would replace the original's debug file. */
	if (id->build_id_len == old->build_id_len &&
	    !memcmp(id->build_id, old->build_id, id->build_id_len))
		return mp_err_set(err, EPERM, "%s: the new version has the original's build-id",
				  w->replace.path);
	rc = me_backup_debug_place(w->replace.path, report->debug_file, id, &output->debug);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", report->debug_file, strerror(-rc));
	report->debug_output = output->debug.path;
	rc = me_digest_copy(w->debug_fd, -1, &output->debug.digest, NULL);
	return rc ? mp_err_set(err, -rc, "%s: %s", report->debug_output, strerror(-rc)) : 0;
}

/* @keep: id of the output now in place; NULL: it is not an output. */
static int drop_debug(struct work *w, const struct mp_id *id, const struct me_digest *original,
		      const struct mp_id *keep, struct mp_err *err)
{
	struct mp_err why;
	int rc = me_backup_drop_debug(&w->backup, id, original, w->replace.path, keep, &why);

	return rc ? mp_err_set(err, -rc,
			       "%s: replaced, but an old debug file could not be removed: %s",
			       w->replace.path, why.msg)
		  : 0;
}

/* Dry run: can the backup directory be used? Does not create it. */
static int check_backup(struct work *w, struct mp_err *err)
{
	if (w->original.fd >= 0)
		return 0;
	return me_backup_open(&w->backup, w->options->backup_dir, false, err);
}

static int put_in_place(struct work *w, struct me_optimize_report *report, struct mp_err *err)
{
	struct me_backup_output output;
	struct mp_id id;
	int rc = read_output(w->replace.path, w->replace.new_fd, *w->copied.hex ? &w->copied : NULL,
			     &id, &output, err);

	if (!rc && !mp_id_equal(&id, &report->id))
		rc = mp_err_set(err, EPERM, "%s: the new version was made from another original",
				w->replace.path);
	if (!rc)
		rc = name_debug(w, report, &output, err);
	if (rc)
		return rc;
	w->done->unchanged = w->done->was_output &&
			     me_digest_equal(&output.digest, &w->old_output.digest);
	/* If the output is in place already, its debug file may still be missing. */
	if (w->done->unchanged && !output.debug.path)
		return 0;
	w->done->dry_run = w->options->dry_run;
	if (w->options->dry_run)
		return check_backup(w, err);
	rc = keep(w, report, &output, err);
	if (w->done->unchanged) {
		free(w->done->backup);
		w->done->backup = NULL;
		return rc;
	}
	if (rc)
		return rc;
	rc = me_replace_commit(&w->replace, NULL, err);
	if (!rc)
		w->done->nr_other_names = w->replace.old.st_nlink - 1;
	if (!rc)
		return drop_debug(w, &report->id, &report->input_digest, &output.id, err);
	drop_debug(w, &report->id, &report->input_digest,
		   w->done->was_output ? &w->old_output.id : NULL, NULL);
	return rc;
}

static void begin_work(struct work *w, const struct me_inplace_options *options,
		       struct me_inplace_report *done)
{
	*done = (struct me_inplace_report){0};
	*w = (struct work){.options = options,
			   .done = done,
			   .backup = {.fd = -1},
			   .original = {.fd = -1},
			   .debug_fd = -1};
}

static void end_work(struct work *w)
{
	w->done->through_link = w->replace.through_link;
	if (w->replace.path)
		w->done->path = strdup(w->replace.path);
	if (w->debug_fd >= 0)
		close(w->debug_fd);
	me_original_fini(&w->original);
	me_backup_close(&w->backup);
	me_replace_end(&w->replace);
}

int me_inplace(const struct me_optimize_options *options, const struct me_inplace_options *inplace,
	       struct me_optimize_report *report, struct me_inplace_report *done,
	       struct mp_err *err)
{
	struct me_optimize_options o = *options;
	struct me_optimize_files files;
	struct work w;
	int rc;

	*report = (struct me_optimize_report){0};
	begin_work(&w, inplace, done);
	rc = me_replace_begin(&w.replace, options->input, flags_of(inplace), err);
	if (!rc)
		rc = check_signed(&w.replace, err);
	if (!rc)
		rc = check_companions(&w.replace, err);
	if (!rc)
		rc = find_original(&w, err);
	if (!rc && options->debug_file) {
		w.debug_fd = memfd_create("debug", MFD_CLOEXEC);
		if (w.debug_fd < 0)
			rc = mp_err_set(err, errno, "%s: no memory for a debug file: %s",
					options->input, strerror(errno));
	}
	if (!rc) {
		files.debug = w.debug_fd;
		files.input = w.original.fd >= 0 ? w.original.fd : w.replace.old_fd;
		files.output = w.replace.new_fd;
		o.files = &files;
		o.output = NULL;
		o.keeps_nothing = inplace->dry_run;
		rc = me_optimize(&o, report, err);
	}
	if (!rc)
		rc = put_in_place(&w, report, err);
	end_work(&w);
	report->in_place = done;
	return rc;
}

/* ---- adopt ---------------------------------------------------------------------------------- */

/* @original and @output: descriptors; @name is for messages. *@kind: of a proved output. */
static int prove(int original, int output, const char *name, unsigned int nr_threads,
		 struct mp_id *id, const char **kind, struct mp_err *err)
{
	struct me_verify_report report = {0};
	struct mp_elf *o = NULL, *n = NULL;
	struct mp_err why = {""};
	int rc = mp_elf_open_fd(name, original, MP_ELF_ALL, &o, err);

	if (!rc)
		rc = mp_elf_open_fd(name, output, MP_ELF_ALL, &n, err);
	if (!rc) {
		*id = o->id;
		rc = me_verify_parallel(o, n, NULL, nr_threads, &report, &why);
		if (rc)
			rc = mp_err_set(err, rc == -EBADMSG ? EPERM : -rc, "%s: %s", name, why.msg);
	}
	*kind = me_kind_name(report.kind);
	mp_elf_close(n);
	mp_elf_close(o);
	return rc;
}

/* Takes the id of the original, and the kind that was noted when the output was proved. */
static int believe(struct work *w, const struct mp_own_proof *proof, struct mp_id *id,
		   struct mp_err *err)
{
	struct mp_elf *elf;
	int rc;

	w->done->kind = me_kind_name((enum me_kind)__builtin_ctz(me_kinds_find(proof->kind)));
	*id = w->original.id;
	if (w->original.fd >= 0)
		return 0;
	rc = mp_elf_open_fd(w->replace.path, w->replace.old_fd, MP_ELF_ID, &elf, err);
	if (!rc)
		*id = elf->id;
	mp_elf_close(elf);
	return rc;
}

/* Is the output good, as was proved earlier or is proved here, and of a permitted kind? */
static int check_output(struct work *w, int original, const char *name,
			const struct mp_own_proof *proof, unsigned int nr_threads, struct mp_id *id,
			struct mp_err *err)
{
	unsigned int may = w->options->kinds ? w->options->kinds : 1u << ME_KIND_LAYOUT;
	const char **kind = &w->done->kind;
	int rc;

	/* A later Morph may have noted a kind that this one does not know. */
	w->done->known = me_kinds_find(proof->kind) != 0;
	if (w->done->known)
		rc = believe(w, proof, id, err);
	else
		rc = prove(original, w->replace.new_fd, name, nr_threads, id, kind, err);
	if (!rc && !(me_kinds_find(*kind) & may))
		rc = mp_err_set(err, EPERM,
				"%s: is of kind %s, which adopt takes only with --kind=%s", name,
				*kind, *kind);
	return rc;
}

/* The new file becomes @output, which is proved there: @output may change meanwhile. */
static int copy_output(struct work *w, const char *output, unsigned int nr_threads,
		       struct me_optimize_report *report, struct mp_err *err)
{
	int original = w->original.fd >= 0 ? w->original.fd : w->replace.old_fd;
	struct mp_own_proof proof = {0};
	struct mp_elf *elf;
	int rc, fd = open(output, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", output, strerror(errno));
	/* Copying a device or a file with holes could fill the disk. MP_ELF_DEBUG: a look at the headers is enough. */
	rc = mp_elf_open_fd(output, fd, MP_ELF_DEBUG, &elf, err);
	mp_elf_close(elf);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = me_digest_copy(fd, w->replace.new_fd, &w->copied, NULL);
	if (rc)
		mp_err_set(err, -rc, "%s: cannot be copied: %s", output, strerror(-rc));
	if (!rc && w->options->proved) {
		rc = mp_own_hash_file(original, proof.original);
		if (rc)
			mp_err_set(err, -rc, "%s: %s", w->replace.path, strerror(-rc));
	}
	if (!rc)
		rc = mp_own_output_check(w->replace.new_fd, fd, output,
					 w->options->proved ? &proof : NULL, err);
	close(fd);
	if (rc)
		return rc;
	report->input_digest = w->original.digest;
	if (w->original.fd < 0)
		rc = me_digest_copy(original, -1, &report->input_digest, NULL);
	if (rc)
		return mp_err_set(err, -rc, "%s: %s", w->replace.path, strerror(-rc));
	return check_output(w, original, output, &proof, nr_threads, &report->id, err);
}

int me_adopt(const char *path, const char *output, const struct me_inplace_options *inplace,
	     unsigned int nr_threads, struct me_inplace_report *done, struct mp_err *err)
{
	struct me_optimize_report report = {0};
	struct work w;
	int rc;

	begin_work(&w, inplace, done);
	rc = me_replace_begin(&w.replace, path, flags_of(inplace), err);
	if (!rc)
		rc = check_signed(&w.replace, err);
	if (!rc)
		rc = check_companions(&w.replace, err);
	if (!rc)
		rc = find_original(&w, err);
	if (!rc)
		rc = copy_output(&w, output, nr_threads, &report, err);
	if (!rc)
		rc = put_in_place(&w, &report, err);
	end_work(&w);
	return rc;
}

/* ---- restore -------------------------------------------------------------------------------- */

static int put_back(struct work *w, struct mp_err *err)
{
	char kept[MP_NEW_NAME_MAX];
	struct stat old;
	struct me_digest copied;
	struct mp_err why;
	struct mp_id id;
	int left, rc = read_output(w->replace.path, w->replace.old_fd, NULL, &id, &w->old_output,
				   err);

	/* The output was replaced, by a newer version or a script: keep that. */
	if (rc == -ENOENT || rc == -ENOEXEC || rc == -EBADMSG)
		return mp_err_set(err, EPERM, "%s: is not an output of Morph; it was not changed",
				  w->replace.path);
	if (!rc)
		rc = me_backup_open(&w->backup, w->options->backup_dir, false, err);
	if (!rc)
		rc = me_backup_find(&w->backup, &id, w->replace.path, &w->old_output, &w->original,
				    err);
	if (rc)
		return rc;
	rc = me_digest_copy(w->original.fd, w->replace.new_fd, &copied, NULL);
	if (rc)
		return mp_err_set(err, -rc, "%s: cannot write the original: %s", w->replace.path,
				  strerror(-rc));
	if (!me_digest_equal(&copied, &w->original.digest))
		return mp_err_set(err, EPERM, "%s: its backup %s is damaged", w->replace.path,
				  w->original.path);
	/* Debug file first: if the process is killed now, --restore can be repeated. */
	left = drop_debug(w, &id, &w->original.digest, NULL, &why);
	rc = me_replace_commit(&w->replace, &w->original.mtime, err);
	if (!rc) {
		/* A killed worker may have left its second version beside it. */
		mp_kept_name(w->replace.base, kept);
		unlinkat(w->replace.dir_fd, kept, 0);
		w->done->nr_other_names = fstat(w->replace.old_fd, &old) ? 0 : old.st_nlink;
		w->done->backup = w->original.path;
		w->original.path = NULL;
	}
	if (!rc && left) {
		*err = why;
		rc = left;
	}
	return rc;
}

int me_restore(const char *path, const struct me_inplace_options *inplace,
	       struct me_inplace_report *done, struct mp_err *err)
{
	struct work w;
	int rc;

	begin_work(&w, inplace, done);
	/*
	 * Nothing may hinder an undo. An output had one name when it was put in place. Another one was given
	 * since then, for instance by perf record, whose cache links the files that were sampled.
	 */
	rc = me_replace_begin(&w.replace, path, flags_of(inplace) | ME_REPLACE_BREAK_LINKS, err);
	if (!rc)
		rc = check_signed(&w.replace, err);
	if (!rc)
		rc = put_back(&w, err);
	end_work(&w);
	return rc;
}

void me_inplace_report_fini(struct me_inplace_report *done)
{
	free(done->path);
	free(done->backup);
	*done = (struct me_inplace_report){0};
}
