// SPDX-License-Identifier: GPL-2.0
/*
 * hook - finds the kernel's tracepoints by name, since most of them are not exported.
 * Called by collect and event.
 */
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "kmod/morphmon.h"

struct search {
	struct morph_hook *hooks;
	size_t nr;
};

static void match(struct tracepoint *tracepoint, void *data)
{
	struct search *search = data;
	size_t i;

	for (i = 0; i < search->nr; i++)
		if (!strcmp(search->hooks[i].name, tracepoint->name))
			search->hooks[i].tracepoint = tracepoint;
}

int morph_hooks_find(struct morph_hook *hooks, size_t nr)
{
	struct search search = {hooks, nr};
	size_t i;

	for_each_kernel_tracepoint(match, &search);
	for (i = 0; i < nr; i++) {
		if (!hooks[i].tracepoint) {
			pr_err("morphmon: this kernel has no tracepoint %s\n", hooks[i].name);
			return -ENOENT;
		}
	}
	return 0;
}

int morph_hooks_start(struct morph_hook *hooks, size_t nr)
{
	size_t i;
	int ret;

	for (i = 0; i < nr; i++) {
		ret = tracepoint_probe_register(hooks[i].tracepoint, hooks[i].probe, NULL);
		if (ret) {
			morph_hooks_stop(hooks, i);
			return ret;
		}
	}
	return 0;
}

void morph_hooks_stop(struct morph_hook *hooks, size_t nr)
{
	while (nr--)
		tracepoint_probe_unregister(hooks[nr].tracepoint, hooks[nr].probe, NULL);
	tracepoint_synchronize_unregister();
}
