// SPDX-License-Identifier: Apache-2.0
/* file_names - salted hashes of paths; see file_names.h. */
#include "daemon/fleet/file_names.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/infile.h"
#include "libprof/base/text.h"

#define HASH_BYTES 16 /* of SHA-256's 32 */

int md_file_names_read_salt(struct md_file_names *names, const char *path, struct mp_err *err)
{
	uint8_t extra;
	FILE *file;
	int r = mp_infile_stream(path, &file, err);

	if (r)
		return r;
	names->salt_size = fread(names->salt, 1, sizeof(names->salt), file);
	if (ferror(file)) {
		int code = errno;

		fclose(file);
		return mp_err_set(err, code, "%s: %s", path, strerror(code));
	}
	if (names->salt_size < MD_SALT_MIN || fread(&extra, 1, 1, file)) {
		fclose(file);
		return mp_err_set(err, EINVAL, "%s: a salt has %d to %d bytes", path, MD_SALT_MIN,
				  MD_SALT_MAX);
	}
	fclose(file);
	return 0;
}

const char *md_file_name(const struct md_file_names *names, const char *path, char *buf)
{
	uint8_t hash[EVP_MAX_MD_SIZE];
	unsigned int size = 0;
	char *p = buf;

	/* PostgreSQL takes valid UTF-8 only; escaped, any path is that. */
	if (names->how == MD_NAMES_PLAIN)
		return mp_text_escape(path, buf, MD_NAME_SIZE);
	if (names->how == MD_NAMES_NONE || !names->salt_size)
		return NULL;
	if (!HMAC(EVP_sha256(), names->salt, (int)names->salt_size, (const uint8_t *)path,
		  strlen(path), hash, &size) ||
	    size < HASH_BYTES)
		return NULL;
	*p++ = '#';
	for (int i = 0; i < HASH_BYTES; i++)
		p += snprintf(p, 3, "%02x", hash[i]);
	return buf;
}
