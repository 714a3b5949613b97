// SPDX-License-Identifier: Apache-2.0
/*
 * selfcheck - finds evidence that a change of a file's bytes would be noticed. Such evidence is an
 * archive that is appended to the program and found by its offset, or a checksum or signature that
 * the program, the kernel or a library compares.
 *
 * Checks without a trace in the file are not found: a program that compares /proc/self/exe with a
 * number of its own; a licence or a database elsewhere with the file's checksum.
 */
#ifndef ME_SELFCHECK_H
#define ME_SELFCHECK_H

#include "editor/base/attributes.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

/*
 * me_selfcheck_file - evidence in @elf (read with MP_ELF_SYMBOLS): bytes that belong to no segment,
 * section or header; signatures at the end; marks of known packers; sections and symbols of FIPS
 * integrity tests. The result is valid for a copy of the file, too. Return: 0, -EPERM, -ENOMEM; no
 * path in @err.
 */
int me_selfcheck_file(const struct mp_elf *elf, struct mp_err *err);
/*
 * Evidence in files beside the file at @path, such as .NAME.hmac. Return: 0, -EPERM; no path of the
 * file in @err.
 */
int me_selfcheck_companions(const char *path, struct mp_err *err);
/* Evidence of the inode @fd, which a copy elsewhere does not have: signatures that the kernel
 * checks. Return: 0, -EPERM; no path in @err. */
int me_selfcheck_signed(int fd, const struct me_attributes *attributes, struct mp_err *err);

#endif
