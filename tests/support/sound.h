// SPDX-License-Identifier: Apache-2.0
/* sound - checks the invariants of a control flow graph, which must hold for any input file. */
#ifndef MORPH_TESTS_SOUND_H
#define MORPH_TESTS_SOUND_H

#include "libprof/cfg/cfg.h"

/* Aborts if an invariant is violated. */
void sound_cfg(const struct mp_cfg *cfg);

#endif
