/* SPDX-License-Identifier: Apache-2.0 */
/* untimed - makes an audited function run without stubs after its verdict. Called by audit.c. */
#ifndef ME_RUNTIME_UNTIMED_H
#define ME_RUNTIME_UNTIMED_H

#include <stdint.h>

#include "editor/base/runtime.h"

/*
 * me_untimed_enter - from now on, entries of the function go straight to the untimed code of
 * @version. @ret: return address of the call in the stub at the entry. If the process may not
 * change its code, nothing happens, and the stubs go on.
 */
void me_untimed_enter(struct me_audit_state *state, uint8_t *ret, uint8_t version);

#endif
