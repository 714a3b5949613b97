// SPDX-License-Identifier: Apache-2.0
/* test_select - which functions a list of words selects. */
#include "tests/unit/suite.h"

#include "editor/evidence/select.h"
#include "tests/unit/edit_fixture.h"

static const char source[] =
	"int alpha(int x) { return x * 3; }\n"
	"int beta(int x) { return x * 5; }\n"
	"int alias(int x) __attribute__((alias(\"beta\")));\n"
	"int main(int argc, char **argv) { (void)argv; return alpha(argc); }\n";

static struct fixture f;

/* Return: which of alpha, beta and main the words select, as a string such as "ab-". */
static const char *chosen_by(const char *text, int want)
{
	static const char *const names[] = {"alpha", "beta", "main"};
	static char out[4];
	AUTO(me_words_fini) struct me_words words = {0};
	AUTO_FREE unsigned char *chosen = NULL;

	chosen = calloc(f.cfg->nr_funcs + 1, 1);
	ck_assert_int_eq(me_words_add(&words, text, &err), 0);
	ck_assert_int_eq(me_select_functions(f.cfg, &words, chosen, &err), want);
	for (int i = 0; i < 3; i++)
		out[i] = chosen[fixture_func(&f, names[i])] ? names[i][0] : '-';
	return out;
}

TEST(select_knows_names_patterns_and_addresses)
{
	char text[64];

	fixture_compile(&f, "c", "-O2", source);
	fixture_read(&f);
	ck_assert_str_eq(chosen_by("alpha", 0), "a--");
	ck_assert_str_eq(chosen_by("alpha,main", 0), "a-m");
	ck_assert_str_eq(chosen_by(",,beta,", 0), "-b-");
	ck_assert_str_eq(chosen_by("al*", 0), "ab-"); /* alias is another name of beta */
	ck_assert_str_eq(chosen_by("[bm]*", 0), "-bm");
	ck_assert_str_eq(chosen_by("?eta", 0), "-b-");
	ck_assert_str_eq(chosen_by("", 0), "---");
	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)f.cfg->funcs[fixture_func(&f, "beta")].vaddr + 1);
	ck_assert_str_eq(chosen_by(text, 0), "-b-");
	chosen_by("gamma", -ENOENT);
	chosen_by("0x1", -ENOENT);
	chosen_by("0xbeta", -ENOENT);
}

TEST(select_names_functions_without_symbols_by_a_pattern_for_all)
{
	static const char *const patterns[] = {"*", "**", "?*", "[!a]*"};
	AUTO_FREE unsigned char *chosen = NULL;

	fixture_compile(&f, "c", "-O2 -s", source);
	fixture_read(&f);
	chosen = calloc(f.cfg->nr_funcs + 1, 1);
	for (size_t i = 0; i < 4; i++) {
		uint32_t nr = 0, nr_nameless = 0;

		memset(chosen, 0, f.cfg->nr_funcs);
		me_select_word(f.cfg, patterns[i], chosen);
		for (uint32_t k = 0; k < f.cfg->nr_funcs; k++) {
			nr += chosen[k] && !*f.cfg->funcs[k].name;
			nr_nameless += !*f.cfg->funcs[k].name;
		}
		ck_assert_uint_gt(nr_nameless, 2);
		ck_assert_uint_eq(nr, i < 2 ? nr_nameless : 0);
	}
}

TEST(select_reads_words_from_a_file)
{
	AUTO(me_words_fini) struct me_words words = {0};
	char text[300];
	FILE *out;

	fixture_compile(&f, "c", "-O2", source);
	fixture_read(&f);
	snprintf(text, sizeof(text), "@%s.list", f.path);
	ck_assert_int_eq(me_words_add(&words, text, &err), -ENOENT);
	out = fopen(text + 1, "w");
	fputs("# alpha\n\n  beta \t\nnot_in_this_build\nmain", out);
	fclose(out);
	ck_assert_str_eq(chosen_by(text, 0), "-bm");
	unlink(text + 1);
}
