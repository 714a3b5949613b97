// SPDX-License-Identifier: Apache-2.0
/*
 * debug_file_find - finds a program's debug file and checks that it belongs to the program.
 * Called by optimize and by `morph-optimize verify'.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/debuglink.h"
#include "editor/debug/debug_file.h"

/* Directory of debug files in Debian, Fedora, and by gdb's default. */
#define DEBUG_DIR "/usr/lib/debug"

#define SAME_FLAGS (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR | SHF_TLS)

static bool has_debug(const struct mp_elf *elf)
{
	return mp_elf_section(elf, ".debug_info") || mp_elf_section(elf, ".zdebug_info");
}

static bool same_build_id(const struct mp_id *a, const struct mp_id *b)
{
	return a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static uint32_t next_loaded(const struct mp_elf *elf, uint32_t i)
{
	while (i < elf->nr_sections && !(elf->sections[i].flags & SHF_ALLOC))
		i++;
	return i;
}

/* Loaded sections must be the same, but for their bytes. */
static int compare_sections(const struct mp_elf *elf, const struct mp_elf *debug,
			    struct mp_err *err)
{
	uint32_t i = next_loaded(elf, 1), k = next_loaded(debug, 1);

	while (i < elf->nr_sections && k < debug->nr_sections) {
		const struct mp_section *a = &elf->sections[i], *b = &debug->sections[k];

		if (strcmp(a->name, b->name) || a->vaddr != b->vaddr || a->size != b->size ||
		    ((a->flags ^ b->flags) & SAME_FLAGS))
			return mp_err_set(err, EPERM,
					  "%s: is not the debug file of %s: section %.40s differs",
					  debug->path, elf->path, a->name);
		i = next_loaded(elf, i + 1);
		k = next_loaded(debug, k + 1);
	}
	if (i < elf->nr_sections || k < debug->nr_sections)
		return mp_err_set(err, EPERM,
				  "%s: is not the debug file of %s: it has other sections",
				  debug->path, elf->path);
	return 0;
}

/* The build-ids must be equal; without build-ids, the checksum must match. */
static int compare_identity(const struct mp_elf *elf, const struct mp_elf *debug,
			    struct mp_err *err)
{
	struct me_debuglink link;

	if (elf->id.build_id_len && debug->id.build_id_len) {
		if (same_build_id(&elf->id, &debug->id))
			return 0;
		return mp_err_set(err, EPERM,
				  "%s: is not the debug file of %s: it has another build-id",
				  debug->path, elf->path);
	}
	if (me_debuglink_read(elf, &link))
		return mp_err_set(err, EPERM,
				  "%s: neither a build-id nor .gnu_debuglink says that it is the "
				  "debug file of %s",
				  debug->path, elf->path);
	if (link.crc != me_debuglink_crc(debug->data, debug->size))
		return mp_err_set(err, EPERM,
				  "%s: is not the debug file of %s: its checksum is not that of "
				  ".gnu_debuglink",
				  debug->path, elf->path);
	return 0;
}

static int check(const struct mp_elf *elf, const struct mp_elf *debug, struct mp_err *err)
{
	int rc = compare_identity(elf, debug, err);

	if (!rc && elf->ehdr.e_type != debug->ehdr.e_type)
		rc = mp_err_set(err, EPERM, "%s: is not the debug file of %s: of another type",
				debug->path, elf->path);
	if (!rc)
		rc = compare_sections(elf, debug, err);
	if (!rc && !has_debug(debug) && !debug->has_symtab)
		rc = mp_err_set(err, EPERM, "%s: has no debug information", debug->path);
	return rc;
}

static int open_path(const struct mp_elf *elf, const char *path, struct mp_elf **out,
		     struct mp_err *err)
{
	int rc = mp_elf_open(path, MP_ELF_DEBUG | MP_ELF_SYMBOLS, out, err);

	if (!rc)
		rc = check(elf, *out, err);
	if (rc) {
		mp_elf_close(*out);
		*out = NULL;
	}
	return rc;
}

/* ---- places where a debugger looks ---- */

/* Is there a file of this name that belongs to @elf? Errors do not end the search. */
__attribute__((format(printf, 3, 4))) static bool try(const struct mp_elf *elf, struct mp_elf **out,
						      const char *fmt, ...)
{
	struct mp_err ignored;
	struct mp_elf *debug;
	char path[PATH_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    mp_elf_open(path, MP_ELF_DEBUG | MP_ELF_SYMBOLS, &debug, &ignored))
		return false;
	if (compare_identity(elf, debug, &ignored)) {
		mp_elf_close(debug);
		return false;
	}
	*out = debug;
	return true;
}

static bool find_by_build_id(const struct mp_elf *elf, struct mp_elf **out)
{
	char id[2 * MP_BUILD_ID_MAX + 1];

	if (elf->id.build_id_len < 2)
		return false;
	mp_id_format_build_id(&elf->id, id);
	return try(elf, out, DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
}

static bool find_by_link(const struct mp_elf *elf, struct mp_elf **out)
{
	struct me_debuglink link;
	char *path, *dir;
	bool found = false;

	if (me_debuglink_read(elf, &link))
		return false;
	path = realpath(elf->path, NULL);
	if (!path)
		return false;
	dir = dirname(path);
	found = try(elf, out, "%s/%s", dir, link.name) ||
		try(elf, out, "%s/.debug/%s", dir, link.name) ||
		try(elf, out, DEBUG_DIR "%s/%s", dir, link.name);
	free(path);
	return found;
}

/* Look in the cache of debuginfod-find(1) and gdb. */
static bool find_in_cache(const struct mp_elf *elf, struct mp_elf **out)
{
	const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char id[2 * MP_BUILD_ID_MAX + 1];

	if (!elf->id.build_id_len)
		return false;
	mp_id_format_build_id(&elf->id, id);
	if (cache && *cache)
		return try(elf, out, "%s/%s/debuginfo", cache, id);
	if (xdg && *xdg)
		return try(elf, out, "%s/debuginfod_client/%s/debuginfo", xdg, id);
	return home && (try(elf, out, "%s/.cache/debuginfod_client/%s/debuginfo", home, id) ||
			try(elf, out, "%s/.debuginfod_client_cache/%s/debuginfo", home, id));
}

static int find(const struct mp_elf *elf, struct mp_elf **out, struct mp_err *err)
{
	int rc;

	if (has_debug(elf))
		return -ENOENT;
	if (!find_by_build_id(elf, out) && !find_by_link(elf, out) && !find_in_cache(elf, out))
		return -ENOENT;
	rc = check(elf, *out, err);
	if (rc) {
		mp_elf_close(*out);
		*out = NULL;
	}
	return rc;
}

int me_debug_file_open(const struct mp_elf *elf, const char *path, struct mp_elf **out,
		       struct mp_err *err)
{
	*out = NULL;
	if (!strcmp(path, ME_DEBUG_FILE_AUTO))
		return find(elf, out, err);
	if (has_debug(elf))
		return mp_err_set(err, EPERM,
				  "%s: carries its debug information itself, no other is added",
				  elf->path);
	return open_path(elf, path, out, err);
}
