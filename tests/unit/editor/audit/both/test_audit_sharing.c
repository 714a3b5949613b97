// SPDX-License-Identifier: Apache-2.0
/*
 * test_audit_sharing - which commands may run twice at the same time? Each test watches a real
 * command. A command that changes a file must never pass.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit/both/audit_sharing.h"
#include "editor/audit/run/audit_child.h"
#include "libprof/base/clock.h"
#define SUITE_OWN_MAIN
#include "tests/unit/suite.h"

static char scratch[] = "/tmp/sharing-test.XXXXXX";
static sigset_t no_signals;

static void setup(void)
{
	sigemptyset(&no_signals);
	strcpy(scratch, "/tmp/sharing-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(scratch));
	ck_assert_int_eq(chdir(scratch), 0);
}

static void teardown(void)
{
	char command[sizeof(scratch) + 16];

	ck_assert_int_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	ck_assert_int_eq(system(command), 0);
}

static const char *watch_for(const char *path, char *const *argv, uint64_t timeout_ns)
{
	static char *envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	static char why[256];
	struct me_run_spec spec = {.path = path,
				   .argv = argv,
				   .envp = envp,
				   .cpu = -1,
				   .timeout_ns = timeout_ns,
				   .mask = &no_signals};
	struct mp_err err = {""};

	ck_assert_msg(!me_sharing_watch(&spec, why, sizeof(why), &err), "%s", err.msg);
	return why;
}

static const char *watch(const char *script)
{
	char *argv[] = {"bash", "-c", (char *)script, NULL};

	return watch_for("/bin/bash", argv, 0);
}

/* The reason that names the file @name in the current directory. */
static const char *changes(const char *name)
{
	static char why[512];
	char here[256];

	ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
	snprintf(why, sizeof(why), "it changes the file %s/%s", here, name);
	return why;
}

static void prepare(const char *script)
{
	ck_assert_int_eq(system(script), 0);
}

FIXTURE(setup, teardown);

TEST(a_pipeline_that_only_prints_may_run_twice)
{
	ck_assert_str_eq(watch("ls / | sort | tail -n 3; echo done >&2; (exit 3)"), "");
	ck_assert_str_eq(watch("echo x >/dev/null; cat </etc/passwd; exec sort /etc/group"), "");
}

TEST(a_file_that_is_written_is_named)
{
	ck_assert_str_eq(watch("echo a >made"), changes("made"));
	ck_assert_str_eq(watch("echo a >>made"), changes("made"));
	ck_assert_str_eq(watch("(echo first; cd /tmp; echo a >/tmp/sharing-file) | cat"),
			 "it changes the file /tmp/sharing-file");
	unlink("/tmp/sharing-file");
	ck_assert_str_eq(watch("truncate -s 5 made"), changes("made"));
}

TEST(changed_names_are_changes)
{
	static const char *const scripts[] = {"rm old",	     "mv old new",    "ln old new",
					      "ln -s a new", "chmod 600 old", "rmdir there",
					      "mkfifo new"};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		const char *why;

		prepare("rm -rf old new there; mkdir there; echo x >old");
		why = watch(scripts[i]);
		ck_assert_msg(!strncmp(why, "it changes the file ", 20), "%s: '%s'", scripts[i],
			      why);
	}
}

TEST(files_of_the_run_itself_are_no_changes)
{
	ck_assert_str_eq(watch("t=$(mktemp) && echo a >$t && chmod 644 $t && rm $t"), "");
	ck_assert_str_eq(watch("d=$(mktemp -d) && echo a >$d/a && mv $d/a $d/b && rm -r $d"), "");
	/* Debian's sort writes temporary files when the input exceeds its buffer. */
	ck_assert_str_eq(watch("seq 100000 | sort --parallel=1 -S 64K"), "");
}

TEST(calls_that_fail_without_the_file_change_nothing)
{
	ck_assert_str_eq(watch("rm -f none; rmdir none 2>/dev/null; chmod 600 none 2>/dev/null; "
			       "perl -e 'unlink \"none\"; rename \"none\", \"new\"'"),
			 "");
}

TEST(a_directory_that_was_there_is_not_the_runs_own)
{
	prepare("mkdir there");
	ck_assert_str_eq(watch("mkdir there 2>/dev/null; echo a >there/file"),
			 changes("there/file"));
	ck_assert_str_eq(watch("set -C; echo a >x; echo b 2>/dev/null >x; mv x y"), changes("y"));
	prepare("echo a >lock");
	/* noclobber opens with O_EXCL, which fails here. */
	ck_assert_str_eq(watch("set -C; (echo $$ >lock) 2>/dev/null; rm -f lock"), changes("lock"));
}

TEST(sockets_are_named)
{
	ck_assert_str_eq(watch("echo a >/dev/tcp/127.0.0.1/9"), "it talks to a server");
}

TEST(a_run_that_does_not_end_cannot_be_watched)
{
	char *argv[] = {"sleep", "1000", NULL};

	ck_assert_str_eq(watch_for("/bin/sleep", argv, ME_NS_PER_SEC / 5),
			 "its system calls cannot be watched");
}

TEST(a_process_left_behind_is_killed)
{
	uint64_t start = mp_now_ns();

	ck_assert_str_eq(watch("sleep 1000 & echo done"), "");
	ck_assert_uint_lt(mp_now_ns() - start, 100 * ME_NS_PER_SEC);
}

TEST(signals_reach_the_run)
{
	/* The file is written only if the handler runs. */
	ck_assert_str_eq(watch("trap 'echo a >handled' USR1; kill -USR1 $$"), changes("handled"));
	ck_assert_str_eq(watch("kill -SEGV $$"), "");
	ck_assert_str_eq(watch("sh -c 'kill -STOP $$; echo on' & sleep 0.2; kill -CONT $!; wait"),
			 "");
}

TEST(a_program_that_is_missing_cannot_be_watched)
{
	char *argv[] = {"none", NULL};

	ck_assert_str_eq(watch_for("/none", argv, 0), "its system calls cannot be watched");
}

TEST(threads_are_named)
{
	char *argv[] = {"test_audit_sharing", "--thread", NULL};

	ck_assert_str_eq(watch_for("/proc/self/exe", argv, 0), "it has several threads");
}

static void *idle(void *arg)
{
	return arg;
}

/* With an argument, this is the command with a thread. */
int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (argc > 1)
		return pthread_create(&thread, NULL, idle, NULL) || pthread_join(thread, NULL);
	return morph_suite_run();
}
