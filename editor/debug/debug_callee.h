// SPDX-License-Identifier: Apache-2.0
/* debug_callee - finds what debug information says of the inlined functions. Called by debug. */
#ifndef ME_DEBUG_CALLEE_H
#define ME_DEBUG_CALLEE_H

#include "editor/debug/debug_unit.h"

/* me_callees_find - fill in file->inlined.callees. Return: 0, -ENOMEM. */
int me_callees_find(struct me_debug_sections *file);

#endif
