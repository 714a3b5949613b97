// SPDX-License-Identifier: Apache-2.0
/*
 * untimed - changes the jump at the start of the stub at an entry (place/audit_code.h), so that it
 * leads to a version without stubs. The two addresses that it may lead to stand in the stub, in
 * jumps that verify has checked.
 *
 * Other threads may run the jump meanwhile. Only its displacement changes, by one store of four
 * aligned bytes, so each thread sees the old jump or the new one, and both are right. Virtual
 * machines for Java patch calls in running code in the same way. The page can be executed all the
 * time. It can be written for a moment: a system that forbids that keeps the stubs.
 */
#include "editor/runtime/untimed.h"

#include <stddef.h>
#include <sys/mman.h>

#include "editor/runtime/system.h"

#define JMP	 0xe9
#define JMP_SIZE 5
#define CALL	 5

/* Return: the target of the jump at @at. */
static uint64_t target_of(const uint8_t *at)
{
	int32_t disp;

	__builtin_memcpy(&disp, at + 1, sizeof(disp));
	return (uint64_t)at + JMP_SIZE + (uint64_t)(int64_t)disp;
}

/* The first four bytes of a jump at @at to @target. Return: false: its last byte would change. */
static bool encode(const uint8_t *at, uint64_t target, uint32_t *bytes)
{
	uint32_t disp = (uint32_t)(target - (uint64_t)at - JMP_SIZE);

	*bytes = JMP | disp << 8;
	return at[JMP_SIZE - 1] == disp >> 24;
}

void me_untimed_enter(struct me_audit_state *state, uint8_t *ret, uint8_t version)
{
	uint8_t *entry = ret - CALL - ME_RUNTIME_ENTER_CALL;
	uint64_t page = (uint64_t)entry & ~(uint64_t)(ME_RUNTIME_PAGE - 1);
	uint32_t bytes;

	if ((uint64_t)entry % sizeof(bytes) || entry[0] != JMP ||
	    !encode(entry, target_of(entry + (version ? 2 : 1) * JMP_SIZE), &bytes))
		return;
	if (__atomic_load_n((uint32_t *)entry, __ATOMIC_RELAXED) == bytes)
		return;
	if (__atomic_exchange_n(&state->writing, 1, __ATOMIC_ACQUIRE))
		return;
	if (!call4(SYS_mprotect, (long)page, ME_RUNTIME_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		   0)) {
		__atomic_store_n((uint32_t *)entry, bytes, __ATOMIC_RELEASE);
		call4(SYS_mprotect, (long)page, ME_RUNTIME_PAGE, PROT_READ | PROT_EXEC, 0);
	}
	/* Pairs with the exchange above. */
	__atomic_store_n(&state->writing, 0, __ATOMIC_RELEASE);
}
