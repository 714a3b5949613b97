// SPDX-License-Identifier: Apache-2.0
/* trials - reads and writes the table of trials; see trials.h. */
#include "editor/refine/trials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/store/audits/store_trials.h"

#define MACHINE_MAX 128
#define SCREENED    "screened"

void me_trials_machine(char *out)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	char line[256], *value;

	snprintf(out, MACHINE_MAX, "unknown");
	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, "model name", 10) != 0 || !(value = strchr(line, ':')))
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = '\0';
		snprintf(out, MACHINE_MAX, "%.127s", value);
		break;
	}
	if (in)
		fclose(in);
}

/* ---- read ---------------------------------------------------------------------------------- */

static bool screened(const struct mp_trial *trial)
{
	return !strcmp(trial->verdict, SCREENED);
}

/* Did a later audit find the version of trial @i to be anything but faster? */
static bool contradicted(const struct mp_trial *trials, size_t nr, size_t i)
{
	for (size_t k = i + 1; k < nr; k++)
		if (!screened(&trials[k]) && strcmp(trials[k].verdict, "faster") != 0 &&
		    strcmp(trials[k].verdict, "undecided") != 0 &&
		    !strcmp(trials[k].adjustments, trials[i].adjustments))
			return true;
	return false;
}

/* Adjustments that this program does not know are of a newer one. */
static int add_tried(struct me_wishes *tried, const char *text)
{
	struct me_wishes wishes;
	struct mp_err ignored;
	int rc = me_wishes_parse(text, &wishes, &ignored);

	if (rc)
		return rc == -EINVAL ? 0 : rc;
	for (size_t i = 0; i < wishes.nr && !rc; i++)
		if (!me_wishes_have(tried, &wishes.list[i]))
			rc = me_wishes_add(tried, &wishes.list[i]);
	me_wishes_fini(&wishes);
	return rc;
}

static int read_all(const struct mp_trial *trials, size_t nr, struct me_wishes *good,
		    struct me_wishes *tried)
{
	struct mp_err ignored;
	int rc = 0;

	for (size_t i = 0; i < nr && !rc; i++)
		if (screened(&trials[i]))
			rc = add_tried(tried, trials[i].adjustments);
	for (size_t i = nr; i-- > 0 && !rc;) {
		if (strcmp(trials[i].verdict, "faster") != 0 || contradicted(trials, nr, i))
			continue;
		rc = me_wishes_parse(trials[i].adjustments, good, &ignored);
		return rc == -EINVAL ? 0 : rc;
	}
	return rc;
}

int me_trials_read(const char *db, const struct mp_id *original, struct me_wishes *good,
		   struct me_wishes *tried, struct mp_err *err)
{
	char machine[MACHINE_MAX];
	struct mp_trial *trials = NULL;
	struct mp_store *store;
	size_t nr = 0;
	int rc = mp_store_open(db, MP_STORE_READ, &store, err);

	*good = *tried = (struct me_wishes){0};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	me_trials_machine(machine);
	rc = mp_store_list_trials(store, original, machine, &trials, &nr, err);
	if (!rc && read_all(trials, nr, good, tried))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	mp_store_free_trials(trials, nr);
	mp_store_close(store);
	if (rc) {
		me_wishes_fini(good);
		me_wishes_fini(tried);
	}
	return rc;
}

/* ---- write --------------------------------------------------------------------------------- */

struct writer {
	struct mp_store *store;
	const struct me_refine_func *funcs;
	size_t nr_funcs;
	struct mp_trial trial; /* its fixed part */
	struct mp_err *err;
};

/* Names of the functions of @wishes, in their order; an address where there is no name. */
static char *names_of(const struct writer *w, const struct me_wishes *wishes)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; out && i < wishes->nr; i++) {
		const char *name = "";

		for (size_t f = 0; f < w->nr_funcs; f++)
			if (w->funcs[f].vaddr == wishes->list[i].vaddr)
				name = w->funcs[f].name;
		if (*name)
			fprintf(out, "%s%s", i ? " " : "", name);
		else
			fprintf(out, "%s0x%llx", i ? " " : "",
				(unsigned long long)wishes->list[i].vaddr);
	}
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int write_one(struct writer *w, const struct me_wishes *wishes, const char *verdict,
		     uint32_t nr_runs, double ratio, double lowest, double highest)
{
	struct mp_trial trial = w->trial;
	char *adjustments = me_wishes_format(wishes), *functions = names_of(w, wishes);
	int rc;

	trial.adjustments = adjustments;
	trial.functions = functions;
	trial.verdict = (char *)verdict;
	trial.nr_runs = nr_runs;
	trial.ratio = ratio;
	trial.lowest = lowest;
	trial.highest = highest;
	rc = adjustments && functions ? mp_store_add_trial(w->store, &trial, w->err)
				      : mp_err_set(w->err, ENOMEM, "out of memory");
	free(adjustments);
	free(functions);
	return rc;
}

static int write_audit(struct writer *w, const struct me_wishes *wishes, const struct me_verdict *v)
{
	if (!v->verdict[0])
		return 0;
	return write_one(w, wishes, v->verdict, (uint32_t)v->nr_pairs, v->speedup, v->lowest,
			 v->highest);
}

static int write_round(struct writer *w, const struct me_refine_round *round)
{
	int rc = 0;

	for (size_t i = 0; i < round->nr_tried && !rc; i++) {
		const struct me_refine_tried *tried = &round->tried[i];
		struct me_adjust wish = tried->wish;

		rc = write_one(w, &(struct me_wishes){&wish, 1}, SCREENED, tried->nr_runs,
			       tried->ratio, 0, 0);
	}
	return rc ? rc : write_audit(w, &round->wishes, &round->verdict);
}

int me_trials_write(const char *db, const struct mp_id *original,
		    const struct me_refine_func *funcs, size_t nr_funcs,
		    const struct me_wishes *wishes, const struct me_verdict *first,
		    const struct me_refine_report *report, struct mp_err *err)
{
	char machine[MACHINE_MAX];
	struct writer w = {.funcs = funcs, .nr_funcs = nr_funcs, .err = err};
	int rc = mp_store_open(db, MP_STORE_WRITE, &w.store, err);

	if (rc)
		return rc;
	me_trials_machine(machine);
	w.trial = (struct mp_trial){
		.original = *original, .machine = machine, .when_s = (int64_t)time(NULL)};
	rc = mp_store_begin(w.store, err);
	if (!rc)
		rc = write_audit(&w, wishes, first);
	for (size_t i = 0; i < report->nr_rounds && !rc; i++)
		rc = write_round(&w, &report->rounds[i]);
	if (!rc)
		rc = mp_store_commit(w.store, err);
	else
		mp_store_rollback(w.store);
	mp_store_close(w.store);
	return rc;
}
