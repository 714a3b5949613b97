/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_verify_debug.c: a unit of debug information whose entries cost readers much. LISTS: many entries name one list
 * with many ranges, which have all code. ATTRS: many entries have many attributes.
 */
#define MANY 8000
	.section .debug_abbrev, "", @progbits
.Labbrev:
	.uleb128 1, 0x11	/* DW_TAG_compile_unit, with children */
	.byte	1
	.uleb128 0, 0
	.uleb128 2, 0x2e	/* DW_TAG_subprogram */
	.byte	0
	.uleb128 0x3b, 0x0b	/* DW_AT_decl_line, DW_FORM_data1 */
	.uleb128 0x55, 0x17	/* DW_AT_ranges, DW_FORM_sec_offset */
#ifdef ATTRS
	.rept	MANY
	.uleb128 0x3f, 0x19	/* DW_AT_external, DW_FORM_flag_present */
	.endr
#endif
	.uleb128 0, 0, 0

	.section .debug_ranges, "", @progbits
.Lranges:
#ifdef LISTS
	.set	end, 0x40000000
	.rept	MANY
	.quad	1, end
	.set	end, end + 1
	.endr
#endif
	.quad	0, 0

	.section .debug_info, "", @progbits
	.long	.Lunit_end - .Lunit
.Lunit:	.value	4
	.long	.Labbrev
	.byte	8
	.uleb128 1
	.rept	MANY
	.uleb128 2
	.byte	42
	.long	.Lranges
	.endr
	.uleb128 2
	.byte	43		/* that the test changes */
	.long	.Lranges
	.uleb128 0
.Lunit_end:
	.section .note.GNU-stack, "", @progbits
