// SPDX-License-Identifier: Apache-2.0
/* machine_id - see machine_id.h. */
#include "libprof/base/machine_id.h"

#include <stdio.h>
#include <string.h>

#include "libprof/base/infile.h"
#include "libprof/base/sha256.h"

int mp_machine_id_read(const char *path, uint8_t out[MP_MACHINE_BYTES])
{
	static const char what[] = "morph-fleet";
	uint8_t text[sizeof(what) + 256], hash[MP_SHA256_BYTES];
	struct mp_err ignored;
	FILE *file;
	int rc = mp_infile_stream(path ? path : "/etc/machine-id", &file, &ignored);
	size_t nr;

	memset(out, 0, MP_MACHINE_BYTES);
	if (rc)
		return rc;
	memcpy(text, what, sizeof(what));
	nr = fread(text + sizeof(what), 1, sizeof(text) - sizeof(what), file);
	fclose(file);
	mp_sha256(text, sizeof(what) + nr, hash);
	memcpy(out, hash, MP_MACHINE_BYTES);
	return 0;
}
