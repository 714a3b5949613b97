// SPDX-License-Identifier: Apache-2.0
/*
 * module_key - the fleet's key of a module: its text hash, the highest byte first, then the build-id; and
 * what a user writes for a module. Called by the commands.
 */
#ifndef MD_FLEET_MODULE_KEY_H
#define MD_FLEET_MODULE_KEY_H

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"

#define MD_MODULE_KEY_MAX (8 + MP_BUILD_ID_MAX)

/* Bytes of @text in hex, also as PostgreSQL writes them. Return: how many, 0: it is not hex, or more than @max. */
size_t md_hex_read(const char *text, uint8_t *out, size_t max);
/* @out: 2 * @size + 1 bytes. */
void md_hex_write(const uint8_t *bytes, size_t size, char *out);

/* Writes the key. Return: its bytes. */
size_t md_module_key(const struct mp_id *id, uint8_t key[MD_MODULE_KEY_MAX]);
/* Return: 0, -EINVAL: no key has @size bytes. */
int md_module_of_key(const uint8_t *key, size_t size, struct mp_id *id);
/* The same for a key in hex. */
int md_module_of_text(const char *text, struct mp_id *id);
/* The first digits of a build-id, in hex. Return: bytes, 0: @text is none. An odd digit cannot be looked for. */
size_t md_build_id_parse(const char *text, uint8_t out[MP_BUILD_ID_MAX]);
/*
 * The keys of the modules that a user names by a file or the first digits of a build-id, as PostgreSQL writes a list of
 * bytes. Ownership: free(*@list). Return: 0; else the exit status, after a message.
 */
int md_modules_named(PGconn *conn, const char *name, char **list);

#endif
