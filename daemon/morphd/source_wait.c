// SPDX-License-Identifier: Apache-2.0
/* source_wait - looks for changes that let morphd sample; see source_wait.h. */
#include "daemon/morphd/source_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/source/perf_event.h"
#include "kmod/uapi/morph_dev.h"

/* An attempt loads BPF programs, which takes a tenth of a second. Without a change, try rarely. */
#define ATTEMPT_NS UINT64_C(600000000000)

static bool has_device(void)
{
	return !access(MORPH_DEV_PATH, F_OK);
}

void md_source_wait_failed(struct md_source_wait *wait)
{
	wait->next_ns = mp_now_ns() + ATTEMPT_NS;
}

void md_source_wait_start(struct md_source_wait *wait)
{
	*wait = (struct md_source_wait){
		.has_device = has_device(),
		.has_events = md_perf_allows_all(),
	};
	md_source_wait_failed(wait);
}

bool md_source_wait_is_due(struct md_source_wait *wait)
{
	bool device = has_device(), events = md_perf_allows_all();
	bool changed = device != wait->has_device || events != wait->has_events;

	wait->device_appeared |= device && !wait->has_device;
	wait->has_device = device;
	wait->has_events = events;
	return changed || mp_now_ns() >= wait->next_ns;
}

bool md_source_wait_needs_restart(const struct md_source_wait *wait)
{
	int fd;

	if (!wait->device_appeared || access(MORPH_DEV_PATH, R_OK | W_OK))
		return false;
	fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EPERM;
	close(fd);
	return false;
}
