// SPDX-License-Identifier: Apache-2.0
/*
 * audit_compare - does one run behave like another one? Exit status, output, files.
 *
 * Called by audit and compilations.
 */
#ifndef ME_AUDIT_COMPARE_H
#define ME_AUDIT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "editor/audit/run/audit_run.h"

/*
 * me_run_differs - describe in @what how @run differs from @ref. @with_output: compare standard
 * output, too. Return: false if it does not differ.
 */
bool me_run_differs(const struct me_run *ref, const struct me_run *run, bool with_output,
		    char *what, size_t size);
/* me_run_failed - describe in @what how @run failed by itself: a signal, a timeout, a server that
 * ended. Return: false if it did not. */
bool me_run_failed(const struct me_run *run, char *what, size_t size);

#endif
