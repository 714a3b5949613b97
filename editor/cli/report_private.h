// SPDX-License-Identifier: Apache-2.0
/* report_private - what the reports in text and in JSON share. Only report*.c include this header. */
#ifndef ME_REPORT_PRIVATE_H
#define ME_REPORT_PRIVATE_H

#include <jansson.h>

#include "editor/cli/report.h"

extern const char *const me_stage_names[ME_NR_STAGES];
extern const char *const me_slice_stay_names[ME_NR_SLICE_STAYS];

/* Evidence by which analysis and verification know which words are addresses. */
const char *me_report_evidence(const struct me_optimize_report *report);
/* Sum over all stages. */
double me_report_total_s(const double *stage_s);
/* Bytes between copies, and between the parts of the new segment. */
uint64_t me_report_padding(const struct me_emitted *emitted);
uint64_t me_report_warm(const struct me_emitted *emitted);

/* @name comes from a file and may hold anything; @before and @behind are Morph's own words. */
void me_report_line(FILE *out, const char *before, const char *name, const char *behind);
void me_report_text_verified(FILE *out, const struct me_verify_report *verified);
void me_report_text_other_names(FILE *out, const struct me_inplace_report *done);
/* Print what became of adjustments; nothing if none was wanted. */
void me_report_text_adjusted(FILE *out, const struct me_optimize_report *report);

/* Print which order audits in running programs decided for; all of them with @explain. */
void me_report_text_audited(FILE *out, const struct me_optimize_report *report, bool explain);

/* Print the rounds of a refinement; nothing if there was none. */
void me_report_text_refined(FILE *out, const struct me_train_report *report);

json_t *me_report_json_adjusted(const struct me_optimize_report *report);
json_t *me_report_json_audited(const struct me_optimize_report *report);
json_t *me_report_json_verified(const struct me_verify_report *verified);
/* Prints @root and a newline, and frees @root. Return: 0, -ENOMEM, -EIO. */
int me_report_json_print(json_t *root, FILE *out);

#endif
