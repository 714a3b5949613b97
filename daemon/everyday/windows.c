// SPDX-License-Identifier: Apache-2.0
/* windows - a budget for versions that count; see windows.h. */
#include "daemon/everyday/windows.h"

#include <unistd.h>

#define MINUTE_S 60

void md_budget_begin(struct md_budget *budget, const struct md_policy *policy, double pace,
		     double now_s)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*budget = (struct md_budget){.rate = policy->cost * (double)(cpus > 0 ? cpus : 1),
				     .at_s = now_s};
	budget->most = MINUTE_S * pace * budget->rate;
	budget->left = budget->most;
}

void md_windows_begin(struct md_windows *w, double pace, bool running, double now_s)
{
	*w = (struct md_windows){.pace = pace,
				 .overhead = running ? MD_WINDOWS_SHARED : MD_WINDOWS_OVERHEAD,
				 .ahead_s = running ? MD_WINDOWS_AHEAD_S * pace : 0,
				 .at_s = now_s};
}

enum md_windows_act md_windows_look(struct md_budget *budget, struct md_windows *w, double now_s,
				    bool there, double cpu_s)
{
	budget->left += (now_s - budget->at_s) * budget->rate - (cpu_s - w->cpu_s) * w->overhead;
	budget->at_s = now_s;
	if (budget->left > budget->most)
		budget->left = budget->most;
	if (there)
		w->place_s += now_s - w->at_s;
	w->at_s = now_s;
	w->cpu_s = cpu_s;
	if (cpu_s >= MD_WINDOWS_CPU_S * w->pace || w->place_s >= MD_WINDOWS_PLACE_S * w->pace)
		return MD_WINDOWS_OVER;
	if (there)
		return budget->left <= -w->ahead_s * budget->rate ? MD_WINDOWS_CLOSE
								  : MD_WINDOWS_STAY;
	return budget->left >= budget->most / 2 ? MD_WINDOWS_OPEN : MD_WINDOWS_STAY;
}
