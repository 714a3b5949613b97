// SPDX-License-Identifier: Apache-2.0
/*
 * counters - the file into which a user's processes count, DIR/UID, as the runtime of an instrumented file makes it
 * (editor/runtime/attach.c), but complete at once. Other users may make files in the directory, too, so a file that is
 * there counts only if it is this user's alone. Called by live.
 */
#ifndef MD_LIVE_COUNTERS_H
#define MD_LIVE_COUNTERS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/live/process.h"
#include "libprof/base/err.h"

struct md_counters_file {
	char path[PATH_MAX];
	uint64_t dev, ino;
};

/*
 * md_counters_file_make - the file for @process's effective user, made if there is none. @dir: where only root, this user
 * and a file's owner can rename or remove files. @size: bytes of the counters; @table_hash: of their table. All space is reserved
 * on the disk. Return: 0; -EPERM: what is there is not such a file; -errno; each with a message.
 */
int md_counters_file_make(const char *dir, const struct md_process *process, uint64_t size,
			  uint64_t table_hash, struct md_counters_file *out, struct mp_err *err);
/*
 * md_counters_are_in - does @mapping map the file of any user in @dir? A child may have its parent's, whose user it left.
 */
bool md_counters_are_in(const char *dir, const struct md_mapping *mapping);

#endif
