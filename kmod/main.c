// SPDX-License-Identifier: GPL-2.0
/* main - the module's parameters, its initialisation and its end. */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/stringify.h>

#include "kmod/morphmon.h"

static uint rate = 1024;
module_param(rate, uint, 0444);
MODULE_PARM_DESC(rate,
		 "samples per second and CPU, 1 to " __stringify(MORPH_RATE_MAX) " (default 1024)");

static uint jitter = 100;
module_param(jitter, uint, 0444);
MODULE_PARM_DESC(jitter, "per cent of the interval that is random, 0 to 100 (default 100)");

static uint ring_kib = 256;
module_param(ring_kib, uint, 0444);
MODULE_PARM_DESC(ring_kib, "KiB of each CPU's ring, a power of two, 16 to 65536 (default 256)");

static char *mode = "hrtimer";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "hrtimer: morphmon's own timer (default); tick: the kernel's tick");

static uint stack_depth;
module_param(stack_depth, uint, 0444);
MODULE_PARM_DESC(stack_depth, "callers recorded with each sample, 0 to 127 (default 0: none)");

static uint rows_mib = 64;
module_param(rows_mib, uint, 0444);
MODULE_PARM_DESC(rows_mib, "MiB of memory for unwind rows, 0 to 4096 (default 64)");

int morph_settings_read(struct morph_settings *out)
{
	*out = (struct morph_settings){
		.rate_hz = rate,
		.jitter = jitter,
		.ring_bytes = (u64)ring_kib << 10,
		.stack_depth = stack_depth,
		.rows_mib = rows_mib,
	};
	if (!strcmp(mode, "hrtimer"))
		out->mode = MORPH_MODE_HRTIMER;
	else if (!strcmp(mode, "tick"))
		out->mode = MORPH_MODE_TICK;
	else
		goto invalid;
	if (!rate || rate > MORPH_RATE_MAX || jitter > 100 || stack_depth > MORPH_STACK_MAX ||
	    rows_mib > MORPH_ROWS_MIB_MAX || ring_kib < 16 || ring_kib > MORPH_RING_KIB_MAX ||
	    !is_power_of_2(ring_kib))
		goto invalid;
	return 0;

invalid:
	pr_err("morphmon: a parameter is out of its range; see modinfo morphmon\n");
	return -EINVAL;
}

static int __init morphmon_init(void)
{
	struct morph_settings settings;
	int ret = morph_settings_read(&settings);

	if (!ret)
		ret = morph_collect_init();
	return ret ? ret : morph_dev_init();
}
module_init(morphmon_init);

static void __exit morphmon_exit(void)
{
	morph_dev_exit();
	morph_mappings_exit();
}
module_exit(morphmon_exit);

MODULE_DESCRIPTION("Morph: samples of what runs, and the events that explain them");
MODULE_AUTHOR("Morph");
MODULE_LICENSE("GPL");
