// SPDX-License-Identifier: Apache-2.0
/*
 * modread - what an ELF file is, as a recording would say it: MODULE, MODULE_MAP, MODULE_ENDS,
 * MODULE_PATHS.
 *
 * The one half reads the file, in a process that can do no harm (sandbox) where there is one. The
 * other half believes nothing of what that process said: it may have been taken over by the file.
 * Called by modcache.
 */
#ifndef MD_MODREAD_H
#define MD_MODREAD_H

#include <stdint.h>

#include "daemon/modcache.h"
#include "daemon/record.h"
#include "libprof/map.h"

/* Limits for what is kept of one file. A reply for 2^24 pieces has some 150 MiB. */
#define MD_MODREAD_SEGMENTS_MAX 64
#define MD_MODREAD_PIECES_MAX	MP_MAP_PIECES_MAX
#define MD_MODREAD_REPLY_MAX	(256u << 20)

/*
 * md_modread_file - adds the records of @fd, a regular file of @size bytes, to @reply. One that
 * is no ELF file for us, or damaged, has the status MORPH_MODULE_UNREADABLE. Does nothing to the
 * file but pread(). Its shape is that of md_sandbox_work.
 * Return: 0, -ENOMEM.
 */
int md_modread_file(int fd, uint64_t size, struct md_buf *reply);

/*
 * md_modread_take - check @reply, of a file of @size bytes, and declare it to @into, which is new.
 * Return: 0, and file 1 of @into is what the file is, or says why it is not known; -ENOMEM;
 * -EBADMSG: no such reply comes from md_modread_file().
 */
int md_modread_take(struct md_buf *reply, uint64_t size, struct md_modcache *into);

#endif
