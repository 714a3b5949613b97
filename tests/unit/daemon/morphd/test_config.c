// SPDX-License-Identifier: Apache-2.0
/*
 * test_config - morphd.conf(5): accepted settings, and the messages for refused ones; and the
 * watchdog's times.
 */
#include "tests/unit/files.h"

#include "daemon/morphd/config.h"
#include "kmod/uapi/morph_abi.h"
#include "daemon/morphd/watchdog.h"

static char path[64];

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/morph-test-config.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

static int read_bytes(const char *text, size_t size, struct md_config *out, struct mp_err *err)
{
	write_file(path, text, size);
	*err = (struct mp_err){{0}};
	return md_config_read(path, out, err);
}

static void takes(const char *text, struct md_config *out)
{
	int ret = read_bytes(text, strlen(text), out, &err);

	ck_assert_msg(!ret, "%s: %s", text, err.msg);
}

/* Expects @message after the file's name, and that no setting changes. */
static void refuses_bytes(const char *text, size_t size, const char *message)
{
	struct md_config before, out;
	char whole[512];

	memset(&before, 0x5a, sizeof(before));
	out = before;
	ck_assert_int_eq(read_bytes(text, size, &out, &err), -EINVAL);
	snprintf(whole, sizeof(whole), "%s%s", path, message);
	ck_assert_str_eq(err.msg, whole);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static void refuses(const char *text, const char *message)
{
	refuses_bytes(text, strlen(text), message);
}

FIXTURE(setup, teardown);

TEST(empty_file_gives_the_defaults)
{
	struct md_config defaults, config;
	const char *const nothing[] = {"", "\n\n", "# only\n  # this", " \t\r\n#rate = 7\r\n"};
	size_t i;

	md_config_init(&defaults);
	ck_assert_str_eq(defaults.source, "auto");
	ck_assert_uint_eq(defaults.rate_hz, 0);
	ck_assert(defaults.interval_s == 10);
	ck_assert(!defaults.no_kernel);
	ck_assert_uint_eq(defaults.registers, 0);
	ck_assert(defaults.may_take_ways);
	ck_assert_str_eq(defaults.database, "");
	for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		takes(nothing[i], &config);
		ck_assert_mem_eq(&config, &defaults, sizeof(config));
	}
}

TEST(every_key_is_taken)
{
	struct md_config c;

	takes("source = perf\nrate=101\n\tinterval =2.5\r\nno-kernel= yes\n"
	      "database = /a path/with = and #.db",
	      &c);
	ck_assert_str_eq(c.source, "perf");
	ck_assert_uint_eq(c.rate_hz, 101);
	ck_assert(c.interval_s == 2.5);
	ck_assert(c.no_kernel);
	ck_assert_str_eq(c.database, "/a path/with = and #.db");
	takes("registers = paths\n", &c);
	ck_assert_uint_eq(c.registers, MORPH_REGS_PATHS);
	ck_assert(!c.ways && !c.may_take_ways);
	takes("registers = branches\n", &c);
	ck_assert_uint_eq(c.registers, MORPH_REGS_BRANCHES);
	ck_assert(c.ways && !c.may_take_ways);
	takes("registers = no\n", &c);
	ck_assert_uint_eq(c.registers, 0);
	ck_assert(!c.ways && !c.may_take_ways && !md_config_wants_ways(&c));
	takes("registers = auto\n", &c);
	ck_assert_uint_eq(c.registers, 0);
	ck_assert(!c.ways && c.may_take_ways);
	takes("registers = auto\nstacks = yes\n", &c);
	ck_assert(!md_config_wants_ways(&c));
	takes("rate = auto\nno-kernel = no\nsource = auto\n", &c);
	ck_assert_uint_eq(c.rate_hz, 0);
	ck_assert(!c.no_kernel);
}

TEST(wrong_line_is_refused_with_its_number)
{
	refuses("rate = 5\n\ncolour = blue\n",
		":3: colour: no such key; the keys are source, rate, interval, no-kernel, database, registers and stacks");
	refuses("rate\n", ":1: a line is `key = value', or begins with #");
	refuses("= 5\n", ":1: a line is `key = value', or begins with #");
	refuses("#\nrate =\n", ":2: rate: no value");
	refuses("rate = 5\n# twice\nrate = 5", ":3: rate: already set in line 1");
	refuses("Rate = 5",
		":1: Rate: no such key; the keys are source, rate, interval, no-kernel, database, registers and stacks");
	refuses("rate = 5 # Hz\n", ":1: rate = 5 # Hz: not a whole number from 1 to 100000");
	refuses("rate = 0\n", ":1: rate = 0: not a whole number from 1 to 100000");
	refuses("rate = 2.5\n", ":1: rate = 2.5: not a whole number from 1 to 100000");
	refuses("rate = 1e99\n", ":1: rate = 1e99: not a whole number from 1 to 100000");
	refuses("rate = nan\n", ":1: rate = nan: not a whole number from 1 to 100000");
	refuses("interval = soon\n", ":1: interval = soon: not a number from 0.001 to 86400");
	refuses("interval = -1\n", ":1: interval = -1: not a number from 0.001 to 86400");
	refuses("no-kernel = true\n", ":1: no-kernel = true: neither yes nor no");
	refuses("registers = all\n", ":1: registers = all: neither paths, branches, no nor auto");
	refuses("source = replay\n",
		":1: source: only the command line can choose replay, with --input");
	refuses("database = morph.db\n", ":1: database: the path must begin with /");
	refuses_bytes("\n\nra\0te = 5\n", 12, ":3: not text");
}

