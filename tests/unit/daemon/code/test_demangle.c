// SPDX-License-Identifier: Apache-2.0
/* test_demangle - which symbols match the names that users type. */

#include "daemon/code/demangle.h"
#include "tests/unit/suite.h"

static const char *base(const char *name)
{
	static char buf[256];

	snprintf(buf, sizeof(buf), "%.*s", (int)md_name_base_len(name), name);
	return buf;
}

TEST(name_base_ends_before_the_parameters)
{
	ck_assert_str_eq(base("ns::f(int)"), "ns::f");
	ck_assert_str_eq(base("ns::f(int (*)(char), long) const"), "ns::f");
	ck_assert_str_eq(base("f() const &"), "f");
	ck_assert_str_eq(base("A::operator()(int) const"), "A::operator()");
	ck_assert_str_eq(base("A::operator()() [clone .cold]"), "A::operator()");
	ck_assert_str_eq(base("(anonymous namespace)::f(long)"), "(anonymous namespace)::f");
	ck_assert_str_eq(base("plain"), "plain");
	ck_assert_str_eq(base(""), "");
	ck_assert_str_eq(base(")"), ")");
	ck_assert_str_eq(base("()"), "()");
}

static void expect_brief(const char *name, const char *want)
{
	AUTO_FREE char *got = md_name_brief(name);

	ck_assert_str_eq(got, want);
}

TEST(name_in_brief_has_no_arguments)
{
	expect_brief("void std::swap<int>(int&, int&)", "std::swap");
	expect_brief("std::vector<int, std::allocator<int> >::push_back(int&&)",
		     "std::vector::push_back");
	expect_brief("std::enable_if<A<(B)1>::value, void>::type ns::f<int>(int)", "ns::f");
	expect_brief("bool ns::operator< <int>(ns::A<int> const&)", "ns::operator<");
	expect_brief("A<int>::operator<<(int)", "A::operator<<");
	expect_brief("A<B>::operator->() const", "A::operator->");
	expect_brief("X<int>::type ns::operator-<int*, V<int> >(int)", "ns::operator-");
	expect_brief("operator new(unsigned long)", "operator new");
	expect_brief("f", "f");
	expect_brief("", "");
	expect_brief("<<<", "");
	expect_brief(">>>", ">>>");
}

TEST(name_of_c_matches_itself_and_its_clones)
{
	ck_assert_int_eq(md_name_match("main", "main"), MD_NAME_EXACT);
	ck_assert_int_eq(md_name_match("main", "mai"), MD_NAME_OTHER);
	ck_assert_int_eq(md_name_match("f.constprop.0", "f"), MD_NAME_CLONE);
	ck_assert_int_eq(md_name_match("f.constprop.0", "f.constprop.0"), MD_NAME_EXACT);
	ck_assert_int_eq(md_name_match(".hidden", ""), MD_NAME_OTHER);
}

TEST(name_of_cxx_matches_mangled_or_not)
{
	char *text = md_demangle("_ZN4shop4workEli");

	if (!text)
		MORPH_SKIP("no libstdc++ to demangle with");
	ck_assert_str_eq(text, "shop::work(long, int)");
	free(text);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEli", "_ZN4shop4workEli"), MD_NAME_EXACT);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEli", "shop::work(long, int)"), MD_NAME_EXACT);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEli", "shop::work"), MD_NAME_BASE);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEli", "shop::work(long)"), MD_NAME_OTHER);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEli", "work"), MD_NAME_OTHER);
	/* int f<int>(int): with and without the result and the template arguments. */
	ck_assert_int_eq(md_name_match("_Z1fIiEiT_", "f<int>"), MD_NAME_BASE);
	ck_assert_int_eq(md_name_match("_Z1fIiEiT_", "f"), MD_NAME_BASE);
	ck_assert_int_eq(md_name_match("_Z1fIiEiT_", "int f<int>(int)"), MD_NAME_EXACT);
	ck_assert_int_eq(md_name_match("_ZN4shop4workEl.cold", "shop::work"), MD_NAME_CLONE);
	ck_assert_int_eq(md_name_match("_ZNSaIcEC1Ev", "std::allocator<char>::allocator"),
			 MD_NAME_BASE);
	/* "i" is not a mangled name, although the demangler reads it as int. */
	ck_assert_ptr_null(md_demangle("i"));
	ck_assert_ptr_null(md_demangle("_Znonsense"));
	ck_assert_int_eq(md_name_match("_Znonsense", "nonsense"), MD_NAME_OTHER);
}
