// SPDX-License-Identifier: Apache-2.0
/*
 * verify - decides whether an output behaves as its original, under stated assumptions.
 *
 * Reads the original and the output as files and compares them. The map note only says where to
 * look; nothing in it is trusted. Shares no code with cfg, layout, emit or unwind: verify has
 * its own function bounds, its own scan for possible targets, its own reader of unwind rows
 * (the tests compare it with libdw). Documentation/verify.md lists the assumptions.
 */
#ifndef ME_VERIFY_H
#define ME_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "editor/verify/base/verify_report.h"
#include "libprof/base/err.h"

/* Return: a name, as in --json and --kind, without a comma or a space; or NULL: there is no such kind. */
const char *me_kind_name(enum me_kind kind);
/* Return: one bit, 1 << kind, for each of the names, between which stand commas; 0: one is no kind's name. */
unsigned int me_kinds_find(const char *names);

/*
 * me_verify - compare @original and @output (both opened with MP_ELF_ALL).
 * @report: filled also when refused; may be NULL.
 * Return: 0 proved; -EBADMSG refused, with the first difference and its address in @err;
 * -ENOMEM.
 */
int me_verify(const struct mp_elf *original, const struct mp_elf *output,
	      struct me_verify_report *report, struct mp_err *err);
/*
 * me_verify(), and who owns each byte of the output, ascending.
 * Ownership: free(*@owned), also if the output is refused.
 */
int me_verify_owners(const struct mp_elf *original, const struct mp_elf *output,
		     struct me_owned **owned, size_t *nr, struct mp_err *err);
/*
 * me_verify() on up to @nr_threads threads. Verdict, message and report do not depend on their
 * number. Also checks the debug file if @debug is not NULL.
 */
int me_verify_parallel(const struct mp_elf *original, const struct mp_elf *output,
		       const struct me_verify_debug *debug, unsigned int nr_threads,
		       struct me_verify_report *report, struct mp_err *err);

#endif
