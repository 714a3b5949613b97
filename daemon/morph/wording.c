// SPDX-License-Identifier: Apache-2.0
/* wording - names of states, gains and reasons; see wording.h. */
#include "daemon/morph/wording.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/base/text.h"
#include "libprof/cli/svg.h"

static const char *const job_words[MP_NR_JOB_STATES] = {
	[MP_JOB_WANTED] = "waits for its turn",
	[MP_JOB_COUNTING] = "counts at times",
	[MP_JOB_PROFILED] = "being written",
	[MP_JOB_WRITTEN] = "being verified",
	[MP_JOB_VERIFIED] = "being measured",
	[MP_JOB_AUDITING] = "measures itself",
	[MP_JOB_TRYING] = "being tried",
	[MP_JOB_AUDITED] = "measured: faster",
	[MP_JOB_ADVISED] = "ready to be adopted",
	[MP_JOB_ADOPTED] = "in use, on probation",
	[MP_JOB_KEPT] = "in use",
	[MP_JOB_UNDOING] = "being undone",
	[MP_JOB_UNDONE] = "undone",
	[MP_JOB_NOT_FASTER] = "not faster",
	[MP_JOB_UNDECIDED] = "faster? cannot tell",
	[MP_JOB_REFUSED] = "refused",
	[MP_JOB_FAILED] = "failed",
	[MP_JOB_GONE] = "removed",
};

static bool has_too_few(const struct md_machine_program *p)
{
	return !p->module || p->module->nr_samples < MD_WORTH_MIN_SAMPLES;
}

bool md_wording_has_nothing_yet(const struct md_machine_program *p)
{
	return p->job && p->job->state == MP_JOB_REFUSED && p->job->before_samples;
}

/* morph optimize without a command writes a version that nobody measured. */
static bool is_unmeasured(const struct md_machine_program *p)
{
	return p->job && p->job->state == MP_JOB_ADVISED && !(p->job->gain.ratio > 0);
}

const char *md_wording_state(const struct md_machine_program *p)
{
	if (md_wording_has_nothing_yet(p))
		return "nothing to move yet";
	if (is_unmeasured(p))
		return "written, not measured";
	if (p->job && p->job->state < MP_NR_JOB_STATES)
		return job_words[p->job->state];
	if (p->denied)
		return "left alone";
	switch (p->file) {
	case MD_FILE_NONE: return "not a file";
	case MD_FILE_GONE: return "file is gone";
	case MD_FILE_OTHER: return "upgraded, no samples";
	case MD_FILE_OUTPUT: return "in use";
	default: return has_too_few(p) ? "too few samples" : "not tried yet";
	}
}

const char *md_wording_state_key(const struct md_machine_program *p)
{
	if (p->job && p->job->state < MP_NR_JOB_STATES)
		return mp_job_state_name(p->job->state);
	if (p->denied)
		return "left-alone";
	switch (p->file) {
	case MD_FILE_NONE: return "no-file";
	case MD_FILE_GONE: return "gone";
	case MD_FILE_OTHER: return "upgraded";
	case MD_FILE_OUTPUT: return "in-use";
	default: return has_too_few(p) ? "too-few-samples" : "not-tried";
	}
}

/* ---- reasons --------------------------------------------------------------------------------- */

static const char *const job_reasons[MP_NR_JOB_STATES] = {
	[MP_JOB_WANTED] = "It waits for its turn. morph-worker works when the machine is idle, and "
			  "morph optimize at once.",
	[MP_JOB_COUNTING] = "At times a version that counts its branches is in its place; between "
			    "these times the original is.",
	[MP_JOB_PROFILED] = "Enough samples are there; the optimised version is written next.",
	[MP_JOB_WRITTEN] = "An optimised version is written; it is verified next.",
	[MP_JOB_VERIFIED] = "An optimised version is verified; next an audit measures whether it "
			    "is faster.",
	[MP_JOB_AUDITING] =
		"A version that times its own functions is in use for a while; then the "
		"original is put back.",
	[MP_JOB_TRYING] =
		"The original and the new version, both with counters of their work, are in "
		"its place in turns, to find out which is faster.",
	[MP_JOB_AUDITED] = "An audit found the optimised version faster.",
	[MP_JOB_ADVISED] = "A faster version is ready. Nothing is replaced unless somebody says "
			   "so: morph adopt does.",
	[MP_JOB_ADOPTED] = "The optimised version is in use, on probation: its samples and crashes "
			   "are compared with the original's.",
	[MP_JOB_KEPT] = "The optimised version is in use.",
	[MP_JOB_UNDOING] = "The original is being put back.",
	[MP_JOB_UNDONE] = "The original is back in its place.",
	[MP_JOB_NOT_FASTER] = "An optimised version was written, and an audit did not find it "
			      "faster. The original stays.",
	[MP_JOB_UNDECIDED] = "An optimised version was written, but the audit could not tell "
			     "whether it is faster. The original stays.",
	[MP_JOB_REFUSED] = "Morph refuses to optimise or to replace it.",
	[MP_JOB_FAILED] = "A step failed.",
	[MP_JOB_GONE] = "The file was removed.",
};

static void put_untried(FILE *out, const struct md_machine_program *p)
{
	char buf[MD_WORDING_MAX];

	if (p->estimated && p->saving.movable < 0.005)
		fputs("Morph understands none of the code that runs in it, so nothing may move.",
		      out);
	else if (p->estimated)
		fprintf(out,
			"It was not tried yet. A better layout is expected to save %s of this "
			"machine's time.",
			md_wording_worth(&p->worth, buf));
	else
		fputs("It was not tried yet.", out);
}