TEST(overlong_names_and_files_are_refused)
{
	size_t size = 70000, len;
	AUTO_FREE char *text = malloc(size);
	struct md_config config;

	ck_assert_ptr_nonnull(text);
	memset(text, '#', size);
	refuses_bytes(text, size, ": too long for a configuration");
	len = sprintf(text, "database = ");
	memset(text + len, '/', size - len);
	ck_assert_int_eq(read_bytes(text, len + 4096, &config, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, ":1: database = ////"));
	ck_assert_ptr_nonnull(strstr(err.msg, ": the name is too long"));
	ck_assert_int_eq(read_bytes(text, len + 4095, &config, &err), 0);
	ck_assert_uint_eq(strlen(config.database), 4095);
}

TEST(unreadable_file_is_named)
{
	struct md_config config;

	ck_assert_int_eq(md_config_read("/no/such", &config, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "/no/such: No such file or directory");
	ck_assert_int_eq(md_config_read("/tmp", &config, &err), -EISDIR);
	ck_assert_str_eq(err.msg, "/tmp: Is a directory");
	/* A file without end and without lines. */
	ck_assert_int_eq(md_config_read("/dev/zero", &config, &err), -EINVAL);
}

TEST(what_is_given_wins)
{
	struct md_config file, line;

	takes("source = perf\nrate = 101\nno-kernel = yes\ndatabase = /x\n", &file);
	md_config_init(&line);
	md_config_override(&file, &line);
	ck_assert_str_eq(file.source, "perf");
	ck_assert_uint_eq(file.rate_hz, 101);
	/* A default that was given explicitly wins too. */
	ck_assert_int_eq(md_config_set(&line, MD_CONFIG_SOURCE, "auto", NULL), 0);
	ck_assert_int_eq(md_config_set(&line, MD_CONFIG_RATE, "auto", NULL), 0);
	ck_assert_int_eq(md_config_set(&line, MD_CONFIG_NO_KERNEL, "no", NULL), 0);
	ck_assert_int_eq(md_config_set(&line, MD_CONFIG_DATABASE, "y", NULL), 0);
	ck_assert_int_eq(md_config_set(&line, MD_CONFIG_REGISTERS, "paths", NULL), 0);
	md_config_override(&file, &line);
	ck_assert_uint_eq(file.registers, MORPH_REGS_PATHS);
	ck_assert_str_eq(file.source, "auto");
	ck_assert_uint_eq(file.rate_hz, 0);
	ck_assert(!file.no_kernel);
	ck_assert_str_eq(file.database, "y");
}

TEST(interval_alone_keeps_the_source)
{
	struct md_config a, b;

	takes("rate = 7\ninterval = 1\n", &a);
	takes("rate = 7\ninterval = 2\n", &b);
	ck_assert(!md_config_needs_source(&a, &b));
	takes("rate = 8\ninterval = 1\n", &b);
	ck_assert(md_config_needs_source(&a, &b));
	takes("rate = 7\nsource = perf\n", &b);
	ck_assert(md_config_needs_source(&a, &b));
	takes("rate = 7\nregisters = paths\n", &b);
	ck_assert(md_config_needs_source(&a, &b));
	takes("rate = 7\nno-kernel = yes\n", &b);
	ck_assert(md_config_needs_source(&a, &b));
}

FIXTURE(NULL, NULL);

TEST(life_is_signed_at_half_the_time)
{
	struct md_watchdog w;

	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "3000000", 1);
	md_watchdog_init(&w);
	ck_assert(md_watchdog_is_due(&w, 5000000000));
	ck_assert(!md_watchdog_is_due(&w, 5000000001));
	ck_assert(!md_watchdog_is_due(&w, 6499999999));
	ck_assert(md_watchdog_is_due(&w, 6500000000));
	/* After a long step a message is due at once, but missed ones are not made up for. */
	ck_assert(md_watchdog_is_due(&w, 60000000000));
	ck_assert(!md_watchdog_is_due(&w, 60000000001));
}

TEST(nobody_waits_for_a_sign_of_life)
{
	static const char *const wrong[] = {"", "0", "-1", "x", "1x", " 1", "99999999999999999999"};
	struct md_watchdog w;
	char text[32];
	size_t i;

	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	md_watchdog_init(&w);
	ck_assert(!md_watchdog_is_due(&w, UINT64_MAX));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("WATCHDOG_USEC", wrong[i], 1);
		md_watchdog_init(&w);
		ck_assert_msg(!md_watchdog_is_due(&w, UINT64_MAX), "\"%s\"", wrong[i]);
	}
	setenv("WATCHDOG_USEC", "3000000", 1);
	snprintf(text, sizeof(text), "%d", (int)getpid() + 1);
	setenv("WATCHDOG_PID", text, 1);
	md_watchdog_init(&w);
	ck_assert(!md_watchdog_is_due(&w, UINT64_MAX));
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("WATCHDOG_PID", text, 1);
	md_watchdog_init(&w);
	ck_assert(md_watchdog_is_due(&w, UINT64_MAX / 2));
}
