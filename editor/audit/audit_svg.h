// SPDX-License-Identifier: Apache-2.0
/*
 * audit_svg - a picture of an audit: the values of both sides, and the interval as it narrows.
 *
 * Decides places, colours and axes. Readable on light and dark screens, and by screen readers.
 * Called by morph_audit.c.
 */
#ifndef ME_AUDIT_SVG_H
#define ME_AUDIT_SVG_H

#include <stdio.h>

#include "editor/audit/audit.h"

/* me_audit_print_svg - write the picture. Without pairs it says only that there are none. */
void me_audit_print_svg(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out);

#endif
