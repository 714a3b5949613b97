// SPDX-License-Identifier: Apache-2.0
/*
 * modfind - opens the file that a process has mapped, or gives the reason why that is
 * impossible.
 *
 * Decides whether a file that can be opened is the mapped one: by device, inode and inode
 * generation, and because it was not written since. Never by path alone. Called by modcache for
 * live sources.
 */
#ifndef MD_MODFIND_H
#define MD_MODFIND_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/morph_abi.h"

/* Stands for a path that is longer than PATH_MAX. */
#define MD_MODFIND_TOO_LONG "//toolong"

struct md_modfind {
	int fd; /* -1: none */
	enum morph_module_status status;
	uint64_t dev, ino, generation;
	int64_t mtime_ns, ctime_ns;
	bool written_later; /* REPLACED: the right file, but after the time of this mapping */
};

/*
 * md_modfind_open - find @mmap's file. @mapped_ns: unix time of the mapping; 0: not known, it
 * is mapped now. Ownership: close(out->fd) unless it is -1.
 */
void md_modfind_open(const struct morph_mmap *mmap, int64_t mapped_ns, struct md_modfind *out);

/* Return: true if @found's file was not written while it was read. */
bool md_modfind_is_steady(const struct md_modfind *found);

/* Return: true if @path still leads to that file, unchanged. */
bool md_modfind_is_unchanged(const char *path, uint64_t dev, uint64_t ino, int64_t mtime_ns,
			     int64_t ctime_ns);

/* Return: true if @fd is that file, unchanged. */
bool md_modfind_is_open(int fd, uint64_t dev, uint64_t ino, int64_t mtime_ns, int64_t ctime_ns);

/*
 * Return: MORPH_MODULE_KNOWN if the path names a file, MORPH_MODULE_UNREADABLE if the kernel could not give the
 * path of a file, as of one longer than PATH_MAX; else the kind of memory. @ino: of the mapped file, 0: none.
 */
enum morph_module_status md_modfind_classify(const char *path, uint64_t ino);

#endif
