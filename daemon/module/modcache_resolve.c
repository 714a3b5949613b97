// SPDX-License-Identifier: Apache-2.0
/*
 * modcache_resolve - finds the file that a mapping is of: among the known ones, or by reading
 * it.
 */
#include "libprof/base/clock.h"
#include "daemon/module/modcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/module/kernel.h"
#include "daemon/module/modcache_private.h"
#include "daemon/module/modfind.h"

#define MAX_FILES 8192 /* files remembered; if there are more, all are read again */

static struct md_file *new_file(struct md_modcache *mc, uint8_t why, const char *path)
{
	struct md_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->why = why;
	file->path = strdup(path);
	if (!file->path || md_modcache_set_file(mc, mc->files_end, file)) {
		md_file_free(file);
		return NULL;
	}
	return file;
}

static struct md_file *status_file(struct md_modcache *mc, enum morph_module_status status)
{
	struct md_file *file = md_modcache_file(mc, mc->status_files[status]);

	if (!file) {
		file = new_file(mc, md_why_of(status), "");
		if (file)
			mc->status_files[status] = file->number;
	}
	return file;
}

/* The table of files is keyed by device and inode, which records contain. */
static struct md_file **bucket_of(struct md_modcache *mc, uint64_t dev, uint64_t ino)
{
	return &mc->buckets[(ino * UINT64_C(0x9e3779b97f4a7c15) + dev) >> 54];
}

/*
 * Finds a known file. With an inode generation, the file is identified even after its process
 * has gone; without one, its path must still lead to it. A file that can be opened must be
 * unchanged.
 */
static struct md_file *find_file(struct md_modcache *mc, const struct morph_mmap *mmap)
{
	uint64_t dev = makedev(mmap->dev_major, mmap->dev_minor);
	struct md_file *file;
	struct md_modfind now;
	bool same;

	for (file = *bucket_of(mc, dev, mmap->ino); file; file = file->next) {
		if (file->dev != dev || file->ino != mmap->ino)
			continue;
		if ((mmap->task.flags & MORPH_MMAP_GENERATION) &&
		    file->generation != mmap->ino_generation)
			continue;
		if (md_modfind_is_unchanged(file->path, dev, file->ino, file->mtime_ns,
					    file->ctime_ns))
			return file;
		if (!(mmap->task.flags & MORPH_MMAP_GENERATION))
			continue;
		md_modfind_open(mmap, 0, &now);
		if (now.fd < 0)
			return file; /* it is gone, and nothing shows that it was written before */
		same = now.mtime_ns == file->mtime_ns;
		close(now.fd);
		if (same)
			return file;
	}
	return NULL;
}

int md_modcache_resolve(struct md_modcache *mc, const struct morph_mmap *mmap, int64_t mapped_ns,
			struct md_file **out)
{
	uint64_t dev = makedev(mmap->dev_major, mmap->dev_minor);
	enum morph_module_status status = md_modfind_classify(mmap->path, mmap->ino);
	uint64_t began = mp_now_ns();
	struct md_file *file, **bucket;
	struct md_modfind found;
	bool known;

	if (status) {
		*out = status_file(mc, status);
		return *out ? 0 : -ENOMEM;
	}
	file = find_file(mc, mmap);
	if (file)
		goto done;
	md_modfind_open(mmap, mapped_ns, &found);
	if (found.fd < 0) {
		file = status_file(mc, found.status);
		goto done;
	}
	if (mc->nr_keyed >= MAX_FILES)
		md_modcache_forget_files(mc);
	file = new_file(mc, MD_MAPPED, mmap->path);
	if (!file) {
		close(found.fd);
		return -ENOMEM;
	}
	file->dev = dev;
	file->ino = mmap->ino;
	file->generation = mmap->task.flags & MORPH_MMAP_GENERATION ? mmap->ino_generation
								    : found.generation;
	file->mtime_ns = found.mtime_ns;
	file->ctime_ns = found.ctime_ns;
	known = md_modcache_read_file(mc, found.fd, file);
	if (!md_modfind_is_steady(&found)) {
		file->module = 0;
		file->why = MP_UNATTR_REPLACED;
	}
	close(found.fd);
	mc->nr_keyed++;
	if (known) {
		bucket = bucket_of(mc, dev, mmap->ino);
		file->next = *bucket;
		*bucket = file;
	}
done:
	mc->analysis_ns += mp_now_ns() - began;
	*out = file;
	return file ? 0 : -ENOMEM;
}

int md_modcache_resolve_kernel(struct md_modcache *mc, uint64_t base, struct md_file **out,
			       const char **remark)
{
	uint64_t began = mp_now_ns();
	struct md_kernel kernel;
	struct md_module *module;
	struct md_file *file;

	md_kernel_read(base, &kernel);
	*remark = kernel.remark;
	file = new_file(mc, MD_MAPPED, kernel.name);
	module = md_modcache_put_module(mc, &kernel.id, MP_MODULE_KERNEL, kernel.name,
					kernel.text_size);
	if (!file || !module)
		return -ENOMEM;
	file->module = module->index;
	file->segments = malloc(sizeof(file->segments[0]));
	if (!file->segments)
		return -ENOMEM;
	file->segments[0] = kernel.text;
	file->nr_segments = 1;
	mc->kernel = file->number;
	mc->analysis_ns += mp_now_ns() - began;
	*out = file;
	return 0;
}
