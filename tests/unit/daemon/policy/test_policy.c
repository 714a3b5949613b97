// SPDX-License-Identifier: Apache-2.0
/*
 * test_policy - morph.conf(5) and rules: accepted settings, the line of each error, files that
 * others can write, which rule a file has, and commands as words.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <sys/stat.h>

#include "daemon/policy/policy.h"
#include "daemon/policy/words.h"

static void setup(void)
{
	char path[256];

	scratch_make();
	snprintf(path, sizeof(path), "%s/watch.d", dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	err.msg[0] = 0;
}

static void put_bytes(const char *name, const char *text, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	write_file(path, text, size);
	ck_assert_int_eq(chmod(path, 0644), 0);
}

static void put_text(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static struct md_policy read_policy(void)
{
	struct md_policy policy;

	ck_assert_msg(!md_policy_read(dir, &policy, &err), "%s", err.msg);
	return policy;
}

static void refuses(int code, const char *message)
{
	struct md_policy policy;
	char want[512];

	ck_assert_int_eq(md_policy_read(dir, &policy, &err), -code);
	md_policy_fini(&policy);
	snprintf(want, sizeof(want), "%s/%s", dir, message);
	ck_assert_msg(!strncmp(err.msg, want, strlen(want)), "'%s', not '%s'", err.msg, want);
}

FIXTURE(setup, scratch_remove);

TEST(policy_without_files_advises)
{
	AUTO(md_policy_fini) struct md_policy policy = {0};
	char none[256];

	snprintf(none, sizeof(none), "%s/none", dir);
	ck_assert_int_eq(md_policy_read(none, &policy, &err), 0);
	ck_assert_int_eq(policy.mode, MD_POLICY_ADVISE);
	ck_assert_double_eq(policy.share, 0.02);
	ck_assert_uint_eq(policy.nr_rules, 0);
	ck_assert_ptr_null(md_policy_rule(&policy, "/usr/bin/perl"));
	ck_assert_int_eq(md_policy_mode_of(&policy, NULL), MD_POLICY_ADVISE);
}

TEST(policy_lets_a_program_time_itself_only_if_the_rule_says_so)
{
	struct md_policy policy;
	const struct md_rule *rule;

	put_text("watch.d/a.conf", "program = /a\nmode = adopt\n");
	put_text("watch.d/b.conf", "program = /b\nmode = adopt\ninstrument = yes\n");
	put_text("watch.d/c.conf", "program = /c\nmode = advise\ninstrument = yes\n");
	policy = read_policy();
	rule = md_policy_rule(&policy, "/a");
	ck_assert(!md_policy_may_instrument(&policy, rule));
	ck_assert(md_policy_may_instrument(&policy, md_policy_rule(&policy, "/b")));
	ck_assert(!md_policy_may_instrument(&policy, md_policy_rule(&policy, "/c")));
	ck_assert(!md_policy_may_instrument(&policy, NULL));
	md_policy_fini(&policy);
	put_text("watch.d/d.conf", "program = /d\ninstrument = yes\ntrain = /d\n");
	refuses(EINVAL, "watch.d/d.conf:3: with instrument, everyday use trains and audits");
	put_text("watch.d/d.conf", "program = /d\ncommand = /d\ninstrument = yes\n");
	refuses(EINVAL, "watch.d/d.conf:2: with instrument, everyday use trains and audits");
}

TEST(policy_counts_programs_that_nobody_trains)
{
	struct md_policy policy;

	put_text("watch.d/a.conf", "program = /a\nmode = advise\n");
	put_text("watch.d/b.conf", "program = /b\ntrain = /b\n");
	put_text("watch.d/c.conf", "program = /c\ncommand = /c\n");
	put_text("watch.d/d.conf", "program = /d\n");
	put_text("morph.conf", "mode = adopt\ncounting = yes\n");
	policy = read_policy();
	ck_assert(md_policy_may_count(&policy, NULL, "/usr/bin/perl"));
	ck_assert(md_policy_may_count(&policy, md_policy_rule(&policy, "/d"), "/d"));
	ck_assert(!md_policy_may_count(&policy, NULL, "/usr/lib/libz.so.1"));
	for (const char **p = (const char *[]){"/a", "/b", "/c", NULL}; *p; p++)
		ck_assert(!md_policy_may_count(&policy, md_policy_rule(&policy, *p), *p));
	md_policy_fini(&policy);
	put_text("morph.conf", "mode = adopt\ncounting = no\n");
	policy = read_policy();
	ck_assert(!md_policy_may_count(&policy, NULL, "/usr/bin/perl"));
	md_policy_fini(&policy);
}

/* Any program may load a library, so its versions go into running processes alone. */
TEST(policy_counts_libraries_in_running_processes)
{
	struct md_policy policy;

	put_text("watch.d/z.conf", "program = /usr/lib/libz.so.1\nlive = no\n");
	put_text("morph.conf", "mode = adopt\ncounting = yes\nlive = yes\n");
	policy = read_policy();
	ck_assert(md_policy_may_count(&policy, NULL, "/usr/lib/libruby.so.3.1"));
	ck_assert(!md_policy_may_count(&policy, md_policy_rule(&policy, "/usr/lib/libz.so.1"),
				       "/usr/lib/libz.so.1"));
	ck_assert(!md_policy_is_library("/usr/lib.so/node"));
	ck_assert(md_policy_is_library("/usr/lib/libz.so"));
	ck_assert(md_policy_is_library("/usr/lib/libx.some.so.1"));
	ck_assert(!md_policy_is_library("/usr/bin/foo.solver"));
	ck_assert(!md_policy_is_library("/run/x.socket"));
	md_policy_fini(&policy);
}

