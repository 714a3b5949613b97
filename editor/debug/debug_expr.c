// SPDX-License-Identifier: Apache-2.0
/* debug_expr - reads every operation, since operands have no common form. Unknown operations are not portable. */
#include "editor/debug/debug_expr.h"

#include "editor/debug/read/debug_form.h"
#include "editor/rewrite/leaf.h"

/* Longer expressions for a value at the function's entry are not portable. */
#define ENTRY_VALUE_MAX 16

/* Is the type at @offset in the unit one of the base types at the unit's start? 0: the generic type. */
static bool is_shared(const struct me_unit *u, uint64_t offset)
{
	return !offset || (offset >= u->first - u->off && offset < u->prefix_end - u->off);
}

/*
 * Operands of each operation: digit: so many bytes; u: LEB128; b: a block; s: a block with its size in one byte; t: the
 * offset of a base type; e: an expression for the function's entry. NULL: not portable.
 */
/* clang-format off */
static const char *const operands[256] = {
	[DW_OP_addr] = "8", [DW_OP_deref] = "", [DW_OP_const1u ... DW_OP_const1s] = "1",
	[DW_OP_const2u ... DW_OP_const2s] = "2", [DW_OP_const4u ... DW_OP_const4s] = "4",
	[DW_OP_const8u ... DW_OP_const8s] = "8", [DW_OP_constu ... DW_OP_consts] = "u",
	[DW_OP_dup ... DW_OP_over] = "", [DW_OP_pick] = "1", [DW_OP_swap ... DW_OP_plus] = "",
	[DW_OP_plus_uconst] = "u", [DW_OP_shl ... DW_OP_xor] = "", [DW_OP_bra] = "2",
	[DW_OP_eq ... DW_OP_ne] = "", [DW_OP_skip] = "2", [DW_OP_lit0 ... DW_OP_reg31] = "",
	[DW_OP_breg0 ... DW_OP_breg31] = "u", [DW_OP_regx ... DW_OP_fbreg] = "u",
	[DW_OP_bregx] = "uu", [DW_OP_piece] = "u", [DW_OP_deref_size ... DW_OP_xderef_size] = "1",
	[DW_OP_nop ... DW_OP_push_object_address] = "", [DW_OP_call_ref] = "4",
	[DW_OP_form_tls_address ... DW_OP_call_frame_cfa] = "", [DW_OP_bit_piece] = "uu",
	[DW_OP_implicit_value] = "b", [DW_OP_stack_value] = "", [DW_OP_implicit_pointer] = "4u",
	[DW_OP_addrx ... DW_OP_constx] = "u", [DW_OP_entry_value] = "e", [DW_OP_const_type] = "ts",
	[DW_OP_regval_type] = "ut", [DW_OP_deref_type] = "1t", [DW_OP_convert] = "t",
	[DW_OP_reinterpret] = "t", [DW_OP_GNU_push_tls_address] = "", [DW_OP_GNU_uninit] = "",
	[DW_OP_GNU_implicit_pointer] = "4u", [DW_OP_GNU_entry_value] = "e",
	[DW_OP_GNU_const_type] = "ts", [DW_OP_GNU_regval_type] = "ut",
	[DW_OP_GNU_deref_type] = "1t", [DW_OP_GNU_convert] = "t", [DW_OP_GNU_reinterpret] = "t",
	[DW_OP_GNU_addr_index ... DW_OP_GNU_const_index] = "u", [DW_OP_GNU_variable_value] = "4",
};
/* clang-format on */

/* Return: false: the operation is not portable. */
static bool skip_operands(const struct me_unit *u, uint8_t op, struct mp_cursor *c)
{
	const uint8_t *block;
	uint64_t size;

	for (const char *o = operands[op]; o && *o; o++) {
		switch (*o) {
		case 'u': me_form_skip(c, DW_FORM_udata, 5); break;
		case 'b': mp_cursor_skip(c, mp_cursor_uleb(c)); break;
		case 's': mp_cursor_skip(c, mp_cursor_u8(c)); break;
		case 't':
			if (!is_shared(u, mp_cursor_uleb(c)))
				return false;
			break;
		case 'e':
			size = mp_cursor_uleb(c);
			block = mp_cursor_skip(c, size);
			/* A register in nearly all cases. The limit gives nesting an end. */
			if (!block || size > ENTRY_VALUE_MAX ||
			    !me_expr_is_portable(u, block, size))
				return false;
			break;
		default: mp_cursor_skip(c, (uint64_t)(*o - '0'));
		}
	}
	return operands[op];
}

bool me_expr_is_portable(const struct me_unit *unit, const uint8_t *expr, uint64_t size)
{
	struct mp_cursor c = mp_cursor_over(expr, expr + size);

	while (c.p < c.end && !c.bad)
		if (!skip_operands(unit, mp_cursor_u8(&c), &c))
			return false;
	return !c.bad;
}

/* The bit of register @nr. */
static uint64_t bit_of(uint64_t nr)
{
	return nr == 16 || nr > 32 ? ME_CHANGED_OTHERS : UINT64_C(1) << nr;
}

/* The registers that operation @op itself names. @c: its operands. */
static uint64_t registers_of(uint8_t op, struct mp_cursor c, uint64_t frame_base)
{
	if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
		return bit_of(op - DW_OP_reg0);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return bit_of(op - DW_OP_breg0);
	switch (op) {
	case DW_OP_regx:
	case DW_OP_bregx:
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type: return bit_of(mp_cursor_uleb(&c));
	case DW_OP_fbreg: return frame_base;
	case DW_OP_call_ref:
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
	/* A variable with one location throughout a call is in the stack, or in such a register. */
	case DW_OP_GNU_variable_value: return ME_CHANGED_KEPT;
	default: return 0;
	}
}

uint64_t me_expr_registers(const struct me_unit *unit, const uint8_t *expr, uint64_t size,
			   uint64_t frame_base)
{
	struct mp_cursor c = mp_cursor_over(expr, expr + size);
	uint64_t registers = 0;

	while (c.p < c.end && !c.bad) {
		uint8_t op = mp_cursor_u8(&c);

		registers |= registers_of(op, c, frame_base);
		if (!skip_operands(unit, op, &c))
			return UINT64_MAX;
	}
	return c.bad ? UINT64_MAX : registers;
}
