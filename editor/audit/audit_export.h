// SPDX-License-Identifier: Apache-2.0
/*
 * audit_export - an audit as CSV (one line per pair) and as a Markdown table. Also
 * reads the pairs of such a CSV file, with which an audit can continue.
 *
 * Decides formats only. Called by morph_audit.c.
 */
#ifndef ME_AUDIT_EXPORT_H
#define ME_AUDIT_EXPORT_H

#include <stdio.h>

#include "editor/audit/audit.h"

/*
 * me_audit_print_csv - columns: pair, a_ns, b_ns, speedup, metric, a_hash, b_hash. A metric that is
 * no time of a run: pair, a, b, speedup, metric, a_hash, b_hash, unit.
 */
void me_audit_print_csv(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);
/* me_audit_print_markdown - a table of both programs, and a sentence with the verdict. */
void me_audit_print_markdown(const struct me_audit_opts *opts, const struct me_audit *audit,
			     FILE *out);
/*
 * me_audit_read_csv - read a file that me_audit_print_csv() wrote. Return: 0; -EINVAL
 * if @path holds anything else; -errno; with @err set. Ownership:
 * me_audit_pairs_fini(), after an error too.
 */
int me_audit_read_csv(const char *path, struct me_audit_pairs *pairs, struct mp_err *err);
void me_audit_pairs_fini(struct me_audit_pairs *pairs);

#endif
