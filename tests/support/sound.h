// SPDX-License-Identifier: Apache-2.0
/* sound - what holds for every control flow graph, whatever the file was that it was made of. */
#ifndef MORPH_TESTS_SOUND_H
#define MORPH_TESTS_SOUND_H

#include "libprof/cfg.h"

/* Ends the process where it does not hold. */
void sound_cfg(const struct mp_cfg *cfg);

#endif
