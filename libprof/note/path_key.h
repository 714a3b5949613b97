// SPDX-License-Identifier: Apache-2.0
/*
 * path_key - the form of paths in the store: addresses of the original. Keys outlive the
 * numbered file, and those of different numberings add up.
 *
 * A path is the addresses b0 .. bk of its blocks in execution order; bk was sampled. b0 =
 * 0: control came from outside of the function, to b1. As bytes: b0 as an unsigned number,
 * then the signed differences, as varint writes them.
 *
 * A polled program reports its paths itself, before bk runs and without a sample. The key
 * of such a path ends with the difference from bk to 0 and a number of steps. The last
 * steps, as many as this number, are complete: the program reports them whichever way
 * control goes on. Of earlier steps, those followed by an unreported way are missing.
 */
#ifndef MP_PATH_KEY_H
#define MP_PATH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/note/path_decode.h"
#include "libprof/note/path_table.h"

/* Longest path; earlier blocks are left out. */
#define MP_PATH_MAX_BLOCKS 256

/* Stands for the number of steps if the path was sampled. */
#define MP_PATH_SAMPLED UINT32_MAX

/* A key, and how many samples ended such a path, or how often it was reported. */
struct mp_path_count {
	const uint8_t *key;
	uint32_t key_size;
	uint64_t count;
};

/* A number has at most ten bytes. */
#define MP_PATH_KEY_MAX (10 * (MP_PATH_MAX_BLOCKS + 2))

/*
 * mp_path_key_encode - writes the key of @path, a result of mp_path_decode(), into
 * MP_PATH_KEY_MAX bytes.
 * @reported: a polled program reported the path.
 * Return: its size.
 */
uint32_t mp_path_key_encode(const struct mp_path_table *table, const struct mp_path *path,
			    bool reported, uint8_t *key);
/*
 * mp_path_key_decode - reads the addresses of a key, at most MP_PATH_MAX_BLOCKS. *@nr_complete:
 * how many of the last steps are complete, or MP_PATH_SAMPLED. @nr_complete may be NULL.
 * Return: number of addresses; 0: these bytes are no key.
 */
uint32_t mp_path_key_decode(const uint8_t *key, size_t size, uint64_t *vaddrs,
			    uint32_t *nr_complete);

#endif
