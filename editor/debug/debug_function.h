// SPDX-License-Identifier: Apache-2.0
/*
 * debug_function - the functions of a unit that other functions were inlined into. They move to a unit of their
 * own, since entries are added below theirs. Called by debug_unit.
 */
#ifndef ME_DEBUG_FUNCTION_H
#define ME_DEBUG_FUNCTION_H

#include "editor/debug/debug_unit.h"

struct me_entry;
struct me_value;

/*
 * me_functions_plan - find these functions, and which of their inlined calls can be described. A function with
 * anything that is not understood stays. Return: 0, -ENOMEM, -EBADMSG, -EPERM.
 */
int me_functions_plan(struct me_unit *unit, const struct me_entry *own);
void me_functions_fini(struct me_unit *unit);
/*
 * me_location_is_lost - does the location @v name entries that the added unit has at other offsets? The variable then
 * has no location there.
 */
bool me_location_is_lost(const struct me_unit *unit, const struct me_value *v);
/*
 * me_value_registers - the registers on which the expression or the list of locations @v depends, as
 * me_expr_registers(); 0: it is neither.
 */
uint64_t me_value_registers(const struct me_unit *unit, const struct me_value *v,
			    uint64_t frame_base);
/* me_entry_is_call_site - is it about a call, or about an argument of one? What it says does not hold elsewhere. */
bool me_entry_is_call_site(const struct me_entry *e);

#endif