TEST(policy_a_rule_may_say_otherwise_of_running_processes)
{
	struct md_policy policy;

	put_text("watch.d/a.conf", "program = /a\nlive = yes\n");
	put_text("watch.d/b.conf", "program = /b\nlive = no\n");
	put_text("watch.d/c.conf", "program = /c\n");
	policy = read_policy();
	ck_assert(!md_policy_may_live(&policy, NULL));
	ck_assert(md_policy_may_live(&policy, md_policy_rule(&policy, "/a")));
	ck_assert(!md_policy_may_live(&policy, md_policy_rule(&policy, "/b")));
	ck_assert(!md_policy_may_live(&policy, md_policy_rule(&policy, "/c")));
	md_policy_fini(&policy);
	put_text("morph.conf", "live = yes\n");
	policy = read_policy();
	ck_assert(md_policy_may_live(&policy, NULL));
	ck_assert(!md_policy_may_live(&policy, md_policy_rule(&policy, "/b")));
	ck_assert(md_policy_may_live(&policy, md_policy_rule(&policy, "/c")));
	md_policy_fini(&policy);
	put_text("watch.d/d.conf", "program = /d\ntrain = /d\nlive = yes\n");
	refuses(EINVAL, "watch.d/d.conf:3: with live, everyday use trains and decides");
}

