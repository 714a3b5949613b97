// SPDX-License-Identifier: GPL-2.0
/* hrtimer_setup() replaces hrtimer_init() and setting the function. */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer));
void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}
