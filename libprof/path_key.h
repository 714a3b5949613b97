// SPDX-License-Identifier: Apache-2.0
/*
 * path_key - paths as the store keeps them: by addresses of the original, so that they outlive the
 * file that was numbered and add up with those of any other numbering.
 *
 * A path is its blocks' addresses b0 .. bk in the order control took them; bk was sampled. b0 = 0:
 * control came from outside of the function, to b1. As bytes: b0 as an unsigned number, then the
 * differences, signed, as varint writes them. Where nobody sampled bk, but the program was asked for
 * its paths and said this one before bk ran, the difference from bk to 0 follows, and how many of the last
 * steps are of all that is taken: whatever way control goes on from there, it says so. Of the steps
 * before these, those who go on by ways on which nothing is said are missing.
 */
#ifndef MP_PATH_KEY_H
#define MP_PATH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/path_decode.h"
#include "libprof/path_table.h"

/* More blocks than this no path has: what lies further back is left away. */
#define MP_PATH_MAX_BLOCKS 256

/* Of a path that was sampled, instead of a number of steps. */
#define MP_PATH_SAMPLED UINT32_MAX

/* A key and how many samples ended such a path, or how often it was said. */
struct mp_path_count {
	const uint8_t *key;
	uint32_t key_size;
	uint64_t count;
};

/* Ten bytes are the longest number. */
#define MP_PATH_KEY_MAX (10 * (MP_PATH_MAX_BLOCKS + 2))

/*
 * mp_path_key_encode - the key of @path, as mp_path_decode() left it, into MP_PATH_KEY_MAX bytes.
 * Return: its size.
 */
uint32_t mp_path_key_encode(const struct mp_path_table *table, const struct mp_path *path,
			    bool asked, uint8_t *key);
/*
 * mp_path_key_decode - the addresses of a key, MP_PATH_MAX_BLOCKS at most. *@nr_told: how many of the
 * last steps are told whole; MP_PATH_SAMPLED. May be NULL.
 * Return: how many; 0: no key has these bytes.
 */
uint32_t mp_path_key_decode(const uint8_t *key, size_t size, uint64_t *vaddrs, uint32_t *nr_told);

#endif