TEST(policy_reads_every_key)
{
	AUTO(md_policy_fini) struct md_policy policy = {0};
	const struct md_rule *rule;

	put_text("morph.conf",
		 "# comment\n\n mode = adopt\nshare= 3.5 %\nexclude = /a/*\n"
		 "exclude = /b\nonly = /c/*\ncounting = yes\nlive = yes\ncost = 2.5%\n"
		 "min-samples = 500\ndisk = 512M\naudit-time = 5m\nload = 0.75\n"
		 "battery = yes\nbusy = 50\nprobation = 2d\nretry = 90s\n"
		 "retention = 60d\nworse = 5%\nageing = 50%\n");
	put_text("watch.d/db.conf",
		 "program = /usr/lib/postgresql/*/bin/postgres\nprogram = /opt/pg\n"
		 "package = nginx  libc++1\nmode = advise\ntrain = /bin/x 'a b' \"c d\" e\\ f\n"
		 "command = /bin/server -D data\nuser = root\n"
		 "unit = nginx@a.service\naudit-time = 10\n");
	policy = read_policy();
	ck_assert_int_eq(policy.mode, MD_POLICY_ADOPT);
	ck_assert_double_eq(policy.share, 0.035);
	ck_assert_str_eq(policy.excludes[1], "/b");
	ck_assert_ptr_null(policy.excludes[2]);
	ck_assert_uint_eq(policy.min_samples, 500);
	ck_assert_str_eq(policy.only[0], "/c/*");
	ck_assert_ptr_null(policy.only[1]);
	ck_assert(policy.counting);
	ck_assert(policy.live);
	ck_assert_double_eq(policy.cost, 0.025);
	ck_assert_double_eq(md_policy_day_s(&policy), 2160 * (double)sysconf(_SC_NPROCESSORS_ONLN));
	ck_assert_uint_eq(policy.disk_bytes, 512 << 20);
	ck_assert_double_eq(policy.audit_s, 300);
	ck_assert_double_eq(policy.max_load, 0.75);
	ck_assert(policy.on_battery);
	ck_assert_double_eq(policy.busy_share, 0.5);
	ck_assert_double_eq(policy.probation_s, 2 * 86400);
	ck_assert_double_eq(policy.retry_s, 90);
	ck_assert_double_eq(policy.retention_s, 60 * 86400);
	ck_assert_double_eq(policy.worse_by, 0.05);
	ck_assert_double_eq(policy.age_by, 0.5);
	ck_assert_uint_eq(policy.nr_rules, 1);
	rule = &policy.rules[0];
	ck_assert_str_eq(rule->name, "db");
	ck_assert_str_eq(rule->programs[1], "/opt/pg");
	ck_assert_str_eq(rule->packages[1], "libc++1");
	ck_assert_int_eq(md_policy_mode_of(&policy, rule), MD_POLICY_ADVISE);
	ck_assert_str_eq(rule->train[1], "a b");
	ck_assert_str_eq(rule->train[2], "c d");
	ck_assert_str_eq(rule->train[3], "e f");
	ck_assert_ptr_null(rule->train[4]);
	ck_assert_int_eq(rule->audit, MD_AUDIT_COMMAND);
	ck_assert_str_eq(rule->command[2], "data");
	ck_assert_str_eq(rule->unit, "nginx@a.service");
	ck_assert_double_eq(rule->audit_s, 10);
	ck_assert_ptr_eq(md_policy_rule(&policy, "/usr/lib/postgresql/15/bin/postgres"), rule);
	ck_assert_ptr_null(md_policy_rule(&policy, "/usr/bin/postgres"));
}

TEST(policy_of_morph_on_wins)
{
	AUTO(md_policy_fini) struct md_policy policy = {0};

	put_text("morph.conf", "mode = advise\nshare = 5%\nexclude = /a\nbusy = 50%\n");
	put_text(MD_POLICY_ON, "mode = adopt\nshare = 1%\ncounting = yes\nexclude = /b\n");
	put_text("watch.d/a.conf", "program = /x\nmode = advise\n");
	policy = read_policy();
	ck_assert_int_eq(policy.mode, MD_POLICY_ADOPT);
	ck_assert_int_eq(md_policy_mode_of(&policy, NULL), MD_POLICY_ADOPT);
	ck_assert_int_eq(md_policy_mode_of(&policy, md_policy_rule(&policy, "/x")),
			 MD_POLICY_ADVISE);
	ck_assert_double_eq(policy.share, 0.01);
	ck_assert_double_eq(policy.busy_share, 0.5);
	ck_assert(policy.counting);
	ck_assert_str_eq(policy.excludes[0], "/a");
	ck_assert_str_eq(policy.excludes[1], "/b");
	ck_assert_ptr_null(policy.excludes[2]);
	ck_assert_ptr_null(policy.only);
}

TEST(policy_takes_rules_in_the_order_of_their_names)
{
	AUTO(md_policy_fini) struct md_policy policy = {0};

	put_text("watch.d/20.conf", "program = /usr/bin/*\nmode = adopt\n");
	put_text("watch.d/10.conf", "program = /usr/bin/perl\ntrain = /bin/true\n");
	put_text("watch.d/30.conf.dpkg-new", "nonsense");
	put_text("watch.d/.40.conf", "nonsense");
	policy = read_policy();
	ck_assert_uint_eq(policy.nr_rules, 2);
	ck_assert_str_eq(md_policy_rule(&policy, "/usr/bin/perl")->name, "10");
	ck_assert_str_eq(md_policy_rule(&policy, "/usr/bin/awk")->name, "20");
	ck_assert_int_eq(policy.rules[0].audit, MD_AUDIT_COMMAND);
	ck_assert_int_eq(policy.rules[1].audit, MD_AUDIT_NONE);
	ck_assert_int_eq(md_policy_mode_of(&policy, &policy.rules[0]), MD_POLICY_ADVISE);
	ck_assert_int_eq(md_policy_mode_of(&policy, &policy.rules[1]), MD_POLICY_ADOPT);
}

