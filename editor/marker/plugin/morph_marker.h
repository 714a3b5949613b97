/* SPDX-License-Identifier: Apache-2.0 */
/*
 * morph_marker.h - code markers by hand, for C and C++, gcc and clang.
 *
 * MORPH_MARKER(name) is a statement that adds 1 to a variable of its own. The optimiser may copy
 * it, but does not lose it: the total at the end of a run is the same in every compilation of the
 * program. A loop with a marker is not vectorised. The variable is the symbol __morph_marker_<name>; a line in the
 * section .morph.markers says where it stands. A name may stand once in a source file, and not
 * in a template or in an inline function of C++: these may be compiled several times.
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

/* One instruction, which needs no register: it can be left out of a finished program. */
#if defined(__x86_64__) && defined(__LP64__) && defined(__GNUC__)
#define MORPH_MARKER_ADD(total) __asm__ __volatile__("addq $1, %c0(%%rip)" : : "i"(&(total)) : "cc")
#else
#define MORPH_MARKER_ADD(total) ((total) += 1)
#endif

#define MORPH_MARKER(name)                                                                         \
	do {                                                                                       \
		static volatile unsigned long long morph_marker_total __asm__(                     \
			"__morph_marker_" #name);                                                  \
		static const char morph_marker_line[]                                              \
			__attribute__((section(".morph.markers"), aligned(1),                      \
				       used MORPH_MARKER_RETAIN)) = #name                          \
			"\t" __FILE__ "\t" MORPH_MARKER_TEXT(__LINE__) "\t-\thand\n";              \
		MORPH_MARKER_ADD(morph_marker_total);                                              \
	} while (0)

#endif
