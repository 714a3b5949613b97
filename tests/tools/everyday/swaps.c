// SPDX-License-Identifier: Apache-2.0
/*
 * swaps - two versions take turns at a path as in the worker (daemon/worker/live.h), and what that takes. Called by
 * scripts/bench/bench-swaps.
 *
 *	swaps PATH FIRST SECOND NR	replaces PATH; keeps its notes in the directory PATH.swaps
 *
 * Prints JSON: CPU seconds and blocks of 512 bytes written, of NR swaps.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/worker/file_state.h"
#include "daemon/worker/live.h"

static const enum md_variant variants[2] = {MD_METERED_ORIGINAL, MD_METERED_NEW};

static int fail(const char *what, const struct mp_err *err)
{
	fprintf(stderr, "swaps: %s: %s\n", what, err && err->msg[0] ? err->msg : strerror(errno));
	return EXIT_FAILURE;
}

/* As morph-optimize does. */
static int put(struct md_live *live, const char *from, enum md_variant variant)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "cp '%s' '%s.new' && sync '%s.new' && mv '%s.new' '%s'",
		 from, live->path, live->path, live->path, live->path);
	if (system(command) || lstat(live->path, &live->file))
		return -1;
	live->there = variant;
	return 0;
}

static double cpu_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	struct mp_err err = {""};
	struct mp_job job = {0};
	struct md_worker worker = {0};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_live live = {0};
	struct rusage before, after;
	struct stat was, now;
	char state[PATH_MAX], hash[33];
	int nr = argc == 5 ? atoi(argv[4]) : 0;

	if (nr < 1) {
		fputs("usage: swaps PATH FIRST SECOND NR\n", stderr);
		return EXIT_FAILURE;
	}
	live.path = job.path = argv[1];
	snprintf(state, sizeof(state), "%s.swaps", argv[1]);
	if (mkdir(state, 0700) || md_work_dir_open(state, argv[1], &task.dir, &err))
		return fail(state, &err);
	for (int i = 0; i < 2; i++)
		if (md_file_hash(argv[2 + i], hash) ||
		    md_variants_note(&task.dir, variants[i], hash, &err))
			return fail(argv[2 + i], &err);
	if (put(&live, argv[2], variants[0]) || !md_spare_keep(&live))
		return fail(argv[1], NULL);
	was = live.file;
	if (put(&live, argv[3], variants[1]))
		return fail(argv[1], NULL);
	now = live.file;
	live.file = was;
	live.there = variants[0];
	md_spare_take(&task, &live);
	live.file = now;
	live.there = variants[1];
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < nr; i++) {
		if (!md_spare_swap(&task, &live, variants[i % 2])) {
			fputs("swaps: a file is not as it was\n", stderr);
			return EXIT_FAILURE;
		}
		live.there = variants[i % 2];
	}
	getrusage(RUSAGE_SELF, &after);
	md_spare_drop(&live);
	printf("{\"cpu_s\": %.6f, \"blocks\": %ld}\n", cpu_s(&after) - cpu_s(&before),
	       after.ru_oublock - before.ru_oublock);
	return 0;
}
