// SPDX-License-Identifier: Apache-2.0
/*
 * demangle - C++ names; see demangle.h. Uses libstdc++'s demangler, which every machine with
 * C++ programs has. Loads it at run time, so nothing depends on it; without it names stay
 * mangled.
 */
#include "daemon/code/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangler(const char *name, char *buf, size_t *size, int *status);

static demangler *find_demangler(void)
{
	static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
	static demangler *found;
	static bool looked;

	for (size_t i = 0; !looked && !found && i < 2; i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);

		if (library)
			found = (demangler *)dlsym(library, "__cxa_demangle");
	}
	looked = true;
	return found;
}

char *md_demangle(const char *name)
{
	demangler *demangle;
	int status = -1;
	char *text;

	/* The demangler would turn "i" into "int". */
	if (strncmp(name, "_Z", 2) && strncmp(name, "___Z", 4))
		return NULL;
	demangle = find_demangler();
	text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
	if (!status)
		return text;
	free(text);
	return NULL;
}

/* ---- parts of a name ----------------------------------------------------------------------- */

static bool ends_with(const char *name, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len > n && !memcmp(name + len - n, tail, n);
}

/* Return: length of the name without " [clone .cold]" and the like. */
static size_t without_clones(const char *name, size_t len)
{
	while (len && name[len - 1] == ']') {
		size_t open = len;

		while (open && name[open - 1] != '[')
			open--;
		if (open < 2 || name[open - 2] != ' ' || strncmp(name + open, "clone ", 6))
			break;
		len = open - 2;
	}
	return len;
}

static size_t without_qualifiers(const char *name, size_t len)
{
	static const char *const qualifiers[] = {" const", " volatile", " &&", " &", " noexcept"};
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < sizeof(qualifiers) / sizeof(qualifiers[0]); i++) {
			if (!ends_with(name, len, qualifiers[i]))
				continue;
			len -= strlen(qualifiers[i]);
			again = true;
		}
	}
	return len;
}

/* Return: index of the bracket that name[len - 1] closes; @len if there is none. */
static size_t opening(const char *name, size_t len, char open, char close)
{
	size_t depth = 0;

	for (size_t i = len; i-- > 0;) {
		if (name[i] == close)
			depth++;
		else if (name[i] == open && !--depth)
			return i;
	}
	return len;
}

size_t md_name_base_len(const char *name)
{
	size_t whole = without_clones(name, strlen(name));
	size_t len = without_qualifiers(name, whole), open;

	if (!len || name[len - 1] != ')')
		return whole;
	open = opening(name, len, '(', ')');
	/* The brackets of "operator()" and "(anonymous namespace)" belong to the name. */
	if (open == len || !open || ends_with(name, open, "operator"))
		return open && open < len && ends_with(name, len, "()") ? len : whole;
	return open;
}

/*
 * Return: where the last word outside of brackets begins. A template function's result precedes
 * it.
 */
static size_t name_start(const char *name, size_t len)
{
	const char *op = memmem(name, len, "operator", 8);
	size_t depth = 0;

	/*
	 * Ignore operator names: "operator<" looks like a bracket, and "operator new" has a
	 * space.
	 */
	if (op)
		len = (size_t)(op - name);
	for (size_t i = len; i-- > 0;) {
		if (name[i] == '>' || name[i] == ')')
			depth++;
		else if ((name[i] == '<' || name[i] == '(') && depth)
			depth--;
		else if (name[i] == ' ' && !depth)
			return i + 1;
	}
	return 0;
}

/* Return: length of the operator at @text if it contains angle brackets, else 0. */
static size_t bracket_operator(const char *text)
{
	static const char *const operators[] = {"<<=", ">>=", "<=>", "->*", "<<", ">>",
						"<=",  ">=",  "->",  "<",   ">"};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!strncmp(text, operators[i], strlen(operators[i])))
			return strlen(operators[i]);
	return 0;
}

char *md_name_brief(const char *name)
{
	size_t end = md_name_base_len(name), depth = 0, n = 0;
	char *brief = malloc(end + 1);

	for (size_t i = name_start(name, end); brief && i < end; i++) {
		if (!depth && n >= 8 && !memcmp(brief + n - 8, "operator", 8)) {
			size_t len = bracket_operator(name + i);

			for (; len && i < end; len--)
				brief[n++] = name[i++];
			if (i == end)
				break;
		}
		depth += name[i] == '<';
		if (!depth)
			brief[n++] = name[i];
		depth -= name[i] == '>' && depth;
	}
	while (n && brief[n - 1] == ' ')
		n--;
	if (brief)
		brief[n] = '\0';
	return brief;
}

static bool equals(const char *name, size_t len, const char *wanted)
{
	return strlen(wanted) == len && !memcmp(name, wanted, len);
}

static bool base_matches(const char *name, const char *wanted)
{
	size_t len = md_name_base_len(name), start, open;

	if (equals(name, len, wanted))
		return true;
	start = name_start(name, len);
	if (equals(name + start, len - start, wanted))
		return true;
	/* Try without template arguments. operator> and operator-> have none. */
	if (len && name[len - 1] == '>') {
		open = opening(name, len, '<', '>');
		if (open < len && open > start)
			return equals(name + start, open - start, wanted) ||
			       equals(name, open, wanted);
	}
	return false;
}

/*
 * Return: false if @symbol cannot match. A mangled name contains the last identifier of @wanted
 * literally, except for std's abbreviations and operators. This avoids demangling every symbol.
 */
static bool may_match(const char *symbol, const char *wanted)
{
	size_t end = md_name_base_len(wanted), start;
	char part[128];

	if (!strncmp(wanted, "std::", 5) || strstr(wanted, "operator"))
		return true;
	if (end && wanted[end - 1] == '>')
		end = opening(wanted, end, '<', '>');
	for (start = end;
	     start && (isalnum((unsigned char)wanted[start - 1]) || wanted[start - 1] == '_');
	     start--)
		;
	if (start == end || end - start >= sizeof(part))
		return true;
	memcpy(part, wanted + start, end - start);
	part[end - start] = '\0';
	return strstr(symbol, part) != NULL;
}

enum md_name_match md_name_match(const char *symbol, const char *wanted)
{
	const char *dot;
	bool same;
	char *text;

	if (!strcmp(symbol, wanted))
		return MD_NAME_EXACT;
	dot = strchr(symbol + (symbol[0] == '.'), '.');
	if (dot && equals(symbol, (size_t)(dot - symbol), wanted))
		return MD_NAME_CLONE;
	if (strncmp(symbol, "_Z", 2) || !may_match(symbol, wanted))
		return MD_NAME_OTHER;
	text = md_demangle(symbol);
	if (!text)
		return MD_NAME_OTHER;
	same = !strcmp(text, wanted);
	if (!same && !dot && base_matches(text, wanted)) {
		free(text);
		return MD_NAME_BASE;
	}
	if (!same && dot &&
	    (base_matches(text, wanted) ||
	     equals(text, without_clones(text, strlen(text)), wanted))) {
		free(text);
		return MD_NAME_CLONE;
	}
	free(text);
	return same ? MD_NAME_EXACT : MD_NAME_OTHER;
}
