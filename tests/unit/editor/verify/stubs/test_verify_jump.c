// SPDX-License-Identifier: Apache-2.0
/* test_verify_jump - the analysis and verify, which share no code, agree on the names of functions that do not return. */
#include "tests/unit/files.h"

#include "editor/verify/stubs/verify_jump.h"
#include "libprof/cfg/cfg_private.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static bool is_noreturn(const char *name)
{
	bool is = vf_is_noreturn_name(name);

	ck_assert_msg(is == mp_cfg_is_noreturn_name(name), "%s: %d", name, is);
	return is;
}

/* Every word of the two sources, among them the names of both lists. */
TEST_EACH(both_lists_have_the_same_names, 2)
{
	static const char *const sources[] = {"libprof/cfg/cfg_noreturn.c",
					      "editor/verify/stubs/verify_jump.c"};
	size_t size;
	char *text = read_file(sources[_i], &size);
	unsigned int nr = 0;

	for (char *p = text; *(p += strcspn(p, LETTERS));) {
		size_t len = strspn(p, LETTERS);
		char *word = strndup(p, len);

		nr += is_noreturn(word);
		p += len;
		free(word);
	}
	/* 27 names, and perhaps others in comments. */
	ck_assert_uint_ge(nr, 27);
	free(text);
}

TEST(both_know_the_family_of_throw)
{
	ck_assert(is_noreturn("_ZSt17__throw_bad_allocv"));
	ck_assert(is_noreturn("_ZSt20__throw_out_of_rangePKc"));
	ck_assert(is_noreturn("_ZSt9terminatev"));
	ck_assert(!is_noreturn("_ZSt9terminate"));
	ck_assert(!is_noreturn("_ZSt4mine17__throw_bad_allocv"));
	ck_assert(!is_noreturn("_ZSt3foo__throw_"));
	ck_assert(!is_noreturn("_ZSt17"));
	ck_assert(!is_noreturn("__throw_bad_alloc"));
	ck_assert(!is_noreturn(""));
}
