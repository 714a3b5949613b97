// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_print - prints an annotated function as text or as JSON. Called by "morph-stats
 * annotate".
 */
#ifndef MD_ANNOTATE_PRINT_H
#define MD_ANNOTATE_PRINT_H

#include <jansson.h>

#include "daemon/annotate/annotate.h"
#include "daemon/code/srcfile.h"
#include "daemon/code/stats_filter.h"

/* A function that called the annotated one. */
struct md_ann_caller {
	char *function, *module; /* NULL: nobody, since the stack ends here; its file */
	uint64_t samples;	 /* whose stacks have this call */
	double share;		 /* of the samples whose stacks have the annotated function */
};

struct md_ann_print {
	const struct md_annotation *a;
	const char *path;	/* path of the file that is shown */
	const struct mp_id *id; /* identity of the module that the samples belong to */
	uint64_t total;		/* samples of all modules in the period */
	struct md_srcfiles *sources;
	const struct md_ann_caller *callers; /* by samples with stacks, most first */
	size_t nr_callers;
	bool source, color;
	/* text only: leaves out blocks with a smaller share of the function's samples */
	double percent_limit;
};

void md_annotation_print(const struct md_ann_print *p);
/* Adds the function's description to @root. */
void md_annotation_json(const struct md_ann_print *p, json_t *root);

#endif
