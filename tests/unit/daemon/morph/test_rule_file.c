// SPDX-License-Identifier: Apache-2.0
/* test_rule_file - what is written as a rule is read back as the same, and a person's rule stays. */
#include <sys/stat.h>

#include "daemon/morph/rule_file.h"
#include "daemon/policy/policy.h"
#include "tests/unit/scratch.h"

FIXTURE(scratch_make, scratch_remove);

TEST(rule_is_read_back_as_it_was_written)
{
	const char *programs[] = {"/usr/bin/perl", "/opt/db/bin/*", "package:gzip"};
	char *command[] = {"/usr/bin/perl", "-e", "print \"it's\\n\"", "", "#x", NULL};
	struct md_rule_text rule = {.programs = programs,
				    .nr_programs = 3,
				    .mode = "adopt",
				    .command = command,
				    .nr_command = 5};
	struct md_policy policy;
	char file[8192];

	ck_assert_msg(!md_rule_file_write(dir, "mine", &rule, file, sizeof(file), &err), "%s",
		      err.msg);
	ck_assert_msg(!md_policy_read(dir, &policy, &err), "%s", err.msg);
	ck_assert_uint_eq(policy.nr_rules, 1);
	ck_assert_str_eq(policy.rules[0].programs[0], programs[0]);
	ck_assert_str_eq(policy.rules[0].programs[1], programs[1]);
	ck_assert_str_eq(policy.rules[0].packages[0], "gzip");
	ck_assert_int_eq(policy.rules[0].mode, MD_POLICY_ADOPT);
	ck_assert_int_eq(policy.rules[0].audit, MD_AUDIT_COMMAND);
	for (int i = 0; i < 5; i++) {
		ck_assert_str_eq(policy.rules[0].command[i], command[i]);
		ck_assert_str_eq(policy.rules[0].train[i], command[i]);
	}
	md_policy_fini(&policy);
	/* Written again: replaced. */
	rule.mode = "advise";
	ck_assert_int_eq(md_rule_file_write(dir, "mine", &rule, file, sizeof(file), &err), 0);
	md_rule_file_settle(file, true);
	/* Taken back: the rule of before is there, and nothing is beside it. */
	rule.mode = "adopt";
	ck_assert_int_eq(md_rule_file_write(dir, "mine", &rule, file, sizeof(file), &err), 0);
	md_rule_file_settle(file, false);
	ck_assert_msg(!md_policy_read(dir, &policy, &err), "%s", err.msg);
	ck_assert_int_eq(policy.rules[0].mode, MD_POLICY_ADVISE);
	md_policy_fini(&policy);
	ck_assert_int_eq(md_rule_file_remove(file, &err), 0);
	ck_assert_int_eq(md_rule_file_remove(file, &err), -ENOENT);
	/* No rule of this name existed before. */
	ck_assert_int_eq(md_rule_file_write(dir, "mine", &rule, file, sizeof(file), &err), 0);
	md_rule_file_settle(file, false);
	*strrchr(file, '/') = '\0';
	ck_assert_int_eq(rmdir(file), 0);
}

TEST(rule_of_a_person_stays)
{
	const char *programs[] = {"/usr/bin/perl"};
	struct md_rule_text rule = {.programs = programs, .nr_programs = 1};
	char file[8192];
	FILE *out;

	ck_assert_int_eq(md_rule_file_write(dir, "other", &rule, file, sizeof(file), &err), 0);
	snprintf(file, sizeof(file), "%s/watch.d/hers.conf", dir);
	out = fopen(file, "w");
	fputs("program = /usr/bin/perl\n", out);
	fclose(out);
	ck_assert_int_eq(md_rule_file_write(dir, "hers", &rule, file, sizeof(file), &err), -EEXIST);
	ck_assert_int_eq(md_rule_file_remove(file, &err), -EPERM);
}

TEST(rule_with_a_line_break_is_refused)
{
	const char *programs[] = {"/tmp/a\nmode = adopt"};
	struct md_rule_text rule = {.programs = programs, .nr_programs = 1};
	char file[8192];

	ck_assert_int_eq(md_rule_file_write(dir, "x", &rule, file, sizeof(file), &err), -EINVAL);
}

TEST(rule_of_a_new_user_makes_the_folder_of_settings)
{
	const char *programs[] = {"/usr/bin/perl"};
	struct md_rule_text rule = {.programs = programs, .nr_programs = 1};
	char config[8192], file[8192];

	snprintf(config, sizeof(config), "%s/.config/morph", dir);
	ck_assert_msg(!md_rule_file_write(config, "mine", &rule, file, sizeof(file), &err), "%s",
		      err.msg);
	ck_assert_int_eq(access(file, R_OK), 0);
}

TEST(rule_gets_a_name_that_is_a_file_name)
{
	char name[128];

	md_rule_name_of("/usr/bin/perl", name, sizeof(name));
	ck_assert_str_eq(name, "perl");
	md_rule_name_of("package:libc6", name, sizeof(name));
	ck_assert_str_eq(name, "libc6");
	md_rule_name_of("/opt/db/bin/*", name, sizeof(name));
	ck_assert_str_eq(name, "opt-db-bin");
	md_rule_name_of("/x/..a b\xff/", name, sizeof(name));
	ck_assert(md_rule_name_is_valid(name));
	ck_assert(!md_rule_name_is_valid("../x"));
	ck_assert(!md_rule_name_is_valid(".hidden"));
	ck_assert(!md_rule_name_is_valid(""));
}
