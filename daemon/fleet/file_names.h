// SPDX-License-Identifier: Apache-2.0
/*
 * file_names - decides under which name the fleet's server knows a file: a salted hash, the path, or
 * none. All hosts of a fleet have one salt, which the server never gets; so the hashes are the same
 * everywhere, and the server cannot try out paths.
 */
#ifndef MD_FLEET_FILE_NAMES_H
#define MD_FLEET_FILE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

enum md_names {
	MD_NAMES_HASHED,
	MD_NAMES_PLAIN,
	MD_NAMES_NONE
};

#define MD_SALT_MIN  16 /* bytes */
#define MD_SALT_MAX  256
#define MD_NAME_SIZE 4200

struct md_file_names {
	enum md_names how;
	uint8_t salt[MD_SALT_MAX];
	size_t salt_size; /* 0: there is none, so hashed names are not sent */
};

/* Reads the salt: the bytes of the file at @path, 16 to 256 of them. */
int md_file_names_read_salt(struct md_file_names *names, const char *path, struct mp_err *err);
/*
 * The name of the file @path in @buf of MD_NAME_SIZE bytes. "#" begins a hash.
 * Return: @buf, or NULL: it has none.
 */
const char *md_file_name(const struct md_file_names *names, const char *path, char *buf);

#endif