static void put_reason(FILE *out, const struct md_machine_program *p)
{
	if (p->job && p->job->state < MP_NR_JOB_STATES) {
		if (md_wording_has_nothing_yet(p))
			fputs("By its samples so far, there was nothing to move in it.", out);
		else if (is_unmeasured(p))
			fputs("A version is written, but nobody measured whether it is faster: "
			      "morph optimize PROGRAM -- COMMAND does.",
			      out);
		else
			fputs(job_reasons[p->job->state], out);
		if (p->job->detail && p->job->detail[0])
			fprintf(out, " The reason: %s.", p->job->detail);
		return;
	}
	if (p->denied) {
		/* deny begins its reasons so. */
		fprintf(out, "Morph leaves it alone: %s.",
			p->denied + (strncmp(p->denied, "left alone: ", 12) ? 0 : 12));
		return;
	}
	switch (p->file) {
	case MD_FILE_NONE: fputs("It is not a file that could be replaced.", out); return;
	case MD_FILE_GONE:
		fputs("The file is not there any more, or only inside a container.", out);
		return;
	case MD_FILE_OTHER:
		fputs("The file was upgraded since it was sampled, and the new build has no sample "
		      "yet.",
		      out);
		return;
	case MD_FILE_OUTPUT: fputs("An optimised version is in use.", out); return;
	default: break;
	}
	if (!p->module || !p->module->nr_samples)
		fputs("There is no profile: no sample fell into this build of it.", out);
	else if (has_too_few(p))
		fprintf(out,
			"There is too little profile: %" PRIu64 " samples of %d that are needed. "
			"More come as it runs.",
			p->module->nr_samples, MD_WORTH_MIN_SAMPLES);
	else
		put_untried(out, p);
}

char *md_wording_reason(const struct md_machine_program *program)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	put_reason(out, program);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- numbers and columns ---------------------------------------------------------------------- */

const char *md_wording_gain(const struct mp_job_gain *gain, char *buf)
{
	if (!(gain->ratio > 0))
		snprintf(buf, MD_WORDING_MAX, "not measured");
	else if (!(gain->lowest > 0))
		snprintf(buf, MD_WORDING_MAX, "%.1f %% %s",
			 100 * (gain->ratio < 1 ? 1 - gain->ratio : gain->ratio - 1),
			 gain->ratio < 1 ? "slower" : "faster");
	else if (gain->ratio < 1)
		snprintf(buf, MD_WORDING_MAX, "%.1f %% slower (%.1f to %.1f)",
			 100 * (1 - gain->ratio), 100 * (1 - gain->highest),
			 100 * (1 - gain->lowest));
	else
		snprintf(buf, MD_WORDING_MAX, "%.1f %% faster (%.1f to %.1f)",
			 100 * (gain->ratio - 1), 100 * (gain->lowest - 1),
			 100 * (gain->highest - 1));
	return buf;
}

const char *md_wording_worth(const struct md_worth *worth, char *buf)
{
	snprintf(buf, MD_WORDING_MAX, "%.2f %% (%.2f to %.2f)", worth->gain, worth->least,
		 worth->most);
	return buf;
}

bool md_wording_saved(const struct md_saved *saved, char *buf)
{
	const struct md_saved_time *all = &saved->all;
	size_t more = saved->nr_programs - saved->nr_measured, len;
	char when[MD_WORDING_MAX], seconds[64] = "", count[32];

	if (!saved->nr_programs)
		return false;
	if (!saved->nr_measured) {
		snprintf(buf, MD_WORDING_SAVED_MAX,
			 "Saved: not known, since no optimised program was measured.");
		return true;
	}
	if (saved->has_rate && fabs(all->saved) < 10)
		snprintf(seconds, sizeof(seconds), ", %.1f s", all->saved);
	else if (saved->has_rate)
		snprintf(seconds, sizeof(seconds), ", %s%s s", all->saved < 0 ? "-" : "",
			 mp_svg_format_count((uint64_t)llround(fabs(all->saved)), count));
	snprintf(buf, MD_WORDING_SAVED_MAX,
		 "Saved %.1f %% (%.1f to %.1f) of this machine's CPU time %s%s%s.",
		 md_saved_percent(all, all->saved), md_saved_percent(all, all->least),
		 md_saved_percent(all, all->most), saved->whole ? "in the last 7 days" : "since ",
		 saved->whole ? "" : md_wording_time(saved->since_s, when), seconds);
	len = strlen(buf);
	if (more)
		snprintf(buf + len, MD_WORDING_SAVED_MAX - len, " %zu more program%s not measured.",
			 more, more == 1 ? " was" : "s were");
	return true;
}

void md_wording_put_path(FILE *out, const char *text, size_t width)
{
	size_t len = 0, skip, shown;
	char *escaped = mp_text_escaped(text);
	const char *at = escaped;

	for (const char *c = escaped; c && *c; c++)
		len += (*c & 0xc0) != 0x80;
	if (at && len > width) {
		/* Keep the end, which tells programs apart. */
		for (skip = len - width + 3; skip; skip--) {
			at++;
			while ((*at & 0xc0) == 0x80)
				at++;
		}
		fputs("...", out);
		shown = width;
	} else {
		shown = len;
	}
	fputs(at ? at : "?", out);
	for (; shown < width; shown++)
		fputc(' ', out);
	free(escaped);
}

const char *md_wording_time(int64_t time_s, char *buf)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!time_s || !localtime_r(&t, &tm) || !strftime(buf, MD_WORDING_MAX, "%F %H:%M", &tm))
		strcpy(buf, "-");
	return buf;
}
