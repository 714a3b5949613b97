// SPDX-License-Identifier: Apache-2.0
/*
 * modcache_resolve - finds the file that a mapping is of: among the known ones, or by reading
 * it.
 */
#include "libprof/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/module/kernel.h"
#include "daemon/module/modcache_private.h"
#include "daemon/module/modfind.h"

#define MAX_FILES 8192 /* files remembered; if there are more, all are read again */
/* A build starts a hundred processes a second, and most have ended when their records are read. */
#define LOOK_NS 1000000000u

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

/* Nothing is found for a process that has ended, unless another one's mapping of the same file was. */
static bool has_ended(uint32_t tgid)
{
	return kill((pid_t)tgid, 0) && errno == ESRCH;
}

/* Could @file not be opened for another process moments ago, so that it cannot be for this one, which has ended? */
static bool is_just_gone(const struct md_file *file, const struct morph_mmap *mmap, uint64_t now_ns)
{
	return mmap->task.flags & MORPH_MMAP_GENERATION && file->gone_ns &&
	       now_ns - file->gone_ns <= LOOK_NS && has_ended(mmap->task.tgid);
}

/*
 * Finds a known file. With an inode generation, the file is identified even after its process
 * has gone; without one, its path must still lead to it. A file that can be opened must be
 * unchanged; if it was so after this mapping had been made, it need not be looked at again, and neither if it was just
 * not to be opened (an overlay's, or a container's). Short processes map the same few files hundreds of times a second.
 */
static struct md_file *find_file(struct md_modcache *mc, const struct morph_mmap *mmap,
				 uint64_t now_ns)
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
		if (mmap->task.time_ns && mmap->task.time_ns <= file->unchanged_ns)
			return file;
		if (is_just_gone(file, mmap, now_ns))
			return file;
		if (md_modfind_is_unchanged(file->path, dev, file->ino, file->mtime_ns,
					    file->ctime_ns)) {
			file->unchanged_ns = now_ns;
			return file;
		}
		if (!(mmap->task.flags & MORPH_MMAP_GENERATION))
			continue;
		md_modfind_open(mmap, 0, &now);
		if (now.fd < 0) { /* it is gone, and nothing shows that it was written before */
			file->gone_ns = now_ns;
			return file;
		}
		same = now.mtime_ns == file->mtime_ns;
		close(now.fd);
		if (same) {
			file->unchanged_ns = now_ns;
			return file;
		}
	}
	return NULL;
}

/* A file that no path of ours leads to, such as a container's, is opened again and again. */
static struct md_file *find_read(struct md_modcache *mc, const struct morph_mmap *mmap,
				 const struct md_modfind *found)
{
	uint64_t dev = makedev(mmap->dev_major, mmap->dev_minor);

	for (struct md_file *file = *bucket_of(mc, dev, mmap->ino); file; file = file->next)
		if (file->dev == dev && file->ino == mmap->ino &&
		    file->mtime_ns == found->mtime_ns && file->ctime_ns == found->ctime_ns &&
		    (!(mmap->task.flags & MORPH_MMAP_GENERATION) ||
		     file->generation == mmap->ino_generation) &&
		    !strcmp(file->path, mmap->path))
			return file;
	return NULL;
}

/* ---- looks that found nothing, or what no path leads to -------------------------------------- */

static struct md_look key_of(const struct morph_mmap *mmap)
{
	return (struct md_look){
		.dev = makedev(mmap->dev_major, mmap->dev_minor),
		.ino = mmap->ino,
		.path_hash = XXH3_64bits(mmap->path, strlen(mmap->path)),
		.generation = mmap->task.flags & MORPH_MMAP_GENERATION ? mmap->ino_generation : 0};
}

static struct md_look *slot_of(struct md_modcache *mc, const struct md_look *key)
{
	return &mc->looks[(key->ino * UINT64_C(0x9e3779b97f4a7c15) + key->dev) >> 56];
}

static struct md_file *find_look(struct md_modcache *mc, const struct morph_mmap *mmap,
				 uint64_t now_ns)
{
	struct md_look key = key_of(mmap), *look = slot_of(mc, &key);
	struct md_file *file;

	if (!look->number || look->dev != key.dev || look->ino != key.ino ||
	    look->path_hash != key.path_hash || look->generation != key.generation ||
	    now_ns - look->at_ns > LOOK_NS)
		return NULL;
	file = md_modcache_file(mc, look->number);
	return file && (file->why == MD_MAPPED || has_ended(mmap->task.tgid)) ? file : NULL;
}

/*
 * Other mappings of the same file come within moments, of containers as well. A file that its path leads to needs no
 * look: find_file() compares it.
 */
static void remember_look(struct md_modcache *mc, const struct morph_mmap *mmap,
			  const struct md_modfind *found, const struct md_file *file,
			  uint64_t now_ns)
{
	struct md_look key = key_of(mmap);

	if (!file || found->written_later ||
	    (found->fd >= 0 && found->dev == key.dev && found->ino == key.ino))
		return;
	key.number = file->number;
	key.at_ns = now_ns;
	*slot_of(mc, &key) = key;
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
	file = find_file(mc, mmap, began);
	if (!file)
		file = find_look(mc, mmap, began);
	if (file)
		goto done;
	md_modfind_open(mmap, mapped_ns, &found);
	if (found.fd < 0) {
		file = status_file(mc, found.status);
		remember_look(mc, mmap, &found, file, began);
		goto done;
	}
	file = find_read(mc, mmap, &found);
	if (file) {
		remember_look(mc, mmap, &found, file, began);
		close(found.fd);
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
		remember_look(mc, mmap, &found, file, began);
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
