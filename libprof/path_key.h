// SPDX-License-Identifier: Apache-2.0
/*
 * path_key - paths as the store keeps them: by addresses of the original, so that they outlive the
 * file that was numbered and add up with those of any other numbering.
 *
 * A path is its blocks' addresses b0 .. bk in the order control took them; bk was sampled. b0 = 0:
 * control came from outside of the function, to b1. As bytes: b0 as an unsigned number, then the
 * differences, signed, as varint writes them.
 */
#ifndef MP_PATH_KEY_H
#define MP_PATH_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/path_decode.h"
#include "libprof/path_table.h"

/* More blocks than this no path has: what lies further back is left away. */
#define MP_PATH_MAX_BLOCKS 256

/* A key and how many samples ended such a path. */
struct mp_path_count {
	const uint8_t *key;
	uint32_t key_size;
	uint64_t count;
};

/* Ten bytes are the longest number. */
#define MP_PATH_KEY_MAX (10 * MP_PATH_MAX_BLOCKS)

/*
 * mp_path_key_encode - the key of @path, as mp_path_decode() left it, into MP_PATH_KEY_MAX bytes.
 * Return: its size.
 */
uint32_t mp_path_key_encode(const struct mp_path_table *table, const struct mp_path *path,
			    uint8_t *key);
/*
 * mp_path_key_decode - the addresses of a key, MP_PATH_MAX_BLOCKS at most.
 * Return: how many; 0: no key has these bytes.
 */
uint32_t mp_path_key_decode(const uint8_t *key, size_t size, uint64_t *vaddrs);

#endif
