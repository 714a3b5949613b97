// SPDX-License-Identifier: Apache-2.0
/* taskstats - talks generic netlink; see taskstats.h. */
#include "daemon/everyday/taskstats.h"
#include "libprof/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/acct.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define POSSIBLE      "/sys/devices/system/cpu/possible"
#define SYSTEMD_FD    3	 /* the first descriptor that systemd gives to a service */
#define FIRST_VERSION 12 /* of struct taskstats, that names the executed file */
/* One message takes some 2 KiB of it. Used only as far as messages wait. */
#define RECEIVE_BYTES (32 << 20)

/* Room for one message: two structures of a version that is not known yet. */
struct message {
	_Alignas(struct nlmsghdr) char bytes[8192];
	size_t size;
};

/* The attribute @type in @size bytes at @from. Return: its content and its size in @content, or NULL. */
static const void *find(const void *from, size_t size, int type, size_t *content)
{
	const char *at = from;
	struct nlattr attr;

	while (size >= NLA_HDRLEN) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.nla_len < NLA_HDRLEN || attr.nla_len > size)
			return NULL;
		if ((attr.nla_type & NLA_TYPE_MASK) == type) {
			*content = attr.nla_len - NLA_HDRLEN;
			return at + NLA_HDRLEN;
		}
		if ((size_t)NLA_ALIGN(attr.nla_len) >= size)
			return NULL;
		at += NLA_ALIGN(attr.nla_len);
		size -= NLA_ALIGN(attr.nla_len);
	}
	return NULL;
}

