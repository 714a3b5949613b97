// SPDX-License-Identifier: Apache-2.0
/*
 * audited_file - finds the file that an audited program runs: an executable file, mapped by a
 * process that has the audit's file mapped, with a table of audited functions of the right hash.
 *
 * Decides nothing about windows. The file may be anybody's, so it is read in a sandbox; another
 * user's process can lie only about its own audit. Called by audit_reader and by morphd's main.
 */
#ifndef MD_AUDITED_FILE_H
#define MD_AUDITED_FILE_H

#include <limits.h>
#include <stdint.h>

#include "daemon/module/sandbox.h"
#include "libprof/elf/id.h"
#include "libprof/note/audit_file.h"

struct md_audited_file {
	struct mp_id id, original; /* @original: as the file's map note says */
	char path[PATH_MAX];
	uint32_t nr_functions;
	uint64_t vaddrs[MP_AUDIT_MAX_FUNCTIONS]; /* of each function, in the original */
};

/* Reads one file, in a sandboxed process. A function of type md_sandbox_work. */
int md_audited_file_work(int fd, uint64_t size, struct md_buf *reply);
#define MD_AUDITED_FILE_REPLY_MAX 4096

/*
 * md_audited_file_find - @dev, @ino, @path: of the audit's file. @sandbox: NULL: this process
 * reads. Return: 0; -ENOENT: no such process now.
 */
int md_audited_file_find(uint64_t dev, uint64_t ino, const char *path, uint64_t table_hash,
			 struct md_sandbox *sandbox, struct md_audited_file *out);

#endif
