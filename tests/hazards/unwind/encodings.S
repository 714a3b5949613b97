// SPDX-License-Identifier: Apache-2.0
// Functions that call raise_kind() and have tables of unusual forms: see encodings.cc. Each returns what selected its
// landing pad.
#ifdef __PIC__
#define PERSONALITY	.cfi_personality 0x9b, DW.ref.__gxx_personality_v0
#define VIA_PLT(f)	f@PLT
#define TYPES aw
#else
#define PERSONALITY	.cfi_personality 0x3, __gxx_personality_v0
#define VIA_PLT(f)	f
#define TYPES a
#endif

	.hidden	DW.ref.__gxx_personality_v0
	.weak	DW.ref.__gxx_personality_v0
	.section .data.rel.local.DW.ref.__gxx_personality_v0, "awG", @progbits, DW.ref.__gxx_personality_v0, comdat
	.align	8
	.type	DW.ref.__gxx_personality_v0, @object
	.size	DW.ref.__gxx_personality_v0, 8
DW.ref.__gxx_personality_v0:
	.quad	__gxx_personality_v0

	.section .data.rel, "aw", @progbits
	.balign 8
int_type:	.quad	_ZTIi
base_type:	.quad	_ZTI4base
derived_type:	.quad	_ZTI7derived

	// A function with one call site of its own and one landing pad.
	.macro	begin name
	.text
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm

	.macro	body name, other=0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	movl	%edi, %ebx
	testl	%edi, %edi
	js	.Lnegative_\name
.Lbegin_\name:
	call	VIA_PLT(raise_kind)
.Lend_\name:
	xorl	%eax, %eax
	cmpl	$3, %ebx
	je	.Lleave_\name
	addl	$1000, %eax
.Lleave_\name:
	popq	%rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	ret
	.cfi_restore_state
.Lnegative_\name:
	negl	%ebx
	movl	%ebx, %eax
	jmp	.Lleave_\name
.Lpad_\name:
	movl	%edx, %ebx
	movq	%rax, %rdi
	call	VIA_PLT(__cxa_begin_catch)
	call	VIA_PLT(__cxa_end_catch)
	movslq	%ebx, %rax
	jmp	.Lleave_\name
	.if \other
.Lother_\name:
	leal	50(%rdx), %ebx
	movq	%rax, %rdi
	call	VIA_PLT(__cxa_begin_catch)
	call	VIA_PLT(__cxa_end_catch)
	movl	%ebx, %eax
	jmp	.Lleave_\name
	.endif
.Lstop_\name:
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	site data, name, begin, end, pad, action
	\data	\begin - \name
	\data	\end - \begin
	\data	\pad - \name
	.uleb128 \action
	.endm

	// The head of a table, the call sites by @data, then what is common.
	.macro	head name, flags=a
	.section .gcc_except_table.\name, "\flags", @progbits
	.balign 4
.Ltable_\name:
	.endm

	.macro	types_at name, encoding
	.byte	\encoding
	.uleb128 .Ltypes_\name - .Lafter_\name
.Lafter_\name:
	.endm

	.macro	sites name, encoding, data
	.byte	\encoding
	.uleb128 .Lsites_end_\name - .Lsites_\name
.Lsites_\name:
	site	\data, \name, .Lbegin_\name, .Lend_\name, .Lpad_\name, 1
	site	\data, \name, .Lend_\name, .Lstop_\name, \name, 0
.Lsites_end_\name:
	.endm

	// int, then a base, then all others pass.
	.macro	actions name
	.sleb128 1
	.sleb128 1
	.sleb128 2
	.sleb128 0
	.balign	4
	.endm

	.macro	types_9b name
	.long	base_type - .
	.long	int_type - .
.Ltypes_\name:
	.endm

	.macro	by_sites name, encoding, data
	begin	\name
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_\name
	body	\name
	head	\name
	.byte	0xff
	types_at \name, 0x9b
	sites	\name, \encoding, \data
	actions	\name
	types_9b \name
	.endm

	by_sites uleb_sites, 0x01, .uleb128
	by_sites udata2_sites, 0x02, .short
	by_sites udata4_sites, 0x03, .long
	by_sites udata8_sites, 0x04, .quad
	by_sites sleb_sites, 0x09, .sleb128
	by_sites sdata2_sites, 0x0a, .short
	by_sites sdata4_sites, 0x0b, .long
	by_sites sdata8_sites, 0x0c, .quad

	.macro	by_types name, encoding, flags
	begin	\name
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_\name
	body	\name
	head	\name, \flags
	.byte	0xff
	types_at \name, \encoding
	sites	\name, 0x01, .uleb128
	actions	\name
	.endm

	by_types types_9b, 0x9b, a
	types_9b types_9b
	by_types types_1b, 0x1b, a
	.long	_ZTI4base - .
	.long	int_copy - .