TEST(policy_finds_the_files_of_packages)
{
	AUTO(md_policy_fini) struct md_policy policy = {0};
	char info[256];

	put_text("watch.d/x.conf", "package = tcl perl-base\n");
	if (access("/usr/bin/dpkg-query", X_OK))
		MORPH_SKIP("there is no dpkg-query");
	put_text("status",
		 "Package: tcl\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n"
		 "Multi-Arch: same\nMaintainer: x <x>\nDescription: x\n\n"
		 "Package: perl-base\nStatus: install ok installed\nVersion: 1\n"
		 "Architecture: amd64\nMaintainer: x <x>\nDescription: x\n");
	snprintf(info, sizeof(info), "%s/info", dir);
	ck_assert_int_eq(mkdir(info, 0755), 0);
	put_text("info/format", "1\n");
	put_text("info/tcl:amd64.list", "/.\n/usr/lib/libtcl.so\n");
	put_text("info/perl-base.list", "/bin/perl\n/usr/share/doc/a b\n");
	policy = read_policy();
	policy.dpkg_admin = strdup(dir);
	ck_assert_ptr_nonnull(md_policy_rule(&policy, "/usr/lib/libtcl.so"));
	ck_assert_ptr_nonnull(md_policy_rule(&policy, "/usr/bin/perl"));
	ck_assert_ptr_nonnull(md_policy_rule(&policy, "/usr/share/doc/a b"));
	ck_assert_ptr_null(md_policy_rule(&policy, "/usr/lib/libtcl"));
	ck_assert_ptr_null(md_policy_rule(&policy, "/usr"));
}

static const struct {
	const char *name, *text, *message;
} errors[] = {
	{"morph.conf", "mode\n", "morph.conf:1: a line is `key = value'"},
	{"morph.conf", "\n\nmode = perhaps\n",
	 "morph.conf:3: mode = perhaps: neither advise nor adopt"},
	{"morph.conf", "program = /x\n",
	 "morph.conf:1: program: no such key; the keys are mode, share,"},
	{"morph.conf", "cpu-time = 1h\n",
	 "morph.conf:1: cpu-time: no such key; the keys are mode, share, only, exclude, counting, live, cost, "
	 "min-samples, disk, audit-time, load, battery, busy, probation, retry, retention, "
	 "ageing, worse; cost limits what all work takes, morph-audit measures what a rule cannot describe, "
	 "/usr/bin/env --chdir=DIR runs a command in a directory (before: directory = DIR), and core "
	 "files are looked for where systemd keeps them (before: coredumps = DIR)"},
	{"on.conf", "mode = no\n", "on.conf:1: mode = no: neither advise nor adopt"},
	{"on.conf", "only = perl\n", "on.conf:1: only = perl: a pattern of paths must"},
	{"morph.conf", "cost = 101\n", "morph.conf:1: cost = 101: not a number from 0 to 100"},
	{"morph.conf", "share = 101\n", "morph.conf:1: share = 101: not a number from 0 to 100"},
	{"morph.conf", "share = x\n", "morph.conf:1: share = x: not a number"},
	{"morph.conf", "share = %\n", "morph.conf:1: share = %: not a number"},
	{"morph.conf", "share = nan\n", "morph.conf:1: share = nan: not a number"},
	{"morph.conf", "share = 1\nshare = 2\n", "morph.conf:2: share: already set in line 1"},
	{"morph.conf", "share =\n", "morph.conf:1: share: no value"},
	{"morph.conf", "min-samples = 1.5\n",
	 "morph.conf:1: min-samples = 1.5: not a whole number"},
	{"morph.conf", "disk = 99999999G\n", "morph.conf:1: disk = 99999999G: not a number"},
	{"morph.conf", "disk = -1\n", "morph.conf:1: disk = -1: not a number"},
	{"morph.conf", "retry = 1w\n", "morph.conf:1: retry = 1w: not a number"},
	{"morph.conf", "exclude = usr\n", "morph.conf:1: exclude = usr: a pattern of paths must"},
	{"morph.conf", "coredumps = /cores\n",
	 "morph.conf:1: coredumps: no such key; the keys are"},
	{"morph.conf", "battery = 1\n", "morph.conf:1: battery = 1: neither yes nor no"},
	{"watch.d/a.conf", "", "watch.d/a.conf:1: neither program nor package"},
	{"watch.d/a.conf", "mode = adopt\n", "watch.d/a.conf:1: neither program nor package"},
	{"watch.d/a.conf", "program = perl\n", "watch.d/a.conf:1: program = perl: a pattern"},
	{"watch.d/a.conf", "package = ../x\n", "watch.d/a.conf:1: package = ../x: not the name"},
	{"watch.d/a.conf", "package = ..\n", "watch.d/a.conf:1: package = ..: not the name"},
	{"watch.d/a.conf", "program = /x\n\ntrain = perl\n",
	 "watch.d/a.conf:3: train = perl: the program"},
	{"watch.d/a.conf", "program = /x\ntrain = /x 'a\n",
	 "watch.d/a.conf:2: train = /x 'a: a ' without"},
	{"watch.d/a.conf", "program = /x\ntrain = /x \\\n",
	 "watch.d/a.conf:2: train = /x \\: a backslash"},
	{"watch.d/a.conf", "program = /x\nclient = x\n",
	 "watch.d/a.conf:2: client: no such key; the keys are program, package, mode,"},
	{"watch.d/a.conf", "program = /x\nuser = no-such-user\n",
	 "watch.d/a.conf:2: user = no-such-user: there"},
	{"watch.d/a.conf", "program = /x\nunit = a.timer\n",
	 "watch.d/a.conf:2: unit = a.timer: not the name"},
	{"watch.d/a.conf", "program = /x\nunit = -a.service\n",
	 "watch.d/a.conf:2: unit = -a.service: not"},
};

