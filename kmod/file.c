// SPDX-License-Identifier: GPL-2.0
/* file - keeps the files that are or were mapped; see file.h. */
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "kmod/file.h"

#define NR_BUCKETS 256
/* Length from which a bucket's unused files are freed. */
#define BUCKET_LEN 8

/* Never taken while another lock is held, nor in an interrupt. */
static DEFINE_RAW_SPINLOCK(lock);
static struct hlist_head buckets[NR_BUCKETS]; /* newest first */
static u64 last_serial;

static struct hlist_head *bucket_of(const struct morph_mmap *mmap)
{
	return &buckets[(mmap->ino ^ mmap->ino >> 8 ^ mmap->dev_minor) % NR_BUCKETS];
}

static u32 flags_of(const struct morph_mmap *mmap)
{
	return mmap->task.flags & (MORPH_MMAP_GENERATION | MORPH_MMAP_NAMESPACE);
}

static u64 word_at(const char *at)
{
	u64 word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Faster than memcmp(), which compares single bytes at the end. */
static bool is_same_path(const char *a, const char *b, u32 len)
{
	const u32 last = len - sizeof(u64);
	u32 i;

	if (len < sizeof(u64))
		return !memcmp(a, b, len);
	for (i = 0; i < last; i += sizeof(u64))
		if (word_at(a + i) != word_at(b + i))
			return false;
	return word_at(a + last) == word_at(b + last);
}

/* The bytes behind the build-id are zero. */
static bool is_same_build_id(const u8 *a, const u8 *b)
{
	u32 i;

	for (i = 0; i < MORPH_BUILD_ID_MAX; i += sizeof(u64))
		if (*(const u64 *)(a + i) != *(const u64 *)(b + i))
			return false;
	return true;
}

static bool is_same(const struct morph_mapped *mapped, const struct morph_mmap *mmap,
		    const char *path, u32 len)
{
	const struct morph_file *file = &mapped->file;

	return file->ino == mmap->ino && file->ino_generation == mmap->ino_generation &&
	       file->dev_major == mmap->dev_major && file->dev_minor == mmap->dev_minor &&
	       file->flags == flags_of(mmap) && file->build_id_len == mmap->build_id_len &&
	       is_same_build_id(file->build_id, mmap->build_id) && mapped->path_len == len &&
	       is_same_path(file->path, path, len);
}

/* Context: under lock. */
static struct morph_mapped *find(const struct morph_mmap *mmap, const char *path, u32 len)
{
	struct morph_mapped *mapped;

	hlist_for_each_entry(mapped, bucket_of(mmap), node) {
		if (is_same(mapped, mmap, path, len)) {
			atomic_inc(&mapped->nr_users);
			return mapped;
		}
	}
	return NULL;
}

static struct morph_mapped *make(const struct morph_mmap *mmap, const char *path, u32 len)
{
	u32 size = ALIGN(sizeof(struct morph_file) + len + 1, MORPH_RECORD_ALIGN);
	struct morph_mapped *mapped;

	mapped = kzalloc(offsetof(struct morph_mapped, file) + size, GFP_ATOMIC | __GFP_NOWARN);
	if (!mapped)
		return NULL;
	atomic_set(&mapped->nr_users, 1);
	mapped->path_len = len;
	mapped->file = (struct morph_file){
		.record = {size, MORPH_REC_FILE},
		.flags = flags_of(mmap),
		.dev_major = mmap->dev_major,
		.dev_minor = mmap->dev_minor,
		.ino = mmap->ino,
		.ino_generation = mmap->ino_generation,
		.build_id_len = mmap->build_id_len,
	};
	memcpy(mapped->file.build_id, mmap->build_id, sizeof(mmap->build_id));
	memcpy(mapped->file.path, path, len);
	return mapped;
}

/* Moves the unused files of a full bucket, except the newest, to @unused. Context: under lock. */
static void take_unused(struct hlist_head *bucket, struct hlist_head *unused)
{
	struct morph_mapped *mapped;
	struct hlist_node *next;
	u32 nr = 0;

	hlist_for_each_entry_safe(mapped, next, bucket, node) {
		/* New users can only appear under the lock. */
		if (nr++ < BUCKET_LEN || atomic_read_acquire(&mapped->nr_users))
			continue;
		hlist_del(&mapped->node);
		hlist_add_head(&mapped->node, unused);
	}
}

static void free_all(struct hlist_head *list)
{
	struct morph_mapped *mapped;
	struct hlist_node *next;

	hlist_for_each_entry_safe(mapped, next, list, node)
		kfree(mapped);
	INIT_HLIST_HEAD(list);
}

struct morph_mapped *morph_mapped_get(const struct morph_mmap *mmap, const char *path, u32 len)
{
	struct morph_mapped *mapped, *made;
	HLIST_HEAD(unused);

	raw_spin_lock(&lock);
	mapped = find(mmap, path, len);
	raw_spin_unlock(&lock);
	if (mapped)
		return mapped;
	made = make(mmap, path, len);
	if (!made)
		return NULL;
	raw_spin_lock(&lock);
	/* Another CPU may have added it meanwhile. */
	mapped = find(mmap, path, len);
	if (!mapped) {
		made->serial = ++last_serial;
		hlist_add_head(&made->node, bucket_of(mmap));
		take_unused(bucket_of(mmap), &unused);
		mapped = made;
		made = NULL;
	}
	raw_spin_unlock(&lock);
	kfree(made);
	free_all(&unused);
	return mapped;
}

void morph_mapped_free_all(void)
{
	u32 i;

	for (i = 0; i < NR_BUCKETS; i++)
		free_all(&buckets[i]);
}
