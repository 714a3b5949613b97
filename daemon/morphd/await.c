// SPDX-License-Identifier: Apache-2.0
/* await - looks for changes that let morphd sample; see await.h. */
#include "daemon/morphd/await.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/record/clock.h"
#include "daemon/source/perf_event.h"
#include "kmod/uapi/morph_dev.h"

/* An attempt loads BPF programs, which takes a tenth of a second. Without a change, try rarely. */
#define ATTEMPT_NS UINT64_C(600000000000)

static bool has_device(void)
{
	return !access(MORPH_DEV_PATH, F_OK);
}

void md_await_failed(struct md_await *await)
{
	await->next_ns = md_clock_now_ns() + ATTEMPT_NS;
}

void md_await_start(struct md_await *await)
{
	*await = (struct md_await){
		.has_device = has_device(),
		.has_events = md_perf_allows_all(),
	};
	md_await_failed(await);
}

bool md_await_is_due(struct md_await *await)
{
	bool device = has_device(), events = md_perf_allows_all();
	bool changed = device != await->has_device || events != await->has_events;

	await->device_came |= device && !await->has_device;
	await->has_device = device;
	await->has_events = events;
	return changed || md_clock_now_ns() >= await->next_ns;
}

bool md_await_needs_start(const struct md_await *await)
{
	int fd;

	if (!await->device_came || access(MORPH_DEV_PATH, R_OK | W_OK))
		return false;
	fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EPERM;
	close(fd);
	return false;
}
