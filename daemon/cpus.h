// SPDX-License-Identifier: Apache-2.0
/*
 * cpus - which CPUs there are, by /sys: lists like "0-3,6". Called by perf_event.
 */
#ifndef MD_CPUS_H
#define MD_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct md_cpu_list {
	char text[1024]; /* as the kernel wrote it; "": not known */
};

/* Descriptor of the list @name ("online", "present", "possible"), or -errno. */
int md_cpus_open(const char *name);
/* Reads the list behind @fd as it is now. Return: true where it is another one than in @list. */
bool md_cpus_read(int fd, struct md_cpu_list *list);
/* True where @cpu is in @list; false for all where it is not known. */
bool md_cpus_has(const struct md_cpu_list *list, uint32_t cpu);
/* The lowest one; 0 where it is not known. */
uint32_t md_cpus_first(const struct md_cpu_list *list);
/* The highest one and 1; 0: not known. */
uint32_t md_cpus_end(const struct md_cpu_list *list);

#endif
