// SPDX-License-Identifier: Apache-2.0
/*
 * export_calls - formats with callers: each writes the paths of calling contexts by function. Called
 * through struct md_export_format.
 */
#ifndef MD_EXPORT_CALLS_H
#define MD_EXPORT_CALLS_H

#include "daemon/calls/call_tree.h"
#include "daemon/export/export.h"

/* Return: 0, -errno with a message. The caller finds errors of writing. */
int md_export_calls_folded(struct md_export *e, const struct md_calls *calls, struct mp_err *err);
int md_export_calls_pprof(struct md_export *e, const struct md_calls *calls, struct mp_err *err);
int md_export_calls_callgrind(struct md_export *e, const struct md_calls *calls,
			      struct mp_err *err);
/* What ends a frame of the format folded. */
#define MD_EXPORT_FRAMES_END ";"
/* Writes a line "KEY=NAME" of the format callgrind, where a number in parentheses stands for another name. */
void md_export_put_callgrind(FILE *out, const char *key, const char *name);

/* Return: the node's name, never NULL. */
static inline const char *md_export_calls_name(const struct md_calls *calls, uint32_t node)
{
	const char *name = md_calls_name(calls, node);

	return name ? name : "?";
}

#endif
