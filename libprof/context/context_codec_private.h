// SPDX-License-Identifier: Apache-2.0
/* context_codec_private - what the two forms of a tree's bytes share. */
#ifndef MP_CONTEXT_CODEC_PRIVATE_H
#define MP_CONTEXT_CODEC_PRIVATE_H

#include "libprof/base/varint.h"
#include "libprof/context/context_tree.h"

#define MP_CONTEXT_MODULES_MAX 4096u
#define MP_CONTEXT_DEPTH_MAX   4096u

enum {
	MP_CONTEXT_PLAIN = 1, /* context_codec */
	MP_CONTEXT_PACKED,    /* context_pack */
};

/* Kinds of nodes that have samples, and no children. */
static inline bool mp_context_has_samples(uint8_t kind)
{
	return kind == MP_CONTEXT_FUNCTION || kind == MP_CONTEXT_OTHER;
}

/* Writes the version, the time of a sample in ns and the modules. Return: that time. */
uint64_t mp_context_put_head(struct mp_varint_writer *w, unsigned int version,
			     const struct mp_context_tree *tree);
/* Reads the modules into @raw. Return: 0, -ENOMEM, -EBADMSG. */
int mp_context_get_modules(struct mp_varint_reader *r, struct mp_context_tree *raw);

/* Reads what follows the version into @raw, which has the root alone. Return: 0, -ENOMEM, -EBADMSG. */
int mp_context_unpack(struct mp_varint_reader *r, struct mp_context_tree *raw);

#endif
