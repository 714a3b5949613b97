// SPDX-License-Identifier: Apache-2.0
/* cpus - parses lists of CPUs; see cpus.h. */
#include "daemon/source/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int md_cpus_open(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool md_cpus_read(int fd, struct md_cpu_list *list)
{
	struct md_cpu_list now;
	ssize_t nr = fd < 0 ? 0 : pread(fd, now.text, sizeof(now.text) - 1, 0);

	if (nr <= 0)
		return false;
	now.text[nr] = 0;
	if (!strcmp(now.text, list->text))
		return false;
	*list = now;
	return true;
}

/* Parses the range at *@text and moves *@text behind it. Return: false at the end of the list. */
static bool next_range(const char **text, unsigned long *first, unsigned long *last)
{
	char *end;

	*first = *last = strtoul(*text, &end, 10);
	if (end == *text)
		return false;
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	*text = end + (*end == ',');
	return true;
}

bool md_cpus_has(const struct md_cpu_list *list, uint32_t cpu)
{
	const char *text = list->text;
	unsigned long first, last;

	while (next_range(&text, &first, &last))
		if (cpu >= first && cpu <= last)
			return true;
	return false;
}

uint32_t md_cpus_first(const struct md_cpu_list *list)
{
	return strtoul(list->text, NULL, 10);
}

uint32_t md_cpus_end(const struct md_cpu_list *list)
{
	const char *text = list->text;
	unsigned long first, last;
	uint32_t end = 0;

	while (next_range(&text, &first, &last))
		if (last >= end && last < UINT32_MAX)
			end = last + 1;
	return end;
}
