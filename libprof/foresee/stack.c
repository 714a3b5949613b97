// SPDX-License-Identifier: Apache-2.0
/* stack - what push, pop and leave do; calls and returns use the same. Called by execute and foresee. */
#include "libprof/foresee/execute_private.h"

void mp_push(struct mp_processor *p, const uint64_t *value)
{
	uint64_t rsp;

	if (!mp_register_read(p, ZYDIS_REGISTER_RSP, &rsp)) {
		mp_memory_forget_all(&p->memory);
		return;
	}
	mp_register_write(p, ZYDIS_REGISTER_RSP, rsp - 8);
	if (value)
		mp_memory_write(&p->memory, rsp - 8, 8, *value);
	else
		mp_memory_forget(&p->memory, rsp - 8, 8);
}

bool mp_pop(struct mp_processor *p, uint64_t *value)
{
	uint64_t rsp;

	if (!mp_register_read(p, ZYDIS_REGISTER_RSP, &rsp))
		return false;
	mp_register_write(p, ZYDIS_REGISTER_RSP, rsp + 8);
	return mp_memory_read(&p->memory, rsp, 8, value);
}

bool mp_push_operand(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t value;

	if (d->insn.operand_width != 64)
		return false;
	mp_push(p, mp_operand_read(p, d, &d->operands[0], &value) ? &value : NULL);
	return true;
}

bool mp_pop_operand(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t value;

	if (d->insn.operand_width != 64 || d->operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	if (mp_pop(p, &value))
		mp_operand_write(p, d, &d->operands[0], value);
	else
		mp_operand_forget(p, d, &d->operands[0]);
	return true;
}

bool mp_leave(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t rbp;

	if (d->insn.operand_width != 64 || !mp_register_read(p, ZYDIS_REGISTER_RBP, &rbp))
		return false;
	mp_register_write(p, ZYDIS_REGISTER_RSP, rbp);
	if (mp_pop(p, &rbp))
		mp_register_write(p, ZYDIS_REGISTER_RBP, rbp);
	else
		mp_register_forget(p, ZYDIS_REGISTER_RBP);
	return true;
}
