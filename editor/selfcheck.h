// SPDX-License-Identifier: Apache-2.0
/*
 * selfcheck - evidence that somebody would notice if a file's bytes changed: an archive behind the
 * program, which it finds by its offset; a checksum or signature that it, the kernel or a library
 * compares with it.
 *
 * What leaves no trace in the file is not found: a program that reads /proc/self/exe and compares
 * it with a number of its own, a licence or a database elsewhere that knows its checksum.
 */
#ifndef ME_SELFCHECK_H
#define ME_SELFCHECK_H

#include "editor/attributes.h"
#include "libprof/elf.h"
#include "libprof/err.h"

/*
 * me_selfcheck_file - evidence in @elf (read with MP_ELF_SYMBOLS): bytes that belong to no
 * segment, section or header; signatures at the end; marks of known packers; sections and symbols
 * of FIPS integrity tests. Holds for a copy as well. Return: 0, -EPERM, -ENOMEM; no path in @err.
 */
int me_selfcheck_file(const struct mp_elf *elf, struct mp_err *err);
/* Evidence beside it: .NAME.hmac and its like. Return: 0, -EPERM; no path of the file in @err. */
int me_selfcheck_companions(const char *path, struct mp_err *err);
/* Evidence on the file @fd itself, which a copy elsewhere does not have: signatures that the
 * kernel checks. Return: 0, -EPERM; no path in @err. */
int me_selfcheck_signed(int fd, const struct me_attributes *attributes, struct mp_err *err);

#endif
