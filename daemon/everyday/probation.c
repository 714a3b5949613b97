// SPDX-License-Identifier: Apache-2.0
/* probation - compares samples, and counts core files; see probation.h. */
#include "daemon/everyday/probation.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* With so few samples in each of the four counts, only a rise above 64 % is shown. */
#define LEAST_SAMPLES 1000
/* One in some ten thousand comparisons of equal programs exceeds so many standard deviations. */
#define DEVIATIONS 3.9
/*
 * Samples of one process come in runs, and not independently: their counts vary more than by chance
 * alone. So much more variance is allowed for. No measurement has shown the factor: a larger one
 * only makes probation slower to undo a version.
 */
#define CLUSTERED 4.0
#define COMM_MAX  15

enum md_probation_verdict md_probation_judge(const struct md_work_samples *before,
					     const struct md_work_samples *after, double worse_by,
					     double *ratio)
{
	double rise, deviation;

	*ratio = 0;
	if (before->own < LEAST_SAMPLES || before->elsewhere < LEAST_SAMPLES ||
	    after->own < LEAST_SAMPLES || after->elsewhere < LEAST_SAMPLES)
		return MD_PROBATION_UNKNOWN;
	rise = log((double)after->own) - log((double)after->elsewhere) - log((double)before->own) +
	       log((double)before->elsewhere);
	deviation = sqrt(CLUSTERED * (1.0 / (double)before->own + 1.0 / (double)before->elsewhere +
				      1.0 / (double)after->own + 1.0 / (double)after->elsewhere));
	*ratio = exp(rise);
	return rise - log1p(worse_by) > DEVIATIONS * deviation ? MD_PROBATION_SLOWER
							       : MD_PROBATION_FINE;
}

/* core.NAME.UID.BOOT.PID.TIME, where NAME is cut as the kernel cuts it. */
static bool is_core(const char *file, const char *name)
{
	size_t len = strnlen(name, COMM_MAX);

	return !strncmp(file, "core.", 5) && !strncmp(file + 5, name, len) &&
	       file[5 + len] == '.' && file[6 + len] >= '0' && file[6 + len] <= '9';
}

uint64_t md_probation_crashes(const char *dir, const char *name, int64_t since_s)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	uint64_t nr = 0;

	while (d && (entry = readdir(d))) {
		struct stat st;

		if (is_core(entry->d_name, name) && !fstatat(dirfd(d), entry->d_name, &st, 0) &&
		    st.st_mtim.tv_sec >= since_s)
			nr++;
	}
	if (d)
		closedir(d);
	return nr;
}