static int ask(struct md_taskstats *ts, int family, int command, int type, const void *data,
	       size_t size)
{
	struct {
		struct nlmsghdr head;
		struct genlmsghdr command;
		struct nlattr attr;
		char data[512];
	} request = {.head = {.nlmsg_type = (uint16_t)family,
			      .nlmsg_flags = NLM_F_REQUEST,
			      .nlmsg_seq = ++ts->seq},
		     .command = {.cmd = (uint8_t)command, .version = TASKSTATS_GENL_VERSION},
		     .attr = {.nla_type = (uint16_t)type,
			      .nla_len = (uint16_t)(NLA_HDRLEN + size)}};

	if (size > sizeof(request.data))
		return -E2BIG;
	memcpy(request.data, data, size);
	request.head.nlmsg_len =
		NLMSG_LENGTH(GENL_HDRLEN) + (uint32_t)NLA_ALIGN(request.attr.nla_len);
	return send(ts->requests, &request, request.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Return: 0; 1: no message waits; -errno. */
static int receive(int fd, int flags, struct message *out)
{
	ssize_t n;

	do
		n = recv(fd, out->bytes, sizeof(out->bytes), flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 1 : -errno;
	out->size = (size_t)n;
	return 0;
}

/* The attributes of the only message in @message. Return: 0 or the kernel's -errno. */
static int attributes(const struct message *message, const void **out, size_t *size)
{
	const struct nlmsghdr *head = (const void *)message->bytes;
	struct nlmsgerr error;

	if (message->size < NLMSG_LENGTH(GENL_HDRLEN) || head->nlmsg_len > message->size ||
	    head->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return -EPROTO;
	if (head->nlmsg_type == NLMSG_ERROR) {
		if (head->nlmsg_len < NLMSG_LENGTH(sizeof(error)))
			return -EPROTO;
		memcpy(&error, NLMSG_DATA(head), sizeof(error));
		return error.error ? error.error : -EPROTO;
	}
	*out = (const char *)NLMSG_DATA(head) + GENL_HDRLEN;
	*size = head->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
	return 0;
}

/* Waits for the answer to the last question. */
static int answer(struct md_taskstats *ts, struct message *message, const void **out, size_t *size)
{
	int ret;

	do
		ret = receive(ts->requests, 0, message);
	while (!ret && message->size >= sizeof(struct nlmsghdr) &&
	       ((const struct nlmsghdr *)(const void *)message->bytes)->nlmsg_seq != ts->seq);
	return ret ? ret : attributes(message, out, size);
}

static int find_family(struct md_taskstats *ts)
{
	struct message message;
	const void *list, *id;
	size_t size, length;
	int ret = ask(ts, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
		      TASKSTATS_GENL_NAME, sizeof(TASKSTATS_GENL_NAME));

	if (!ret)
		ret = answer(ts, &message, &list, &size);
	if (ret)
		return ret;
	id = find(list, size, CTRL_ATTR_FAMILY_ID, &length);
	if (!id || length != sizeof(ts->family))
		return -EPROTO;
	memcpy(&ts->family, id, sizeof(ts->family));
	return 0;
}

static void read_stats(const struct taskstats *stats, struct md_task *out)
{
	uint64_t dev = stats->ac_exe_dev;

	*out = (struct md_task){
		.tid = (pid_t)stats->ac_pid,
		.tgid = (pid_t)stats->ac_tgid,
		/* How the kernel writes a device into 32 bits. */
		.dev = makedev((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)),
		.ino = stats->ac_exe_inode,
		.user_ns = stats->ac_utime * 1000,
		.system_ns = stats->ac_stime * 1000,
		.cpu_ns = stats->cpu_run_virtual_total,
		.is_last = stats->ac_flag & AGROUP,
		.signal = (int)(stats->ac_exitcode & 0x7f),
	};
}

/*
 * What a thread that ends ran since the scheduler last took account, at a tick or a switch. It is at most a tick, and at
 * most what its life has left after all it ran and waited for a CPU; that much if it never slept. Else half of a stretch
 * of usual length.
 */
static uint64_t last_stretch(const struct taskstats *stats, uint64_t tick_ns)
{
	uint64_t life = stats->ac_etime * 1000, ran = stats->cpu_run_virtual_total;
	uint64_t used = ran + stats->cpu_delay_total, switches = stats->nvcsw + stats->nivcsw;
	uint64_t most = life > used ? life - used : 0, usual;

	most = most < tick_ns ? most : tick_ns;
	if (!stats->nvcsw)
		return most;
	usual = ran / switches < tick_ns ? ran / switches : tick_ns;
	return usual / 2 < most ? usual / 2 : most;
}

/* Reads the part of a message that is about one thread. The part about its whole process is not used. */
static int read_message(const struct message *message, uint64_t tick_ns, struct md_task *out)
{
	const void *list, *thread, *stats = NULL;
	struct taskstats copy = {0};
	size_t size, length;
	int ret = attributes(message, &list, &size);

	if (ret)
		return ret;
	thread = find(list, size, TASKSTATS_TYPE_AGGR_PID, &length);
	if (thread)
		stats = find(thread, length, TASKSTATS_TYPE_STATS, &length);
	if (!stats)
		return -EPROTO;
	memcpy(&copy, stats, length < sizeof(copy) ? length : sizeof(copy));
	if (copy.version < FIRST_VERSION)
		return -ENOTSUP;
	read_stats(&copy, out);
	out->cpu_ns += last_stretch(&copy, tick_ns);
	return 0;
}

int md_taskstats_get(struct md_taskstats *ts, pid_t tid, struct md_task *out)
{
	uint32_t id = (uint32_t)tid;
	struct message message;
	const void *list;
	size_t size;
	int ret = ask(ts, ts->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID, &id, sizeof(id));

	if (!ret)
		ret = answer(ts, &message, &list, &size);
	return ret ? ret : read_message(&message, 0, out);
}

int md_taskstats_next(struct md_taskstats *ts, struct md_task *out)
{
	struct message message;
	int ret = receive(ts->events, MSG_DONTWAIT, &message);

	if (ret)
		return ret > 0 ? 0 : ret;
	ret = read_message(&message, ts->tick_ns, out);
	return ret ? ret : 1;
}

/*
 * Asks for the threads that end on any CPU, by the socket that is to get them; or with the other @attr, for none any
 * more.
 */
static int listen_to_all(struct md_taskstats *ts, int attr)
{
	char cpus[512] = "";
	struct md_taskstats listener = {.requests = ts->events, .family = ts->family};
	struct message message;
	const void *list;
	size_t size;
	int ret;
	FILE *file = fopen(POSSIBLE, "re");
	bool ok = file && fgets(cpus, sizeof(cpus), file);

	if (file)
		fclose(file);
	if (!ok)
		return -ENXIO;
	cpus[strcspn(cpus, "\n")] = '\0';
	ret = ask(&listener, ts->family, TASKSTATS_CMD_GET, attr, cpus, strlen(cpus) + 1);
	/* A refusal is there when send() returns. Anything else is about a thread. */
	if (ret || receive(ts->events, MSG_DONTWAIT | MSG_PEEK, &message))
		return ret;
	ret = attributes(&message, &list, &size);
	return ret == -EPROTO ? 0 : ret;
}

/*
 * In a network namespace other than the first, the kernel accepts all questions, but tells nothing by itself.
 * So a process ends, and must be heard of.
 */
static int hear_one(struct md_taskstats *ts)
{
	struct md_task task;
	pid_t child = fork();
	int ret;

	if (child < 0)
		return -errno;
	if (!child)
		_exit(0);
	ret = mp_child_wait(child, NULL);
	if (ret)
		return ret;
	do
		ret = md_taskstats_next(ts, &task);
	while ((ret > 0 && task.tid != child) || ret == -ENOBUFS);
	return ret ? (ret > 0 ? 0 : ret) : -ENOENT;
}

static int open_socket(void)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), ret;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&any, sizeof(any)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/*
 * The service has a network of its own, where no thread is told of, and may open no netlink socket. Its socket unit opens
 * two in the first network, and systemd gives them (sd_listen_fds(3)). Return: a copy of the one with this @index, or -1.
 */
static int inherited_socket(int index)
{
	const char *pid = getenv("LISTEN_PID"), *nr = getenv("LISTEN_FDS");
	socklen_t size = sizeof(int);
	int fd = SYSTEMD_FD + index, protocol = -1;

	if (!pid || !nr || atoi(pid) != getpid() || atoi(nr) <= index ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) ||
	    protocol != NETLINK_GENERIC)
		return -1;
	return fcntl(fd, F_DUPFD_CLOEXEC, fd);
}

static int open_both(struct md_taskstats *ts)
{
	int bytes = RECEIVE_BYTES;

	ts->events = inherited_socket(0);
	if (ts->events < 0)
		ts->events = open_socket();
	if (ts->events < 0)
		return ts->events;
	ts->requests = inherited_socket(1);
	if (ts->requests < 0)
		ts->requests = open_socket();
	if (ts->requests < 0)
		return ts->requests;
	if (setsockopt(ts->events, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		return -errno;
	return 0;
}

static int explain(int ret, struct mp_err *err)
{
	if (ret == -EPERM || ret == -EACCES || ret == -EAFNOSUPPORT)
		return mp_err_set(err, -ret,
				  "this process may not ask the kernel for CPU times: "
				  "CAP_NET_ADMIN and AF_NETLINK are needed");
	if (ret == -ENXIO)
		return mp_err_set(err, ENXIO,
				  POSSIBLE " cannot be read, so the kernel cannot be asked for CPU "
					   "times: is /sys mounted?");
	if (ret == -ENOENT)
		return mp_err_set(err, ENOENT,
				  "the kernel does not tell CPU times (taskstats): it was built "
				  "without, or this is another network namespace than its first");
	if (ret == -EINVAL)
		return mp_err_set(err, EINVAL,
				  "the kernel tells CPU times only to its first process and user "
				  "namespaces");
	if (ret == -ENOTSUP)
		return mp_err_set(err, ENOTSUP,
				  "the kernel does not tell which file a process executes: "
				  "Linux 5.19 does");
	return mp_err_set(err, -ret, "the kernel does not tell CPU times: %s", strerror(-ret));
}

int md_taskstats_open(struct md_taskstats *ts, struct mp_err *err)
{
	struct timespec tick;
	struct md_task self;
	int ret;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	*ts = (struct md_taskstats){
		.events = -1, .requests = -1, .tick_ns = (uint64_t)tick.tv_nsec};
	ret = open_both(ts);
	if (!ret)
		ret = find_family(ts);
	if (!ret)
		ret = md_taskstats_get(ts, getpid(), &self);
	if (!ret)
		ret = listen_to_all(ts, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK);
	if (!ret)
		ret = hear_one(ts);
	if (!ret)
		return 0;
	md_taskstats_close(ts);
	return explain(ret, err);
}

void md_taskstats_close(struct md_taskstats *ts)
{
	struct message message;

	/* systemd keeps an inherited socket, and would start the service for what waits in it. */
	if (ts->events >= 0 && ts->family)
		listen_to_all(ts, TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK);
	while (ts->events >= 0 && !receive(ts->events, MSG_DONTWAIT, &message))
		;
	if (ts->events >= 0)
		close(ts->events);
	if (ts->requests >= 0)
		close(ts->requests);
	ts->events = ts->requests = -1;
}
