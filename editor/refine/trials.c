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

/* Did a later audit find the version of trial @i to be anything but faster? */
static bool contradicted(const struct mp_trial *trials, size_t nr, size_t i)
{
	for (size_t k = i + 1; k < nr; k++)
		if (strcmp(trials[k].verdict, "faster") != 0 &&
		    strcmp(trials[k].verdict, "undecided") != 0 &&
		    !strcmp(trials[k].adjustments, trials[i].adjustments))
			return true;
	return false;
}

/* Adjustments that this program does not know are of a newer one. */
static int read_good(const struct mp_trial *trials, size_t nr, struct me_wishes *good)
{
	struct mp_err ignored;
	int rc;

	for (size_t i = nr; i-- > 0;) {
		if (strcmp(trials[i].verdict, "faster") != 0 || contradicted(trials, nr, i))
			continue;
		rc = me_wishes_parse(trials[i].adjustments, good, &ignored);
		return rc == -EINVAL ? 0 : rc;
	}
	return 0;
}

int me_trials_read(const char *db, const struct mp_id *original, struct me_wishes *good,
		   struct mp_err *err)
{
	char machine[MACHINE_MAX];
	struct mp_trial *trials = NULL;
	struct mp_store *store;
	size_t nr = 0;
	int rc = mp_store_open(db, MP_STORE_READ, &store, err);

	*good = (struct me_wishes){0};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	me_trials_machine(machine);
	rc = mp_store_list_trials(store, original, machine, &trials, &nr, err);
	if (!rc && read_good(trials, nr, good))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	mp_store_free_trials(trials, nr);
	mp_store_close(store);
	if (rc)
		me_wishes_fini(good);
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

static int write_audit(struct writer *w, const struct me_wishes *wishes, const struct me_verdict *v)
{
	struct mp_trial trial = w->trial;
	char *adjustments = me_wishes_format(wishes), *functions = names_of(w, wishes);
	int rc;

	trial.adjustments = adjustments;
	trial.functions = functions;
	trial.verdict = (char *)v->verdict;
	trial.nr_runs = (uint32_t)v->nr_pairs;
	trial.ratio = v->speedup;
	trial.lowest = v->lowest;
	trial.highest = v->highest;
	rc = adjustments && functions ? mp_store_add_trial(w->store, &trial, w->err)
				      : mp_err_set(w->err, ENOMEM, "out of memory");
	free(adjustments);
	free(functions);
	return rc;
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
	if (!rc && first->verdict[0])
		rc = write_audit(&w, wishes, first);
	if (!rc && report->verdict.verdict[0])
		rc = write_audit(&w, &report->wishes, &report->verdict);
	if (!rc)
		rc = mp_store_commit(w.store, err);
	else
		mp_store_rollback(w.store);
	mp_store_close(w.store);
	return rc;
}