.Ltypes_types_1b:
	by_types types_1c, 0x1c, a
	.quad	_ZTI4base - .
	.quad	int_copy - .
.Ltypes_types_1c:
	by_types types_9c, 0x9c, a
	.quad	base_type - .
	.quad	int_type - .
.Ltypes_types_9c:
	by_types types_00, 0x00, TYPES
	.balign 8
	.quad	_ZTI4base
	.quad	_ZTIi
.Ltypes_types_00:
	by_types types_80, 0x80, TYPES
	.balign 8
	.quad	base_type
	.quad	int_type
.Ltypes_types_80:
#ifndef __PIC__
	by_types types_03, 0x03, a
	.long	_ZTI4base
	.long	_ZTIi
.Ltypes_types_03:
	by_types types_0b, 0x0b, a
	.long	_ZTI4base
	.long	_ZTIi
.Ltypes_types_0b:
#endif

	// A type of the program's own that is equal to int's by its name.
	.section .data.rel.ro, "aw", @progbits
	.balign 8
int_copy:
	.quad	_ZTVN10__cxxabiv123__fundamental_type_infoE + 16
	.quad	int_name
	.section .rodata
int_name:
	.string "i"

	// Bases of landing pads.
	.macro	by_base name, flags
	begin	\name
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_\name
	body	\name
	head	\name, \flags
	.endm
	.macro	by_base_rest name
	types_at \name, 0x9b
	.byte	0x01
	.uleb128 .Lsites_end_\name - .Lsites_\name
.Lsites_\name:
	.uleb128 .Lbegin_\name - \name
	.uleb128 .Lend_\name - .Lbegin_\name
	.uleb128 .Lpad_\name - .Lend_\name
	.uleb128 1
	.uleb128 .Lend_\name - \name
	.uleb128 .Lstop_\name - .Lend_\name
	.uleb128 0
	.uleb128 0
.Lsites_end_\name:
	actions	\name
	types_9b \name
	.endm

	by_base	base_1b, a
	.byte	0x1b
	.long	.Lend_base_1b - .
	by_base_rest base_1b
	by_base	base_00, TYPES
	.byte	0x00
	.quad	.Lend_base_00
	by_base_rest base_00
#ifndef __PIC__
	by_base	base_03, a
	.byte	0x03
	.long	.Lend_base_03
	by_base_rest base_03
#endif

	// Call sites without bytes before and behind the one that counts.
	begin	empty_sites
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_empty_sites
	body	empty_sites, 1
	head	empty_sites
	.byte	0xff
	types_at empty_sites, 0x9b
	.byte	0x01
	.uleb128 .Lsites_end_empty_sites - .Lsites_empty_sites
.Lsites_empty_sites:
	site	.uleb128, empty_sites, empty_sites, empty_sites, .Lother_empty_sites, 1
	site	.uleb128, empty_sites, .Lbegin_empty_sites, .Lbegin_empty_sites, .Lother_empty_sites, 1
	site	.uleb128, empty_sites, .Lbegin_empty_sites, .Lend_empty_sites, .Lpad_empty_sites, 1
	site	.uleb128, empty_sites, .Lend_empty_sites, .Lend_empty_sites, .Lother_empty_sites, 1
	site	.uleb128, empty_sites, .Lend_empty_sites, .Lstop_empty_sites, empty_sites, 0
.Lsites_end_empty_sites:
	actions	empty_sites
	types_9b empty_sites

	// The first of two call sites that overlap counts.
	begin	many_sites
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_many_sites
	body	many_sites, 1
	head	many_sites
	.byte	0xff
	types_at many_sites, 0x9b
	.byte	0x01
	.uleb128 .Lsites_end_many_sites - .Lsites_many_sites
.Lsites_many_sites:
	site	.uleb128, many_sites, .Lbegin_many_sites, .Lend_many_sites, .Lpad_many_sites, 1
	site	.uleb128, many_sites, .Lbegin_many_sites, .Lstop_many_sites, .Lother_many_sites, 1
.Lsites_end_many_sites:
	actions	many_sites
	types_9b many_sites

	// The chain goes back: the second action is the first in the table, and is shared.
	begin	chained
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_chained
	body	chained
	head	chained
	.byte	0xff
	types_at chained, 0x9b
	.byte	0x01
	.uleb128 .Lsites_end_chained - .Lsites_chained
.Lsites_chained:
	site	.uleb128, chained, .Lbegin_chained, .Lend_chained, .Lpad_chained, 5
	site	.uleb128, chained, .Lend_chained, .Lstop_chained, chained, 0
