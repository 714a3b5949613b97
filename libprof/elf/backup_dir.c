// SPDX-License-Identifier: Apache-2.0
/* backup_dir - names in the directory of backups; see backup_dir.h. */
#include "libprof/elf/backup_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *mp_backup_default_dir(struct mp_err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	/*
	 * Not below /var/lib/morph: that belongs to morphd's user, who must not choose the
	 * file that is restored.
	 */
	if (geteuid() == 0)
		n = asprintf(&path, "%s", MP_BACKUP_DIR_ROOT);
	else if (state && state[0] == '/')
		n = asprintf(&path, "%s/morph/backup", state);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/morph/backup", home);
	else {
		mp_err_set(err, ENOENT, "HOME is not set: give --backup-dir");
		return NULL;
	}
	if (n >= 0)
		return path;
	mp_err_set(err, ENOMEM, "out of memory");
	return NULL;
}

const char *mp_backup_folder(const struct mp_id *id, char *buf)
{
	if (id->build_id_len)
		mp_id_format_build_id(id, buf);
	else
		snprintf(buf, MP_BACKUP_FOLDER_MAX, "text-%016" PRIx64, id->text_hash);
	return buf;
}
