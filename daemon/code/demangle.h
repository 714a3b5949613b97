// SPDX-License-Identifier: Apache-2.0
/*
 * demangle - turns mangled C++ names into readable ones, and matches a symbol with a user's
 * name.
 */
#ifndef MD_DEMANGLE_H
#define MD_DEMANGLE_H

#include <stddef.h>

/*
 * md_demangle - "ns::f(int)" for "_ZN2ns1fEi". Return: NULL if @name is not mangled, or this
 * machine has no demangler. Ownership: free().
 */
char *md_demangle(const char *name);

/* How well a symbol matches a name that a user wrote; higher is better. */
enum md_name_match {
	MD_NAME_OTHER,
	MD_NAME_CLONE, /* f.constprop.0 for f */
	MD_NAME_BASE,  /* ns::f(int), or int ns::f<int>(int), for ns::f */
	MD_NAME_EXACT, /* the symbol itself, or its complete demangled name */
};
enum md_name_match md_name_match(const char *symbol, const char *wanted);

/* Return: length of a demangled name without its parameters. */
size_t md_name_base_len(const char *name);

/*
 * md_name_brief - "std::swap" for "void std::swap<int>(int&, int&)": without result, template
 * arguments and parameters. Return: NULL: no memory. Ownership: free().
 */
char *md_name_brief(const char *name);

#endif