TEST_EACH(policy_names_file_and_line_of_an_error, sizeof(errors) / sizeof(errors[0]))
{
	put_text(errors[_i].name, errors[_i].text);
	refuses(EINVAL, errors[_i].message);
}

TEST(policy_refuses_files_that_are_no_text)
{
	static char large[70000];

	put_bytes("morph.conf", "mode = adopt\nx\0y\n", 17);
	refuses(EINVAL, "morph.conf:2: not text");
	memset(large, '#', sizeof(large));
	put_bytes("morph.conf", large, sizeof(large));
	refuses(EINVAL, "morph.conf: too long");
}

TEST(policy_refuses_files_that_others_can_write)
{
	char path[256];

	put_text("watch.d/a.conf", "program = /x\n");
	snprintf(path, sizeof(path), "%s/watch.d/a.conf", dir);
	ck_assert_int_eq(chmod(path, 0666), 0);
	refuses(EPERM, "watch.d/a.conf: other users can write it");
	ck_assert_int_eq(chmod(path, 0664), 0);
	refuses(EPERM, "watch.d/a.conf: other users can write it");
	ck_assert_int_eq(chmod(path, 0644), 0);
	snprintf(path, sizeof(path), "%s/watch.d", dir);
	ck_assert_int_eq(chmod(path, 0777), 0);
	refuses(EPERM, "watch.d: other users can write it");
	ck_assert_int_eq(chmod(path, 0755), 0);
	if (!geteuid()) {
		snprintf(path, sizeof(path), "%s/watch.d/a.conf", dir);
		ck_assert_int_eq(chown(path, 1234, 0), 0);
		refuses(EPERM, "watch.d/a.conf: belongs to another user");
	}
}

TEST(policy_has_changed_with_any_of_its_files)
{
	static const char *const names[] = {"morph.conf", "on.conf", "watch.d/a.conf"};
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO(md_policy_fini) struct md_policy none = read_policy();
		AUTO(md_policy_fini) struct md_policy one = {0}, other = {0};

		ck_assert(!md_policy_has_changed(&none));
		put_text(names[i], i < 2 ? "" : "program = /x\n");
		ck_assert(md_policy_has_changed(&none));
		one = read_policy();
		ck_assert(!md_policy_has_changed(&one));
		put_text(names[i], i < 2 ? "mode = adopt\n" : "program = /x/y\n");
		ck_assert(md_policy_has_changed(&one));
		other = read_policy();
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		ck_assert(!unlink(path));
		ck_assert(md_policy_has_changed(&other));
	}
}

TEST(policy_does_not_wait_at_a_fifo_or_read_a_directory)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/watch.d/a.conf", dir);
	ck_assert_int_eq(mkfifo(path, 0644), 0);
	refuses(EINVAL, "watch.d/a.conf: not a regular file");
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	refuses(EINVAL, "watch.d/a.conf: not a regular file");
}
