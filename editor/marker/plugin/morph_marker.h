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

#define MORPH_MARKER(name)                                                                         \
	do {                                                                                       \
		static volatile unsigned long long morph_marker_total __asm__(                     \
			"__morph_marker_" #name);                                                  \
		static const char morph_marker_line[]                                              \
			__attribute__((section(".morph.markers"), aligned(1),                      \
				       used MORPH_MARKER_RETAIN)) = #name                          \
			"\t" __FILE__ "\t" MORPH_MARKER_TEXT(__LINE__) "\t-\thand\n";              \
		morph_marker_total += 1;                                                           \
	} while (0)

#endif
