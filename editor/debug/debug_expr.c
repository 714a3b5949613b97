// SPDX-License-Identifier: Apache-2.0
/* debug_expr - reads every operation, since operands have no common form. Unknown operations are not portable. */
#include "editor/debug/debug_expr.h"

#include "editor/debug/read/debug_form.h"
#include "editor/evidence/leaf/leaf.h"

/* Longer expressions for a value at the function's entry are not portable. */
#define ENTRY_VALUE_MAX 16

/* Is the type at @offset in the unit one of the base types at the unit's start? 0: the generic type. */
static bool is_shared(const struct me_unit *u, uint64_t offset)
{
	return !offset || (offset >= u->first - u->off && offset < u->prefix_end - u->off);
}

/* Bytes of an operation's operand, if it is of fixed size; -1: it is not. */
static int operand_size(uint8_t op)
{
	switch (op) {
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s: return 8;
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_call_ref:
	case DW_OP_GNU_variable_value: return 4;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_bra:
	case DW_OP_skip: return 2;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
	case DW_OP_xderef_size: return 1;
	case DW_OP_deref:
	case DW_OP_push_object_address:
	case DW_OP_form_tls_address:
	case DW_OP_call_frame_cfa:
	case DW_OP_nop:
	case DW_OP_stack_value:
	case DW_OP_GNU_push_tls_address:
	case DW_OP_GNU_uninit: return 0;
	default: return -1;
	}
}

/* Operations without operands: arithmetic, literals, registers. */
static bool is_simple(uint8_t op)
{
	return (op >= DW_OP_dup && op <= DW_OP_plus && op != DW_OP_pick) ||
	       (op >= DW_OP_shl && op <= DW_OP_xor) || (op >= DW_OP_eq && op <= DW_OP_ne) ||
	       (op >= DW_OP_lit0 && op <= DW_OP_reg31);
}

static bool has_leb_operand(uint8_t op)
{
	switch (op) {
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
	case DW_OP_regx:
	case DW_OP_fbreg:
	case DW_OP_piece:
	case DW_OP_addrx:
	case DW_OP_constx:
	case DW_OP_GNU_addr_index:
	case DW_OP_GNU_const_index: return true;
	default: return op >= DW_OP_breg0 && op <= DW_OP_breg31;
	}
}

static bool read_leb(struct mp_cursor *c)
{
	me_form_skip(c, DW_FORM_udata, 5);
	return true;
}

static bool read_other(const struct me_unit *u, uint8_t op, struct mp_cursor *c)
{
	const uint8_t *block;
	uint64_t size;

	switch (op) {
	case DW_OP_bregx:
	case DW_OP_bit_piece: return read_leb(c) && read_leb(c);
	case DW_OP_implicit_value: mp_cursor_skip(c, mp_cursor_uleb(c)); return true;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer: mp_cursor_skip(c, 4); return read_leb(c);
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		size = mp_cursor_uleb(c);
		block = mp_cursor_skip(c, size);
		/* A register in nearly all cases. The limit gives nesting an end. */
		return block && size <= ENTRY_VALUE_MAX && me_expr_is_portable(u, block, size);
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		if (!is_shared(u, mp_cursor_uleb(c)))
			return false;
		mp_cursor_skip(c, mp_cursor_u8(c));
		return true;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type: return read_leb(c) && is_shared(u, mp_cursor_uleb(c));
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type: mp_cursor_skip(c, 1); return is_shared(u, mp_cursor_uleb(c));
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret: return is_shared(u, mp_cursor_uleb(c));
	default: return false;
	}
}

/* Return: false: the operation is not portable. */
static bool skip_operands(const struct me_unit *u, uint8_t op, struct mp_cursor *c)
{
	int operand = operand_size(op);

	if (operand >= 0)
		mp_cursor_skip(c, (uint64_t)operand);
	else if (has_leb_operand(op))
		read_leb(c);
	else if (!is_simple(op))
		return read_other(u, op, c);
	return true;
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
