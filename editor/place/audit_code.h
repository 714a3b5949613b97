// SPDX-License-Identifier: Apache-2.0
/*
 * audit_code - the instructions at the entry, at the exits and at timing points in loops of an
 * audited function. Called by stub_code.
 *
 * A function has a slot in memory that each thread has for itself, as counters per thread are
 * (struct me_audit_slot). At the entry:
 *
 *		jmp	0f
 *		jmp	version A without stubs
 *		jmp	version B without stubs
 *	0:	decl	%gs:countdown(%rip)
 *		jns	1f
 *		lea	-128(%rsp), %rsp
 *		call	the runtime's entry for entries, which adds 128 to %rsp
 *		test	$function, %eax
 *	1:	cmpb	$0, %gs:version(%rip)
 *		jne	version B
 *		version A
 *
 * Before a return or a tail call:
 *
 *		cmpb	$0, %gs:timing(%rip)
 *		je	2f
 *		lea	-128(%rsp), %rsp
 *		call	the runtime's entry for exits, which adds 128 to %rsp
 *		test	$function, %eax
 *	2:
 *
 * At a timing point, in version A; in version B the first branch behind the call is `je`, and leads
 * to the block in version A, the second one to version B without stubs:
 *
 *		decl	%gs:left(%rip)
 *		jns	3f
 *		lea	-128(%rsp), %rsp
 *		call	the runtime's entry for loops, which adds 128 to %rsp
 *		test	$number, %eax
 *		cmpb	$0, %gs:version(%rip)
 *		jne	the block in version B
 *		cmpb	$0, %gs:decided(%rip)
 *		jne	the block in version A without stubs
 *	3:	the block
 *
 * After a verdict the runtime changes the first jump, which then goes where one of the next two
 * jumps goes (runtime/untimed.h). It writes four aligned bytes: the jump's address is a multiple of
 * 4, and the uppermost byte of the displacement stays. An invocation that began before leaves the
 * stubs at its next timing point.
 *
 * The runtime changes no register, and reads the number behind the call (base/runtime.h). These
 * instructions change flags, which must be dead, and the slot. No address is read from memory.
 * `lea` spares the red zone, the 128 bytes below %rsp. Loops keep variables there, as do parts of
 * functions that are entered by a jump. At an exit, unwind rows say that saved registers lie in the
 * red zone.
 */
#ifndef ME_AUDIT_CODE_H
#define ME_AUDIT_CODE_H

#include <stdint.h>

#include "editor/base/runtime.h"
#include "editor/instrumentation.h"

#define ME_ENTER_CODE_SIZE 53
#define ME_LEAVE_CODE_SIZE 25
#define ME_POINT_CODE_SIZE 52
/* Offset of the call; %rsp is ME_RED_ZONE lower there. */
#define ME_ENTER_CODE_CALL ME_RUNTIME_ENTER_CALL
#define ME_LEAVE_CODE_CALL 15
#define ME_POINT_CODE_CALL 14

/*
 * Write the instructions for @stub to @out; @vaddr is their address in the output.
 * Return: 0, -ERANGE out of reach.
 */
int me_enter_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out);
int me_point_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out);
int me_leave_code_write(const struct me_stub *stub, const struct me_stub_places *places,
			uint64_t vaddr, uint8_t *out);

#endif
