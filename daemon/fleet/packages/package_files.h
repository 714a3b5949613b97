// SPDX-License-Identifier: Apache-2.0
/*
 * package_files - finds ELF files in a Debian package by their identity. The package is read from front to end in a
 * confined process. Its names of files are not used for anything, and nothing of it is unpacked but the bytes of
 * the file that is asked for. Called by package_folder and packages.
 */
#ifndef MD_FLEET_PACKAGE_FILES_H
#define MD_FLEET_PACKAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/elf/elf.h"

/* A larger file in a package is not looked at. */
#define MD_PACKAGE_FILE_MAX (UINT64_C(512) << 20)

/* Asked every few seconds while a package is read; true ends it. */
struct md_package_look {
	bool (*look)(void *arg);
	void *arg;
};

/*
 * md_original_has - whether @elf is the module's file, and no output of Morph: an output may have its original's
 * identity, and its note says what it is.
 */
bool md_original_has(const struct mp_elf *elf, const struct mp_id *id);

/*
 * md_package_files_list - the identities of all ELF files of the package at @path, which are no outputs of Morph.
 * Return: 0; -EBADMSG: no package, or damaged; -ECANCELED; -errno. Ownership: free(*@ids).
 */
int md_package_files_list(const char *path, const char *dir, const struct md_package_look *look,
			  struct mp_id **ids, size_t *nr, struct mp_err *err);
/*
 * md_package_files_take - writes the module's file to @out, which is created. @name: what messages call the package.
 * Return: 0; -ENODATA: the package does not have it; as md_package_files_list(). If it fails, @out is not there.
 */
int md_package_files_take(const char *path, const char *name, const struct mp_id *id,
			  const char *out, const struct md_package_look *look, struct mp_err *err);

#endif
