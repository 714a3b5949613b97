// SPDX-License-Identifier: Apache-2.0
/*
 * mappings - reads the list of a process's mappings, /proc/PID/maps. Called by all code that asks what a process has mapped.
 * The list belongs to the process, and its paths may be anything: a line break in one is "\012" there.
 */
#ifndef MP_MAPPINGS_H
#define MP_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct mp_mapping {
	uint64_t start, end, off;
	char rights[5]; /* as "r-xp" */
	uint32_t dev_major, dev_minor;
	uint64_t ino; /* 0: no file */
	const char *
		path; /* "": none; as the kernel prints it, so " (deleted)" may stand behind it; until the next line */
};

struct mp_mappings {
	FILE *file;
	char *line;
	size_t room;
	char buffer[4096];
};

/*
 * mp_mappings_open - @pid: 0: this process.
 * Return: 0 or -errno: -ENOENT: there is no such process. Ownership: mp_mappings_close(), also after an error.
 */
int mp_mappings_open(struct mp_mappings *out, pid_t pid);
/*
 * mp_mappings_next - the next mapping.
 * Return: 1; 0: there are no more; -EBADMSG: the line is none of the kernel's, or -errno.
 */
int mp_mappings_next(struct mp_mappings *maps, struct mp_mapping *out);
/* The same, mappings that may be executed alone: faster, as most mappings are data. */
int mp_mappings_next_code(struct mp_mappings *maps, struct mp_mapping *out);
void mp_mappings_close(struct mp_mappings *maps);

#endif
