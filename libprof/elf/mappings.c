// SPDX-License-Identifier: Apache-2.0
/* mappings - reads /proc/PID/maps; see mappings.h. */
#include "libprof/elf/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int mp_mappings_open(struct mp_mappings *out, pid_t pid)
{
	char name[64] = "/proc/self/maps";

	out->line = NULL;
	out->room = 0;
	/* By its number, this process is not found in the /proc of another namespace. */
	if (pid)
		snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	out->file = fopen(name, "re");
	if (!out->file)
		return -errno;
	/* The kernel gives a page for each read(); stdio would use a smaller buffer. */
	setvbuf(out->file, out->buffer, _IOFBF, sizeof(out->buffer));
	return 0;
}

/* Parses "55d0-55e0 r-xp 00002000 08:01 1234   /usr/bin/x". */
static bool parse(char *line, struct mp_mapping *out)
{
	int path = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &out->start, &out->end, out->rights, &out->off, &out->dev_major, &out->dev_minor,
		   &out->ino, &path) != 7 ||
	    strlen(out->rights) != 4 || !path)
		return false;
	line[strcspn(line, "\n")] = '\0';
	out->path = line + path;
	return true;
}

/* sscanf() costs more than the kernel's writing the line. */
static bool is_data(const char *line)
{
	const char *blank = strchr(line, ' ');

	return blank && strnlen(blank, 5) == 5 && blank[3] == '-';
}

static int next(struct mp_mappings *maps, bool code_only, struct mp_mapping *out)
{
	do {
		errno = 0;
		if (getline(&maps->line, &maps->room, maps->file) < 0)
			return feof(maps->file) ? 0 : -(errno ? errno : EIO);
	} while (code_only && is_data(maps->line));
	return parse(maps->line, out) ? 1 : -EBADMSG;
}

int mp_mappings_next(struct mp_mappings *maps, struct mp_mapping *out)
{
	return next(maps, false, out);
}

int mp_mappings_next_code(struct mp_mappings *maps, struct mp_mapping *out)
{
	return next(maps, true, out);
}

void mp_mappings_close(struct mp_mappings *maps)
{
	free(maps->line);
	if (maps->file)
		fclose(maps->file);
}
