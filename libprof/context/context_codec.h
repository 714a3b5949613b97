// SPDX-License-Identifier: Apache-2.0
/*
 * context_codec - a calling context tree as bytes. Called by the store, which keeps the packed form
 * (context_pack.h), and by the fleet, which sends the plain one:
 *
 *	version, time of a sample in ns, number of modules; 8 bytes for each but the first
 *	number of the root's children, then each node before its children, which ascend by module, kind and address
 *
 * A node is LEB128 numbers:
 *	token: kind + 8 children? + 16 new activations? + 32 a time of its own? + 64 another module?
 *	the module's index if it is not the parent's
 *	the address, but not of "(other)": the distance to the address before it in the same module
 *	samples, of functions and "(other)"; their time if it is not samples * the time of a sample
 *	new activations if there are any; the number of children if there are any
 */
#ifndef MP_CONTEXT_CODEC_H
#define MP_CONTEXT_CODEC_H

#include "libprof/base/err.h"
#include "libprof/context/context_tree.h"

/* Return: 0, -ENOMEM. Ownership: free(*@out). */
int mp_context_encode(const struct mp_context_tree *tree, uint8_t **out, size_t *size);
/*
 * mp_context_decode - reads either form. The bytes may come from anybody. Return: 0, -ENOMEM, -EBADMSG. Ownership:
 * mp_context_tree_fini(@out), after a success.
 */
int mp_context_decode(const uint8_t *data, size_t size, struct mp_context_tree *out,
		      struct mp_err *err);
/*
 * mp_context_decode_raw - the same, for mp_context_merge() alone: children are in the order of the bytes, and
 * are not found by their keys. @raw: zeros, or the result of the call before, whose memory is used again, also
 * after an error. Ownership: mp_context_tree_fini(@raw).
 */
int mp_context_decode_raw(const uint8_t *data, size_t size, struct mp_context_tree *raw,
			  struct mp_err *err);
/*
 * mp_context_encode_within - folds @tree until its bytes are at most @max (64 or more and 8 for each
 * module), and encodes it. Return: 0, -ENOMEM.
 */
int mp_context_encode_within(struct mp_context_tree *tree, size_t max, uint8_t **out, size_t *size);
/*
 * mp_context_pack_within - the same in the packed form, and @tree has at most @max_nodes nodes then, of
 * MP_CONTEXT_PACK_NODES_MAX at most.
 */
int mp_context_pack_within(struct mp_context_tree *tree, size_t max, uint32_t max_nodes,
			   uint8_t **out, size_t *size);

#endif
