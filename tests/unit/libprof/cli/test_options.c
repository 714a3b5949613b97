// SPDX-License-Identifier: Apache-2.0
/* test_options - values of each kind, what ends with a usage error, and which command runs. */
#include "tests/unit/suite.h"

#include <string.h>

#include "libprof/cli/commands.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/options.h"

#define MP_OPTIONS struct values

struct values {
	void *unused; /* no variable of a table lies at 0 */
	bool flag;
	const char *text, *file;
	double number;
	uint64_t count;
	long limit;
	int64_t since_s;
	int word;
	const char *set;
	struct mp_words words;
};

static const char *const words[] = {"", "red", "green", "blue", NULL};

static void set(const struct mp_option *option, void *options, char *arg, struct argp_state *state)
{
	(void)option, (void)state;
	((struct values *)options)->set = arg ? arg : "nothing";
}

static const struct mp_option table[] = {MP_FLAG("flag", flag, "A flag"),
					 MP_VALUE(TEXT, "text", 't', text, "TEXT", "A text"),
					 MP_NUMBER("number", 0, number, 1, 10, "N", "From 1 to 10"),
					 MP_VALUE(COUNT, "count", 0, count, "N", NULL),
					 MP_VALUE(LIMIT, "limit", 'n', limit, "N", "A limit"),
					 MP_VALUE(TIME, "since", 0, since_s, "WHEN", "A time"),
					 MP_WORD("word", word, words, "WORD", "red, green or blue"),
					 {"set", 0, "X", "Set", MP_OPTION_SET, .set = set,
					  .optional = true},
					 MP_OPTIONS_END};

static const struct mp_usage one = {
	.options = table, .argument = MP_AT(file), .lacking = "no file given", .doc = "A test."};
static const struct mp_usage two = {
	.options = table, .words = MP_AT(words), .least = 1, .most = 2, .lacking = "too few"};

static void reads(const struct mp_usage *usage, struct values *values, const char *line)
{
	static char text[256], *argv[16];
	char *rest = text;
	int argc = 1;

	memset(argv, 0, sizeof(argv));
	argv[0] = (char *)"program";
	snprintf(text, sizeof(text), "%s", line);
	for (char *word; (word = strsep(&rest, " ")); argc++)
		argv[argc] = word;
	*values = (struct values){0};
	mp_options_read(usage, argc, argv, values, NULL);
}

TEST(each_kind_of_value_goes_to_its_variable)
{
	struct values v;

	reads(&one, &v,
	      "--flag -t x --number=2.5 --count=7 -n 3 --since=1970-01-02 --word=green --set a");
	ck_assert(v.flag && v.number == 2.5 && v.count == 7 && v.limit == 3 && v.word == 2);
	ck_assert_str_eq(v.text, "x");
	ck_assert_str_eq(v.file, "a");
	ck_assert_str_eq(v.set, "nothing");
	ck_assert(v.since_s > 0 && v.since_s < 3 * 86400);
	reads(&two, &v, "--set=y a b");
	ck_assert_int_eq(v.words.nr, 2);
	ck_assert_str_eq(v.words.list[1], "b");
	ck_assert_str_eq(v.set, "y");
}
END_TEST

static const char *const wrong[] = {
	"--number=11 a", "--number=x a", "--count=-1 a",  "--count= a", "--limit=0 a",
	"--limit=x a",	 "--since=x a",	 "--word=red, a", "--word= a",	"--none a",
	"--flag=1 a",	 "a b",		 "--flag",	  "--text",
};

EXITS(MP_EXIT_USAGE);

TEST_EACH(a_mistake_is_a_usage_error, sizeof(wrong) / sizeof(wrong[0]))
{
	struct values v;

	reads(&one, &v, wrong[_i]);
}
END_TEST

TEST(too_many_words_are_a_usage_error)
{
	struct values v;

	reads(&two, &v, "a b c");
}
END_TEST

static const struct row {
	struct mp_command command;
	int number;
} rows[] = {{{"first", "does this"}, 1}, {{"second", "does that"}, 2}};

EXITS(0);

TEST(a_command_gets_the_words_behind_it)
{
	static const struct mp_commands commands = {.program = "program", MP_COMMANDS(rows)};
	static const struct argp argp = {.args_doc = "COMMAND"};
	char *words_of[] = {(char *)"program", (char *)"second", (char *)"--option", (char *)"x",
			    NULL};
	char **argv = words_of;
	const struct row *row;
	int argc = 4;

	row = (const struct row *)mp_commands_parse(&commands, &argp, &argc, &argv, NULL);
	ck_assert_int_eq(row->number, 2);
	ck_assert_int_eq(argc, 3);
	ck_assert_str_eq(argv[0], "program second");
	ck_assert_str_eq(argv[1], "--option");
	ck_assert_ptr_null(mp_commands_find(&commands, "third"));
}
END_TEST

EXITS(MP_EXIT_USAGE);

TEST(an_unknown_command_is_a_usage_error)
{
	static const struct mp_commands commands = {.program = "program", MP_COMMANDS(rows)};
	static const struct argp argp = {.args_doc = "COMMAND"};
	char *words_of[] = {(char *)"program", (char *)"third", NULL};
	char **argv = words_of;
	int argc = 2;

	mp_commands_parse(&commands, &argp, &argc, &argv, NULL);
}
END_TEST
