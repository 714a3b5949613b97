// SPDX-License-Identifier: Apache-2.0
/*
 * modcache_read - finds the module of a file on this machine; see modcache.h.
 *
 * Decides who reads the file (modread, in a sandbox or in this process). The reader's reply can
 * change only what is known of this one file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/module/modcache_private.h"
#include "daemon/module/modread.h"
#include "daemon/module/sandbox.h"
#include "libprof/note/map_calls.h"
#include "libprof/note/map_packed.h"
#include "libprof/unwind/rows_laid.h"

/*
 * Limit for the maps of all optimised modules together; a map of 2^24 pieces takes about 160
 * MiB.
 */
#define MAPS_MAX_BYTES (UINT64_C(256) << 20)
#define ASKED_MAX      8  /* copies of one output for which confirmation is tried */
#define REMARKS_MAX    10 /* files that get a line in the log */

void md_modcache_set_sandbox(struct md_modcache *mc, struct md_sandbox *sandbox)
{
	mc->sandbox = sandbox;
}

void md_modcache_want_rows(struct md_modcache *mc)
{
	mc->wants_rows = true;
}

const char *md_modcache_remark(struct md_modcache *mc)
{
	const char *remark = mc->has_remark ? mc->remark : NULL;

	mc->has_remark = false;
	return remark;
}

/* Replaces control characters, since any user can choose the path and the text goes to a log. */
static void remark(struct md_modcache *mc, const char *path, const char *what)
{
	char *p;

	if (mc->nr_remarks >= REMARKS_MAX)
		return;
	mc->nr_remarks++;
	snprintf(mc->remark, sizeof(mc->remark), "%.200s: %s%s", path, what,
		 mc->nr_remarks == REMARKS_MAX ? "; further files are not reported" : "");
	for (p = mc->remark; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	mc->has_remark = true;
}

/* Reads the file in the sandbox, or in this process if the caller wanted none. */
static int read_reply(struct md_modcache *mc, int fd, uint64_t size, const char *path,
		      struct md_buf *reply)
{
	struct mp_err err = {{0}};
	int ret;

	if (!mc->sandbox)
		return mc->wants_rows ? md_modread_file_with_rows(fd, size, reply)
				      : md_modread_file(fd, size, reply);
	ret = md_sandbox_read(mc->sandbox, fd, size, reply, &err);
	if (ret)
		remark(mc, path, err.msg);
	return ret;
}

/* With other rows, the same stack would have other frames. */
static bool same_rows(const struct md_module *a, const struct md_module *b)
{
	return a->row_size == b->row_size && mp_rows_equal(&a->rows, &b->rows);
}

static bool same_map(const struct md_module *a, const struct md_module *b)
{
	size_t nr;

	if (!a->map || !b->map)
		return a->map == b->map;
	nr = a->map->nr_pieces;
	if (nr != b->map->nr_pieces || !mp_id_equal(&a->map->original, &b->map->original) ||
	    !a->map->packed != !b->map->packed)
		return false;
	if (a->map->packed ? !mp_map_packed_equal(a->map->packed, b->map->packed)
			   : memcmp(a->map->pieces, b->map->pieces, nr * sizeof(a->map->pieces[0])))
		return false;
	/* With other calls, the same stack would have other frames. */
	if (!mp_map_same_calls(a->map, b->map))
		return false;
	/* With another table, the same registers would mean other paths. */
	if (!a->paths != !b->paths || a->path_size != b->path_size ||
	    (a->paths && memcmp(a->path_bytes, b->path_bytes, a->path_size)))
		return false;
	if (!a->map_ends || !b->map_ends)
		return a->map_ends == b->map_ends;
	return !memcmp(a->map_ends, b->map_ends, nr * sizeof(a->map_ends[0]));
}

/*
 * Finds the module that equals @like in everything that was read. A compromised reader must not
 * change what is known of other files. So a file with a known id but other contents becomes a
 * module of its own.
 */
static struct md_module *find_like(struct md_modcache *mc, const struct md_module *like)
{
	struct md_module *module;
	uint32_t i;

	for (i = 1; i < mc->end; i++) {
		module = mc->modules[i];
		if (module && module->kind == like->kind && mp_id_equal(&module->id, &like->id) &&
		    (!module->text_size || module->text_size == like->text_size) &&
		    same_map(module, like) && same_rows(module, like))
			return module;
	}
	return NULL;
}

/* Makes @file refer to the module that @from has for file 1. */
static int adopt(struct md_modcache *mc, struct md_modcache *from, int fd, struct md_file *file)
{
	struct md_file *read = md_modcache_file(from, 1);
	struct md_module *got = md_modcache_module(from, read->module), *module;
	int ret;

	if (!got)
		return 0;
	module = find_like(mc, got);
	if (module) {
		module->text_size = got->text_size;
		md_module_learn_path(module, file->path);
	} else if (md_module_bytes(got) > MAPS_MAX_BYTES - mc->map_bytes) {
		remark(mc, file->path,
		       "no room for the map of one more optimised module; its samples are left out "
		       "until morphd starts anew (systemctl restart morphd)");
		return 0;
	} else {
		module =
			md_modcache_add_module(mc, &got->id, got->kind, file->path, got->text_size);
		if (!module)
			return -ENOMEM;
		md_modcache_adopt_rows(mc, module, got);
		if (got->map) {
			ret = md_modcache_set_map(mc, module, got->map);
			got->map = NULL;
			if (ret)
				return ret;
			module->map_ends = got->map_ends;
			got->map_ends = NULL;
			mc->map_bytes += md_module_bytes(got);
			module->paths = got->paths;
			module->path_bytes = got->path_bytes;
			module->path_size = module->path_come = got->path_size;
			got->paths = NULL;
			got->path_bytes = NULL;
			got->path_size = 0;
		}
	}
	file->segments = read->segments;
	file->nr_segments = read->nr_segments;
	read->segments = NULL;
	file->module = module->index;
	file->why = MD_MAPPED;
	/*
	 * Keep the file open, so that the confirmation reads this file and not a later one with
	 * its name.
	 */
	if (!module->map || module->map_belief == MD_MAP_BELIEVED || module->fd >= 0)
		return 0;
	/* Try again for a copy in another place, which may have its original beside it. */
	if (module->nr_asked++ < ASKED_MAX)
		module->map_belief = MD_MAP_UNDECIDED;
	if (module->map_belief == MD_MAP_UNDECIDED)
		module->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return 0;
}

bool md_modcache_read_file(struct md_modcache *mc, int fd, struct md_file *file)
{
	struct md_modcache *from = md_modcache_new();
	struct md_buf reply = {0};
	int ret = -ENOMEM;
	struct stat st;

	file->why = MP_UNATTR_UNREADABLE;
	if (!from || fstat(fd, &st))
		goto out;
	ret = read_reply(mc, fd, (uint64_t)st.st_size, file->path, &reply);
	if (ret)
		goto out;
	ret = md_modread_take(&reply, (uint64_t)st.st_size, from);
	if (!ret)
		ret = adopt(mc, from, fd, file);
	if (ret)
		remark(mc, file->path,
		       ret == -ENOMEM ? "out of memory" : "its contents make no sense");
out:
	md_buf_fini(&reply);
	md_modcache_free(from);
	return !ret || ret == -EBADMSG || ret == -EPROTO || ret == -EFBIG || ret == -ETIMEDOUT;
}
