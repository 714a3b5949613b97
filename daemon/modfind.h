// SPDX-License-Identifier: Apache-2.0
/*
 * modfind - the very file that a process has mapped, opened; or why that cannot be.
 *
 * Decides whether a file that can be opened is the one that was mapped: by device,
 * inode and inode generation, and by not having been written since. Never by
 * path. Called by modcache for live sources.
 */
#ifndef MD_MODFIND_H
#define MD_MODFIND_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/morph_abi.h"

struct md_modfind {
	int fd; /* -1: none */
	enum morph_module_status status;
	uint64_t dev, ino, generation;
	int64_t mtime_ns, ctime_ns;
};

/*
 * md_modfind_open - find @mmap's file. @mapped_ns: when it was mapped, unix time
 * (0: not known, it is mapped now).
 * Ownership: close(out->fd) unless it is -1.
 */
void md_modfind_open(const struct morph_mmap *mmap, int64_t mapped_ns, struct md_modfind *out);

/* True where @found's open file was not written while it was read. */
bool md_modfind_is_steady(const struct md_modfind *found);

/* True where @path still leads to that file, unchanged. */
bool md_modfind_is_unchanged(const char *path, uint64_t dev, uint64_t ino, int64_t mtime_ns,
			     int64_t ctime_ns);

/* MORPH_MODULE_KNOWN for a path that names a file; else what the memory is. */
enum morph_module_status md_modfind_classify(const char *path);

#endif
