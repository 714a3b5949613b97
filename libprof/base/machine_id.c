// SPDX-License-Identifier: Apache-2.0
/* machine_id - see machine_id.h. */
#include "libprof/base/machine_id.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/sha256.h"

int mp_machine_id_read(const char *path, uint8_t out[MP_MACHINE_BYTES])
{
	static const char what[] = "morph-fleet";
	uint8_t text[sizeof(what) + 256], hash[MP_SHA256_BYTES];
	FILE *file = fopen(path ? path : "/etc/machine-id", "re");
	size_t nr;

	memset(out, 0, MP_MACHINE_BYTES);
	if (!file)
		return -errno;
	memcpy(text, what, sizeof(what));
	nr = fread(text + sizeof(what), 1, sizeof(text) - sizeof(what), file);
	fclose(file);
	mp_sha256(text, sizeof(what) + nr, hash);
	memcpy(out, hash, MP_MACHINE_BYTES);
	return 0;
}
