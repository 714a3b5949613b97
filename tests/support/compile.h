// SPDX-License-Identifier: Apache-2.0
/* compile - real programs for tests, made from tests/data by the compilers of this machine. */
#ifndef MORPH_TESTS_COMPILE_H
#define MORPH_TESTS_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

/* True where @cc can be run. */
bool compile_has(const char *cc);
/* `@cc @flags @sources -o PATH`; PATH becomes a new name in $TMPDIR or /tmp (256 bytes).
 * Return: 0, -1. The caller unlinks PATH. */
int compile_run(const char *cc, const char *flags, const char *sources, char *path);

#endif
