// SPDX-License-Identifier: Apache-2.0
/*
 * totals - runs a program to its end, and reads the total of each code marker at that moment.
 *
 * The program is traced, so nothing is added to it. Addresses are not randomised: some programs
 * hash addresses. Only the first process counts. Called by compilations and by a tool of the tests.
 */
#ifndef ME_TOTALS_H
#define ME_TOTALS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/elf.h"

struct me_total {
	char *name; /* without prefix */
	uint64_t value;
};

struct me_totals {
	struct me_total *list; /* ascending name, each once */
	size_t nr;
	int status; /* wait status of the program */
};

struct me_totals_run {
	const char *path; /* a file with the code of the ELF file */
	char *const *argv;
	const char *stdin_path; /* NULL: that of the caller */
	bool quiet;		/* the output goes nowhere */
	const sigset_t *mask;	/* of the program, and while waiting; NULL: the caller's */
};

/*
 * me_totals_take - variables of one name (a function that several source files contain) are added
 * up. Return: 0; -ECANCELED after me_run_cancel(); -errno. Ownership: me_totals_fini(@out), after
 * an error too.
 */
int me_totals_take(const struct me_totals_run *run, const struct mp_elf *elf, struct me_totals *out,
		   struct mp_err *err);
void me_totals_fini(struct me_totals *totals);

#endif
