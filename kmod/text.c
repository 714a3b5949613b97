// SPDX-License-Identifier: GPL-2.0
/*
 * text - reports addresses of the kernel as offsets, to keep its load address secret.
 * Called by dev and sample.
 */
#include <linux/kprobes.h>
#include <linux/pgtable.h>

#include "kmod/morphmon.h"

static u64 text; /* address of _text; 0: not known */

bool morph_text_init(void)
{
	/* Never enabled: the kernel only looks up the symbol. */
	struct kprobe probe = {.symbol_name = "_text", .flags = KPROBE_FLAG_DISABLED};
	int ret = register_kprobe(&probe);

	if (ret) {
		pr_notice("morphmon: cannot find _text (%d): no samples of kernel code\n", ret);
		return false;
	}
	text = (u64)probe.addr;
	unregister_kprobe(&probe);
	return true;
}

u64 morph_text_hide(u64 ip)
{
	return ip >= text && ip < MODULES_VADDR ? MORPH_KERNEL_BASE + (ip - text)
						: MORPH_KERNEL_ELSEWHERE;
}
