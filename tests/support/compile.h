// SPDX-License-Identifier: Apache-2.0
/* compile - compiles programs of tests/data with the compilers of this machine. */
#ifndef MORPH_TESTS_COMPILE_H
#define MORPH_TESTS_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

/* Return: true if @cc can be run. */
bool compile_has(const char *cc);
/*
 * Runs `@cc @flags @sources -o PATH`. @path (256 bytes) gets a new name in $TMPDIR or /tmp.
 * Return: 0, -1. The caller unlinks it.
 */
int compile_run(const char *cc, const char *flags, const char *sources, char *path);

#endif
