/* SPDX-License-Identifier: Apache-2.0 */
/*
 * morph_marker.h - code markers by hand, for C and C++, gcc and clang.
 *
 * MORPH_MARKER(name) is a statement that adds 1 to a variable of its own. The optimiser may copy
 * it, but does not lose it: the total at the end of a run is the same in every compilation of the
 * program. A loop with a marker is not vectorised. MORPH_MARKER_ROUNDS(name, rounds) adds the number of
 * rounds behind a loop that counts them in a variable, and that may still be vectorised.
 *
 * The variable is the symbol __morph_marker_<name>; a line in the section .morph.markers says where it
 * stands. A name may stand once in a source file, and not in a template or in an inline function of C++:
 * these may be compiled several times.
 */
#ifndef MORPH_MARKER_H
#define MORPH_MARKER_H

#define MORPH_MARKER_TEXT_(x) #x
#define MORPH_MARKER_TEXT(x)  MORPH_MARKER_TEXT_(x)

#if defined(__has_attribute)
#if __has_attribute(retain)
#define MORPH_MARKER_RETAIN , retain
#endif
#endif
#ifndef MORPH_MARKER_RETAIN
#define MORPH_MARKER_RETAIN
#endif

/* The compiler's estimates take the assembly for one instruction, whatever its text. */
#if defined(__clang__) ? __clang_major__ >= 11 : defined(__GNUC__) && __GNUC__ >= 9
#define MORPH_MARKER_ASM __asm__ __inline__ __volatile__
#else
#define MORPH_MARKER_ASM __asm__ __volatile__
#endif

/* One instruction: it can be left out of a finished program. A constant needs no register. */
#if defined(__x86_64__) && defined(__LP64__) && defined(__GNUC__)
#define MORPH_MARKER_ADD(total, rounds)                                                            \
	MORPH_MARKER_ASM("addq %1, %c0(%%rip)"                                                     \
			 :                                                                         \
			 : "i"(&(total)), "er"((unsigned long long)(rounds))                       \
			 : "cc")
#else
#define MORPH_MARKER_ADD(total, rounds) ((total) += (rounds))
#endif

#define MORPH_MARKER_AT(text, rounds)                                                              \
	do {                                                                                       \
		static volatile unsigned long long morph_marker_total __asm__(                     \
			"__morph_marker_" text)                                                    \
			__attribute__((section(".morph.totals"), aligned(64)));                    \
		static const char morph_marker_line[]                                              \
			__attribute__((section(".morph.markers"), aligned(1),                      \
				       used MORPH_MARKER_RETAIN)) = text                           \
			"\t" __FILE__ "\t" MORPH_MARKER_TEXT(__LINE__) "\t-\thand\n";              \
		MORPH_MARKER_ADD(morph_marker_total, rounds);                                      \
	} while (0)

#define MORPH_MARKER(name)		  MORPH_MARKER_AT(#name, 1)
#define MORPH_MARKER_ROUNDS(name, rounds) MORPH_MARKER_AT(#name, rounds)

#endif
