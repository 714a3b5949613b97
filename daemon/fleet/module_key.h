// SPDX-License-Identifier: Apache-2.0
/*
 * module_key - the fleet's key of a module: its text hash, the highest byte first, then the build-id; and
 * what a user writes for a module. Called by the commands.
 */
#ifndef MD_FLEET_MODULE_KEY_H
#define MD_FLEET_MODULE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/id.h"

#define MD_MODULE_KEY_MAX (8 + MP_BUILD_ID_MAX)

/* Writes the key. Return: its bytes. */
size_t md_module_key(const struct mp_id *id, uint8_t key[MD_MODULE_KEY_MAX]);
/* Return: 0, -EINVAL: no key has @size bytes. */
int md_module_of_key(const uint8_t *key, size_t size, struct mp_id *id);
/* The first digits of a build-id, in hex. Return: bytes, 0: @text is none. An odd digit cannot be looked for. */
size_t md_build_id_parse(const char *text, uint8_t out[MP_BUILD_ID_MAX]);

#endif
