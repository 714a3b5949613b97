// SPDX-License-Identifier: Apache-2.0
/* object_kind - tells relocatable objects and archives of them from other files, by their first bytes. */
#ifndef ME_OBJECT_KIND_H
#define ME_OBJECT_KIND_H

#include "libprof/base/err.h"

/* ME_OBJECT_NONE: neither an object nor an archive, or there is no such file. */
enum me_object_kind {
	ME_OBJECT_NONE,
	ME_OBJECT_REL,
	ME_OBJECT_ARCHIVE
};
/* Return: 0; -errno: it could not be read. */
int me_object_kind(const char *path, enum me_object_kind *kind, struct mp_err *err);

#endif
