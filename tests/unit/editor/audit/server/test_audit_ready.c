// SPDX-License-Identifier: Apache-2.0
/* test_audit_ready - the forms of --ready, and one question. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/server/audit_ready.h"
#include "libprof/base/clock.h"
#include "tests/unit/suite.h"

TEST(ready_forms_are_checked)
{
	static const char *const good[] = {"tcp:80",	  "tcp:localhost:65535",
					   "tcp:[::1]:1", "unix:/x",
					   "true",	  "curl http://x",
					   "tcpdump"};
	static const char *const bad[] = {"tcp:",    "tcp:0",  "tcp:65536", "tcp:x",
					  "tcp::80", "tcp:h:", "tcp:h:80x", "unix:"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(!me_ready_check(good[i], &err), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(me_ready_check(bad[i], &err) == -EINVAL, "%s", bad[i]);
}

static int ask(const char *ready, uint64_t deadline_ns)
{
	char *envp[] = {NULL};
	sigset_t none;

	sigemptyset(&none);
	return me_ready_now(ready, deadline_ns, envp, &none, &err);
}

TEST(ready_asks_commands_and_sockets)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char ready[128];

	ck_assert_int_eq(ask("true", 0), 1);
	ck_assert_int_eq(ask("false", 0), 0);
	/* A command that hangs is not ready, and is killed. */
	ck_assert_int_eq(ask("sleep 1000", mp_now_ns() + ME_NS_PER_SEC / 10), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/audit-ready.%d", getpid());
	snprintf(ready, sizeof(ready), "unix:%s", address.sun_path);
	ck_assert_int_eq(ask(ready, 0), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(ask(ready, 0), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(ask(ready, 0), 1);
	close(fd);
	unlink(address.sun_path);
}
