// SPDX-License-Identifier: Apache-2.0
/*
 * rewrite - programs through the whole editor in memory, as morph-optimize would write them to a
 * file; for tests that change bytes very often.
 */
#ifndef MORPH_TESTS_REWRITE_H
#define MORPH_TESTS_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/image.h"
#include "libprof/cfg.h"
#include "libprof/elf.h"

struct rewrite_bytes {
	uint8_t *data; /* free() */
	size_t size;
};

/* What `@command -o FILE` makes. Return: false where it fails. */
bool rewrite_compile(const char *command, struct rewrite_bytes *out);
/* The bytes of a file that @image stands for; data is NULL without memory. */
struct rewrite_bytes rewrite_flatten(const struct me_image *image);
/* One byte for each function of @cfg: may it move? Return: NULL: nothing may. free() it. */
uint8_t *rewrite_movable(const struct mp_cfg *cfg);
/* As morph-optimize --all; in a hard order where @seed says which. Return: false: it refuses. */
bool rewrite_all(const struct mp_elf *elf, const uint64_t *seed, struct rewrite_bytes *out);

#endif
