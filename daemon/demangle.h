// SPDX-License-Identifier: Apache-2.0
/*
 * demangle - C++ names as people write them, and whether a symbol is the function they mean.
 */
#ifndef MD_DEMANGLE_H
#define MD_DEMANGLE_H

#include <stddef.h>

/*
 * md_demangle - "ns::f(int)" for "_ZN2ns1fEi". Return: NULL where @name is not mangled, or no
 * demangler is on this machine. Ownership: free().
 */
char *md_demangle(const char *name);

/* How well a symbol answers to what somebody wrote; more is better. */
enum md_name_match {
	MD_NAME_OTHER,
	MD_NAME_CLONE, /* f.constprop.0 for f */
	MD_NAME_BASE,  /* ns::f(int), or int ns::f<int>(int), for ns::f */
	MD_NAME_EXACT, /* the symbol itself, or all of its demangled name */
};
enum md_name_match md_name_match(const char *symbol, const char *wanted);

/* The part of a demangled name before its parameters: length of it. */
size_t md_name_base_len(const char *name);

/*
 * md_name_brief - "std::swap" for "void std::swap<int>(int&, int&)": no result, no arguments of
 * templates, no parameters. Return: NULL: no memory. Ownership: free().
 */
char *md_name_brief(const char *name);

#endif
