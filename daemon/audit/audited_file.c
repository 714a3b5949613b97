// SPDX-License-Identifier: Apache-2.0
/* audited_file - looks through /proc for the audited program; see audited_file.h. */
#include "daemon/audit/audited_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libprof/base/defaults.h"
#include "libprof/elf/elf.h"
#include "libprof/elf/mappings.h"
#include "libprof/note/audit_table.h"
#include "libprof/note/map.h"

#define TABLE_SIZE_MAX (1u << 20)
#define FILES_MAX      256 /* executable files of a process that are read */

/* The sandboxed process's reply about a file with a table. A file without a table gives no reply. */
struct reply {
	struct mp_id id, original;
	uint64_t table_hash;
	uint32_t nr_functions, zero;
	uint64_t vaddrs[MP_AUDIT_MAX_FUNCTIONS];
};

_Static_assert(sizeof(struct reply) <= MD_AUDITED_FILE_REPLY_MAX, "a reply fits");

/* ---- in the sandbox ------------------------------------------------------------------------ */

static struct mp_audit_table *read_table(const struct mp_elf *elf, int fd)
{
	const struct mp_section *sec = mp_elf_section(elf, MP_AUDIT_TABLE_SECTION);
	struct mp_audit_table *table = NULL;
	uint8_t *bytes;

	if (!sec || sec->type != SHT_PROGBITS || !sec->size || sec->size > TABLE_SIZE_MAX)
		return NULL;
	bytes = malloc(sec->size);
	if (bytes && pread(fd, bytes, sec->size, (off_t)sec->off) == (ssize_t)sec->size &&
	    mp_audit_table_decode("", bytes, sec->size, &table, NULL))
		table = NULL;
	free(bytes);
	return table;
}

int md_audited_file_work(int fd, uint64_t size, struct md_buf *reply)
{
	struct mp_audit_table *table = NULL;
	struct mp_elf *elf = NULL;
	struct mp_map *map = NULL;
	struct reply *r;
	int ret = 0;

	if (!mp_elf_open_sized("", fd, size, &elf, NULL))
		table = read_table(elf, fd);
	if (!table || mp_map_read_compact(elf, &map, NULL))
		goto out;
	r = md_buf_add(reply, sizeof(*r));
	ret = r ? 0 : -ENOMEM;
	if (!r)
		goto out;
	memset(r, 0, sizeof(*r));
	r->id = elf->id;
	r->original = map->original;
	r->table_hash = table->hash;
	r->nr_functions = table->nr_funcs;
	for (uint32_t f = 0; f < table->nr_funcs && f < MP_AUDIT_MAX_FUNCTIONS; f++)
		r->vaddrs[f] = table->funcs[f].vaddr;
out:
	mp_audit_table_free(table);
	mp_map_free(map);
	mp_elf_close(elf);
	return ret;
}

/* ---- outside ------------------------------------------------------------------------------- */

static bool take_reply(const struct md_buf *buf, uint64_t table_hash, struct md_audited_file *out)
{
	struct reply r;

	if (buf->size != sizeof(r))
		return false;
	memcpy(&r, buf->data, sizeof(r));
	if (r.table_hash != table_hash || r.id.build_id_len > MP_BUILD_ID_MAX ||
	    r.original.build_id_len > MP_BUILD_ID_MAX || !r.nr_functions ||
	    r.nr_functions > MP_AUDIT_MAX_FUNCTIONS)
		return false;
	out->id = r.id;
	out->original = r.original;
	out->nr_functions = r.nr_functions;
	memcpy(out->vaddrs, r.vaddrs, sizeof(out->vaddrs));
	return true;
}

/* Opens a regular file only: opening a device or a pipe may have effects. */
static int open_regular(const char *path, uint64_t *size)
{
	int at = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW), fd = -1;
	struct stat st;
	char link[32];

	if (at < 0)
		return -1;
	if (!fstat(at, &st) && S_ISREG(st.st_mode)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		*size = (uint64_t)st.st_size;
	}
	close(at);
	return fd;
}

static bool read_file(pid_t pid, const char *path, uint64_t table_hash, struct md_sandbox *sandbox,
		      struct md_audited_file *out)
{
	char rooted[MP_PATH_ROOM];
	struct md_buf reply = {0};
	uint64_t size;
	bool found = false;
	int fd;

	/* The process may have another root directory. */
	snprintf(rooted, sizeof(rooted), "/proc/%d/root%s", (int)pid, path);
	fd = open_regular(rooted, &size);
	if (fd < 0)
		return false;
	if (!(sandbox ? md_sandbox_read(sandbox, fd, size, &reply, NULL)
		      : md_audited_file_work(fd, size, &reply)))
		found = take_reply(&reply, table_hash, out);
	if (found)
		snprintf(out->path, sizeof(out->path), "%.4095s", path);
	md_buf_fini(&reply);
	close(fd);
	return found;
}

struct wanted {
	uint64_t dev, ino;
	const char *path; /* absolute */
};

/* Some file systems give another device in the list of mappings: then the path must agree. */
static bool is_wanted(const struct mp_mapping *m, const struct wanted *wanted)
{
	return m->ino == wanted->ino && (makedev(m->dev_major, m->dev_minor) == wanted->dev ||
					 !strcmp(m->path, wanted->path));
}

static bool has_mapped(pid_t pid, const struct wanted *wanted)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	bool found = false;

	if (!mp_mappings_open(&maps, pid))
		while (!found && mp_mappings_next(&maps, &map) > 0)
			found = is_wanted(&map, wanted);
	mp_mappings_close(&maps);
	return found;
}

static bool look_at(pid_t pid, uint64_t table_hash, struct md_sandbox *sandbox,
		    struct md_audited_file *out)
{
	uint64_t last_ino = 0;
	struct mp_mappings maps;
	struct mp_mapping map;
	bool found = false;
	int nr = 0;

	if (!mp_mappings_open(&maps, pid))
		while (!found && nr < FILES_MAX && mp_mappings_next_code(&maps, &map) > 0) {
			if (*map.path != '/' || map.ino == last_ino)
				continue;
			last_ino = map.ino;
			nr++;
			found = read_file(pid, map.path, table_hash, sandbox, out);
		}
	mp_mappings_close(&maps);
	return found;
}

int md_audited_file_find(uint64_t dev, uint64_t ino, const char *path, uint64_t table_hash,
			 struct md_sandbox *sandbox, struct md_audited_file *out)
{
	char *absolute = realpath(path, NULL);
	const struct wanted wanted = {dev, ino, absolute ? absolute : path};
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = isdigit((unsigned char)*entry->d_name) &&
			has_mapped(atoi(entry->d_name), &wanted) &&
			look_at(atoi(entry->d_name), table_hash, sandbox, out);
	if (dir)
		closedir(dir);
	free(absolute);
	return found ? 0 : -ENOENT;
}
