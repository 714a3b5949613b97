// SPDX-License-Identifier: Apache-2.0
/*
 * modread - reads an ELF file and describes it in the records that a recording has: MODULE,
 * MODULE_MAP, MODULE_ENDS, MODULE_PATHS. Called by modcache.
 *
 * One half reads the file, in a sandboxed process if there is one. The other half checks that
 * process's reply, because the file may have compromised it.
 */
#ifndef MD_MODREAD_H
#define MD_MODREAD_H

#include <stdint.h>

#include "daemon/module/modcache.h"
#include "daemon/record/record.h"
#include "libprof/note/map.h"

/* Limits per file. A reply for 2^24 pieces has about 150 MiB. */
#define MD_MODREAD_SEGMENTS_MAX 64
#define MD_MODREAD_PIECES_MAX	MP_MAP_PIECES_MAX
#define MD_MODREAD_REPLY_MAX	(256u << 20)

/*
 * md_modread_file - add the records of @fd, a regular file of @size bytes, to @reply. A file
 * that is damaged or not a supported ELF file gets the status MORPH_MODULE_UNREADABLE. Uses
 * only pread() on the file. A function of type md_sandbox_work. Return: 0, -ENOMEM.
 */
int md_modread_file(int fd, uint64_t size, int beside, struct md_buf *reply);
/* The same with the records of the file's unwind rows, if it has any: MODULE_UNWIND. */
int md_modread_file_with_rows(int fd, uint64_t size, int beside, struct md_buf *reply);

/*
 * md_modread_take - check @reply, of which unwind rows are used up, for a file of @size bytes, and declare it to @into, which is
 * new. Return: 0: file 1 of @into has the module, or the reason why it has none; -ENOMEM;
 * -EBADMSG: md_modread_file() makes no such reply.
 */
int md_modread_take(struct md_buf *reply, uint64_t size, struct md_modcache *into);

#endif
