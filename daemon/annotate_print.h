// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_print - an annotated function as text for people, or as JSON.
 */
#ifndef MD_ANNOTATE_PRINT_H
#define MD_ANNOTATE_PRINT_H

#include <jansson.h>

#include "daemon/annotate.h"
#include "daemon/srcfile.h"
#include "daemon/stats_filter.h"

struct md_ann_print {
	const struct md_annotation *a;
	const char *path;	/* of the file that is shown */
	const struct mp_id *id; /* of the module that the samples are of */
	uint64_t total;		/* samples of all modules in the period */
	struct md_srcfiles *sources;
	bool source, color;
	double percent_limit; /* text: blocks with less of the function's samples are left out */
};

void md_annotation_print(const struct md_ann_print *p);
/* Add what is known to @root. */
void md_annotation_json(const struct md_ann_print *p, json_t *root);

#endif
