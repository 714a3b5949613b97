// SPDX-License-Identifier: Apache-2.0
/*
 * train_refine - the part of a training that looks for functions that became slower: reads earlier
 * trials, refines, keeps the trials, and makes the best version again under its final name. Called
 * by train.c.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "editor/audit/run/audit_slot.h"
#include "editor/refine/trials.h"
#include "editor/refine/program_runner.h"
#include "editor/train/train_private.h"
#include "libprof/cli/exit_status.h"
#include "libprof/elf/elf.h"

static bool wants_refinement(const struct me_trainer *t)
{
	return !t->options->no_refine && !t->options->no_audit;
}

/* Trials that cannot be read or kept are no reason to fail. */
static int lose_trials(struct me_trainer *t, const struct mp_err *why)
{
	free(t->report->trials_lost);
	t->report->trials_lost = strdup(why->msg);
	return t->report->trials_lost ? 0 : mp_err_set(t->err, ENOMEM, "out of memory");
}

int me_train_read_trials(struct me_trainer *t)
{
	struct mp_err why = {""};
	struct mp_elf *elf;
	int rc;

	if (!wants_refinement(t) || !t->options->trials_db)
		return 0;
	rc = mp_elf_open(t->file, MP_ELF_ID, &elf, t->err);
	if (rc)
		return rc;
	rc = me_trials_read(t->options->trials_db, &elf->id, &t->wishes, &why);
	mp_elf_close(elf);
	if (rc)
		return lose_trials(t, &why);
	/* The user's wishes replace those that were found out. */
	if (t->options->optimize.adjust_words.nr)
		me_wishes_fini(&t->wishes);
	if (me_wishes_copy(&t->report->known, &t->wishes))
		return mp_err_set(t->err, ENOMEM, "out of memory");
	return 0;
}

/* The adjustments of the first version: the user's, or those of earlier trials. */
static int read_first(const struct me_trainer *t, struct me_wishes *out)
{
	const struct me_optimize_report *r = &t->report->final;
	int rc = 0;

	*out = (struct me_wishes){0};
	for (uint32_t i = 0; i < r->nr_adjusted && !rc; i++)
		for (uint8_t kind = 0; kind < ME_NR_ADJUSTS && !rc; kind++) {
			const struct me_adjustment *how = &r->adjusted[i].how;

			if (me_adjustment_has(how, kind))
				rc = me_wishes_add(
					out, &(struct me_adjust){.vaddr = r->adjusted[i].vaddr,
								 .bytes = how->bytes[kind],
								 .kind = kind});
		}
	return rc ? mp_err_code(t->err, -rc) : 0;
}

static uint64_t draw_seed(void)
{
	uint64_t seed = 1;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)getpid();
	return seed;
}

static int refine(struct me_trainer *t, struct me_program_runner *programs,
		  const struct me_wishes *first)
{
	struct me_train_report *r = t->report;
	struct me_runner runner = me_program_runner_callbacks(programs);
	struct me_refine_options o = {.runner = &runner,
				      .version = "final",
				      .wishes = *first,
				      .first = r->first,
				      .alpha = ME_TRAIN_ALPHA,
				      .budget_s = me_train_budget_s(t),
				      .run_s = fmax(r->plain_wall_s, 0.001),
				      .seed = draw_seed()};
	struct mp_err why = {""};
	int rc;

	o.funcs = me_program_runner_funcs(programs, &o.nr_funcs);
	rc = me_refine(&o, &r->refinement, t->err);
	r->refined = !rc;
	if (!rc && t->options->trials_db &&
	    me_trials_write(t->options->trials_db, &r->final.id, o.funcs, o.nr_funcs, first,
			    &r->first, &r->refinement, &why))
		rc = lose_trials(t, &why);
	return rc;
}

static int hash_of(struct me_trainer *t, const char *name, uint64_t *hash)
{
	struct me_train_path path = me_train_path(t, name);
	struct me_program program;
	int rc = me_program_open(&program, path.text, t->err);

	if (rc)
		return rc;
	rc = me_program_hash(&program, hash, t->err);
	me_program_close(&program);
	return rc;
}

/* Makes the version @name again, as the final one; it must be the same, byte for byte. */
static int make_again(struct me_trainer *t, const char *name, const struct me_wishes *wishes)
{
	uint64_t audited = 0, made = 0;
	int rc;

	/* Other versions may have written its debug file anew. */
	if (!strcmp(name, "final") && !t->options->optimize.debug_file)
		return 0;
	rc = hash_of(t, name, &audited);
	if (rc)
		return rc;
	me_wishes_fini(&t->wishes);
	if (me_wishes_copy(&t->wishes, wishes))
		return mp_err_set(t->err, ENOMEM, "out of memory");
	t->without_words = true;
	rc = me_train_write_final(t);
	if (!rc)
		rc = hash_of(t, "final", &made);
	if (!rc && made != audited)
		rc = mp_err_set(t->err, EIO,
				"%s: the version that was audited cannot be made again", t->file);
	return rc;
}

int me_train_refine(struct me_trainer *t)
{
	const struct me_refine_report *refined = &t->report->refinement;
	struct me_train_final final;
	struct me_program_runner_options o = {.dir = t->dir,
					      .file = t->file,
					      .program = t->program,
					      .command = t->options->command,
					      .filter = t->options->filter,
					      .optimize = &final.options,
					      .say = t->options->say};
	struct me_program_runner *programs = NULL;
	enum me_refine_best version;
	struct me_wishes first = {0};
	int rc;

	if (!wants_refinement(t) || t->report->audit == MP_EXIT_DIFFERS)
		return 0;
	me_train_final_options(t, &final);
	o.debug_output = final.options.debug_output;
	rc = read_first(t, &first);
	if (!rc)
		rc = me_program_runner_open(&o, &programs, t->err);
	if (!rc)
		rc = refine(t, programs, &first);
	me_program_runner_close(programs);
	if (rc) {
		me_wishes_fini(&first);
		return rc;
	}
	version = refined->best ? refined->best : refined->undecided;
	if (version == ME_REFINE_SECOND)
		rc = make_again(t, ME_REFINE_SECOND_NAME, &refined->wishes);
	else if (version == ME_REFINE_FIRST)
		rc = make_again(t, "final", &first);
	if (!rc && version &&
	    me_wishes_copy(&t->report->chosen,
			   version == ME_REFINE_SECOND ? &refined->wishes : &first))
		rc = mp_err_set(t->err, ENOMEM, "out of memory");
	me_wishes_fini(&first);
	return rc;
}
