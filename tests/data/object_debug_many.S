/* SPDX-License-Identifier: Apache-2.0 */
/* For test_object_forged.c: each of many scopes has all of the code. */
#define MANY 8000
	.text
	.globl	many
	.type	many, @function
many:
	.cfi_startproc
	.rept	MANY
	incl	%eax
	.endr
	ret
.Lend:
	.cfi_endproc
	.size	many, . - many

	.section .debug_abbrev, "", @progbits
.Labbrev:
	.uleb128 1, 0x11	/* DW_TAG_compile_unit, with children */
	.byte	1
	.uleb128 0, 0
	.uleb128 2, 0x0b	/* DW_TAG_lexical_block */
	.byte	0
	.uleb128 0x11, 1	/* DW_AT_low_pc, DW_FORM_addr */
	.uleb128 0x12, 6	/* DW_AT_high_pc, DW_FORM_data4 */
	.uleb128 0, 0
	.uleb128 0

	.section .debug_info, "", @progbits
	.long	.Lunit_end - .Lunit
.Lunit:	.value	4
	.long	.Labbrev
	.byte	8
	.uleb128 1
	.rept	MANY
	.uleb128 2
	.quad	many
	.long	.Lend - many
	.endr
	.uleb128 0
.Lunit_end:
	.section .note.GNU-stack, "", @progbits
