// SPDX-License-Identifier: Apache-2.0
/*
 * cpus - reads the lists of CPUs in /sys, such as "0-3,6". Called by perf_event.
 */
#ifndef MD_CPUS_H
#define MD_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct md_cpu_list {
	char text[1024]; /* as the kernel wrote it; "": not known */
};

/* Opens the list @name ("online", "present", "possible"). Return: a descriptor or -errno. */
int md_cpus_open(const char *name);
/* Reads the current list from @fd. Return: true if it differs from @list. */
bool md_cpus_read(int fd, struct md_cpu_list *list);
/* Return: true if @cpu is in @list; false if the list is not known. */
bool md_cpus_has(const struct md_cpu_list *list, uint32_t cpu);
/* Return: the lowest CPU; 0 if the list is not known. */
uint32_t md_cpus_first(const struct md_cpu_list *list);
/* Return: the highest CPU plus 1; 0: not known. */
uint32_t md_cpus_end(const struct md_cpu_list *list);

#endif
