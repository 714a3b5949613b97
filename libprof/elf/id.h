// SPDX-License-Identifier: Apache-2.0
/*
 * id - the identity of a module: its GNU build-id and a hash of all its executable
 * segments.
 * strip keeps the build-id. The hash protects a program's profile from files with a forged
 * build-id. A path identifies nothing: an updated file is another module.
 */
#ifndef MP_ID_H
#define MP_ID_H

#include <stdbool.h>
#include <stdint.h>

#define MP_BUILD_ID_MAX 32 /* longer build-ids are cut; the text hash tells them apart */

struct mp_id {
	uint8_t build_id[MP_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: the file has none, and the text hash alone names it */
	uint64_t text_hash;   /* XXH3-64 over the file bytes of every PF_X PT_LOAD, in order */
};

bool mp_id_equal(const struct mp_id *a, const struct mp_id *b);

/* Lower-case hex of the build-id; "" if there is none. @buf holds 2 * MP_BUILD_ID_MAX + 1 bytes. */
void mp_id_format_build_id(const struct mp_id *id, char *buf);

#endif
