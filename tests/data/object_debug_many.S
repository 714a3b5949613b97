/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_object_forged.c: each of many scopes has all of the code. OVERLAP: a list with many ranges that overlap.
 * BASES: many scopes name a list with many bases. UNITS: many units use one of two large tables in turn. ATTRS: an
 * entry of one byte has many attributes.
 */
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
#if defined(OVERLAP) || defined(BASES)
	.uleb128 0x55, 0x17	/* DW_AT_ranges, DW_FORM_sec_offset */
#elif defined(ATTRS)
	.rept	MANY
	.uleb128 0x3f, 0x19	/* DW_AT_external, DW_FORM_flag_present */
	.endr
#elif !defined(UNITS)
	.uleb128 0x11, 1	/* DW_AT_low_pc, DW_FORM_addr */
	.uleb128 0x12, 6	/* DW_AT_high_pc, DW_FORM_data4 */
#endif
	.uleb128 0, 0
#ifdef UNITS
	.set	code, 3
	.rept	MANY
	.uleb128 code, 0x0b
	.byte	0
	.uleb128 0, 0
	.set	code, code + 1
	.endr
#endif
	.uleb128 0

#if defined(OVERLAP) || defined(BASES)
	.section .debug_ranges, "", @progbits
	.rept	MANY
#ifdef BASES
	.quad	-1, 0
#else
	.quad	many, .Lend
#endif
	.endr
	.quad	0, 0
#endif

	.section .debug_info, "", @progbits
#ifdef UNITS
	.rept	MANY
	.long	8
	.value	4
	.long	.Labbrev
	.byte	8
	.uleb128 2
	.long	8
	.value	4
	.long	.Labbrev + 5
	.byte	8
	.uleb128 2
	.endr
#else
	.long	.Lunit_end - .Lunit
.Lunit:	.value	4
	.long	.Labbrev
	.byte	8
	.uleb128 1
	.rept	MANY
	.uleb128 2
#if defined(OVERLAP) || defined(BASES)
	.long	0
#elif !defined(ATTRS)
	.quad	many
	.long	.Lend - many
#endif
	.endr
	.uleb128 0
.Lunit_end:
#endif
	.section .note.GNU-stack, "", @progbits
