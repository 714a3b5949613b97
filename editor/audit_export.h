// SPDX-License-Identifier: Apache-2.0
/*
 * audit_export - an audit as CSV, one line for each pair, and as a Markdown table; and the pairs
 * of such a CSV file, so that an audit can go on. Called by morph_audit.c.
 */
#ifndef ME_AUDIT_EXPORT_H
#define ME_AUDIT_EXPORT_H

#include <stdio.h>

#include "editor/audit.h"

/* me_audit_print_csv - columns: pair, a_ns, b_ns, speedup, metric, a_hash, b_hash. */
void me_audit_print_csv(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_print_markdown - a table of both programs, and a sentence with the verdict. */
void me_audit_print_markdown(const struct me_audit_opts *opts, const struct me_audit *audit,
			     FILE *out);
/*
 * me_audit_read_csv - what me_audit_print_csv() wrote to @path. Return: 0; -EINVAL where the file
 * holds something else; -errno; with @err set. Ownership: me_audit_pairs_fini(), always.
 */
int me_audit_read_csv(const char *path, struct me_audit_pairs *pairs, struct mp_err *err);
void me_audit_pairs_fini(struct me_audit_pairs *pairs);

#endif
