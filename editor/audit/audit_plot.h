// SPDX-License-Identifier: Apache-2.0
/*
 * audit_plot - an audit as a few lines of a terminal: the runs of each side as bars, and the
 * interval after 8, 16, 32, ... pairs.
 *
 * Called by morph_audit.c.
 */
#ifndef ME_AUDIT_PLOT_H
#define ME_AUDIT_PLOT_H

#include <stdio.h>

#include "editor/audit/audit.h"

/* me_audit_plot - print the plot; nothing without pairs. */
void me_audit_plot(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);

#endif
