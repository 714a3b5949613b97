// SPDX-License-Identifier: Apache-2.0
/*
 * file_state - which file lies at a path now: its identity, the hash of its bytes, and whether Morph
 * made it. Called by the worker, before each step, to notice an upgrade.
 */
#ifndef MD_FILE_STATE_H
#define MD_FILE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"

struct md_file_state {
	struct mp_id id;
	char hash[33];	       /* XXH3-128 of its bytes */
	bool is_output;	       /* it has a map note of Morph */
	bool audits;	       /* if so: it times two layouts of its functions */
	struct mp_id original; /* if so: the file of which it was made, as the note says */
	uint64_t size;
	uint32_t uid;		 /* owner */
	struct timespec changed; /* time of change, before its bytes were read; 0: not known */
};

/* Links are not followed. Return: 0; -ENOENT; -ENOEXEC, -EBADMSG: no program or library; -errno. */
int md_file_look(const char *path, struct md_file_state *out, struct mp_err *err);
/* Only the hash. Return: 0, -errno without a message. */
int md_file_hash(const char *path, char hash[33]);
/*
 * Is it the same file, and is it as it was? What changes a file changes its times, and nobody can set back the time of
 * change.
 */
bool md_file_is_as(const struct stat *now, const struct stat *was);

#endif
