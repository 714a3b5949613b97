// SPDX-License-Identifier: Apache-2.0
// Sums over code, by functions that first ask for more stack.
// flags: -fsplit-stack
// only: gcc
// modes: static pie
// run: ./prog
// run: ./prog all
#include "until.c"
