// SPDX-License-Identifier: Apache-2.0
// The same where the linker is another one: stubs of mold set a register before they jump.
// linkers: lld mold
// modes: nopie pie
// levels: -O2
// run: ./prog call
// run: ./prog raw
// run: ./prog length
// run: ./prog copied
// run: ./prog moved
// run: ./prog received
#include "../code/handed.c"