.Lsites_end_chained:
	.sleb128 2
	.sleb128 0
	.sleb128 1
	.sleb128 -3
	.sleb128 1
	.sleb128 -5
	.balign	4
	types_9b chained

	// Only a base may pass: a list of allowed types.
	begin	allowed
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_allowed
	body	allowed
	head	allowed
	.byte	0xff
	types_at allowed, 0x9b
	sites	allowed, 0x01, .uleb128
	.sleb128 -1
	.sleb128 0
	.balign	4
	types_9b allowed
	.uleb128 2
	.uleb128 0

	// A type that is null catches all.
	begin	no_type
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_no_type
	body	no_type
	head	no_type
	.byte	0xff
	types_at no_type, 0x9b
	sites	no_type, 0x01, .uleb128
	.sleb128 1
	.sleb128 1
	.sleb128 2
	.sleb128 0
	.balign	4
	.long	0
	.long	int_type - .
.Ltypes_no_type:

	// The pointers in the unwind table itself.
	begin	lsda_1c
	PERSONALITY
	.cfi_lsda 0x1c, .Ltable_lsda_1c
	body	lsda_1c
	head	lsda_1c
	.byte	0xff
	types_at lsda_1c, 0x9b
	sites	lsda_1c, 0x01, .uleb128
	actions	lsda_1c
	types_9b lsda_1c

#ifndef __PIC__
	begin	person_1b
	.cfi_personality 0x1b, __gxx_personality_v0
	.cfi_lsda 0x1b, .Ltable_person_1b
	body	person_1b
	head	person_1b
	.byte	0xff
	types_at person_1b, 0x9b
	sites	person_1b, 0x01, .uleb128
	actions	person_1b
	types_9b person_1b

	begin	lsda_03
	PERSONALITY
	.cfi_lsda 0x03, .Ltable_lsda_03
	body	lsda_03
	head	lsda_03
	.byte	0xff
	types_at lsda_03, 0x9b
	sites	lsda_03, 0x01, .uleb128
	actions	lsda_03
	types_9b lsda_03

	begin	lsda_00
	.cfi_personality 0x00, __gxx_personality_v0
	.cfi_lsda 0x00, .Ltable_lsda_00
	body	lsda_00
	head	lsda_00
	.byte	0xff
	types_at lsda_00, 0x9b
	sites	lsda_00, 0x01, .uleb128
	actions	lsda_00
	types_9b lsda_00

	begin	person_03
	.cfi_personality 0x03, __gxx_personality_v0
	.cfi_lsda 0x1b, .Ltable_person_03
	body	person_03
	head	person_03
	.byte	0xff
	types_at person_03, 0x9b
	sites	person_03, 0x01, .uleb128
	actions	person_03
	types_9b person_03
#endif

	// A cleanup in the middle of a chain, and a landing pad that goes on.
	.text
	.p2align 4
	.globl	with_cleanup
	.type	with_cleanup, @function
with_cleanup:
	.cfi_startproc
	PERSONALITY
	.cfi_lsda 0x1b, .Ltable_with_cleanup
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
.Lbegin_with_cleanup:
	call	VIA_PLT(raise_kind)
.Lend_with_cleanup:
	xorl	%eax, %eax
1:	popq	%rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	ret
	.cfi_restore_state
.Lpad_with_cleanup:
	movq	%rax, %rbx
	testl	%edx, %edx
	jz	2f
	cmpl	$1, %edx
	jne	3f
	movq	%rax, %rdi
	call	VIA_PLT(__cxa_begin_catch)
	call	VIA_PLT(__cxa_end_catch)
	movl	$1, %eax
	jmp	1b
2:	movl	$5, %edi
	call	VIA_PLT(note_cleanup)
	movq	%rbx, %rdi
.Lresume_with_cleanup:
	call	VIA_PLT(_Unwind_Resume)
.Lresumed_with_cleanup:
3:	movq	%rax, %rdi
	call	VIA_PLT(__cxa_begin_catch)
	call	VIA_PLT(__cxa_end_catch)
	movl	$77, %eax
	jmp	1b
.Lstop_with_cleanup:
	.cfi_endproc
	.size	with_cleanup, . - with_cleanup
	head	with_cleanup
	.byte	0xff
	types_at with_cleanup, 0x9b
	.byte	0x01
	.uleb128 .Lsites_end_with_cleanup - .Lsites_with_cleanup
.Lsites_with_cleanup:
	site	.uleb128, with_cleanup, .Lbegin_with_cleanup, .Lend_with_cleanup, .Lpad_with_cleanup, 1
	site	.uleb128, with_cleanup, .Lresume_with_cleanup, .Lresumed_with_cleanup, with_cleanup, 0
.Lsites_end_with_cleanup:
	.sleb128 1
	.sleb128 1
	.sleb128 0
	.sleb128 0
	.balign	4
	.long	base_type - .
	.long	int_type - .
.Ltypes_with_cleanup:

	.section .note.GNU-stack, "", @progbits
