// SPDX-License-Identifier: GPL-2.0
/*
 * row_file - keeps the unwind rows that the reader gives, by the files that they describe.
 * The bytes are copied first and checked in the copy, so that nobody can change them
 * afterwards. Called by dev and code.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "kmod/build_id.h"
#include "kmod/compat.h"
#include "kmod/stack.h"

#define NR_BUCKETS_SHIFT 9
/* Copied in pieces, so that other tasks can run. */
#define PIECE_BYTES (1U << 20)

/* Changed by one caller at a time; read in interrupts. */
static struct hlist_head buckets[1 << NR_BUCKETS_SHIFT];
static atomic_t generation = ATOMIC_INIT(0);
static u64 nr_bytes, nr_files;

static struct hlist_head *bucket_of(u64 ino)
{
	return &buckets[hash_64(ino, NR_BUCKETS_SHIFT)];
}

u32 morph_row_files_generation(void)
{
	/* Pairs with the release in change(): the rows are there. */
	return atomic_read_acquire(&generation);
}

void morph_row_files_distrust(void)
{
	atomic_inc(&generation);
}

void morph_row_files_count(struct morph_walks *to)
{
	to->rows_bytes = READ_ONCE(nr_bytes);
	to->rows_files = READ_ONCE(nr_files);
}

/* ---- looking up ---- */

static bool is_build_id_of(const struct morph_rows *key, struct file *file)
{
	u8 id[MORPH_BUILD_ID_MAX];

	return !key->build_id_len || (morph_build_id_read(file, id) == key->build_id_len &&
				      !memcmp(id, key->build_id, key->build_id_len));
}

static bool is_of_inode(const struct morph_rows *key, const struct inode *inode)
{
	return key->ino == inode->i_ino && key->dev_major == MAJOR(inode->i_sb->s_dev) &&
	       key->dev_minor == MINOR(inode->i_sb->s_dev) && !(key->flags & MORPH_ROWS_VDSO) &&
	       (!(key->flags & MORPH_ROWS_GENERATION) ||
		(u32)key->ino_generation == inode->i_generation);
}

const struct morph_row_file *morph_row_file_find(const struct vm_area_struct *vma, bool is_vdso)
{
	const struct inode *inode = is_vdso ? NULL : morph_file_inode(vma->vm_file);
	const struct morph_row_file *file;

	hlist_for_each_entry_rcu(file, bucket_of(inode ? inode->i_ino : 0), node, true) {
		if (!inode && file->key.flags & MORPH_ROWS_VDSO)
			return file;
		if (inode && is_of_inode(&file->key, inode) &&
		    is_build_id_of(&file->key, vma->vm_file))
			return file;
	}
	return NULL;
}

/* ---- adding ---- */

static void row_file_free(struct morph_row_file *file)
{
	if (!file)
		return;
	kvfree(file->table.rules ? (struct morph_rows_head *)file->table.rules - 1 : NULL);
	kvfree(file->index);
	kfree(file);
}

static int check_key(const struct morph_rows *key)
{
	const u32 flags = MORPH_ROWS_GENERATION | MORPH_ROWS_VDSO;
	bool is_vdso = key->flags & MORPH_ROWS_VDSO;

	if (key->flags & ~flags || key->pad || key->build_id_len > MORPH_BUILD_ID_MAX ||
	    key->nr_segments > MORPH_ROWS_SEGMENTS_MAX || key->size > MORPH_ROWS_SIZE_MAX)
		return -EINVAL;
	/* The vDSO is no file, and is the same everywhere. */
	if (is_vdso && (key->flags != MORPH_ROWS_VDSO || key->ino || key->build_id_len))
		return -EINVAL;
	return 0;
}

static int take_segments(struct morph_row_file *file, u64 from)
{
	const u32 nr = file->key.nr_segments;
	u32 i;

	if (copy_from_user(file->segments, u64_to_user_ptr(from), nr * sizeof(file->segments[0])))
		return -EFAULT;
	for (i = 0; i < nr; i++)
		if (file->segments[i].off + file->segments[i].size < file->segments[i].off)
			return -EINVAL;
	return 0;
}

static void *take_bytes(u64 from, size_t size)
{
	u8 *bytes = kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	size_t done, piece;

	if (!bytes)
		return ERR_PTR(-ENOMEM);
	for (done = 0; done < size; done += piece) {
		piece = min_t(size_t, size - done, PIECE_BYTES);
		if (copy_from_user(bytes + done, u64_to_user_ptr(from + done), piece)) {
			kvfree(bytes);
			return ERR_PTR(-EFAULT);
		}
		cond_resched();
	}
	return bytes;
}

/* @room: bytes of memory that the file may take. */
static int take_rows(struct morph_row_file *file, u64 from, size_t size, u64 room)
{
	void *bytes;
	size_t more;
	int ret;

	if (file->bytes + size > room)
		return -ENOSPC;
	bytes = take_bytes(from, size);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	ret = morph_rows_check(bytes, size, &file->table);
	if (ret) {
		file->table = (struct morph_rows_table){};
		kvfree(bytes);
		return ret;
	}
	more = morph_rows_index_size(&file->table);
	file->bytes += size + more;
	if (file->bytes > room)
		return -ENOSPC;
	file->index = kvmalloc(more, GFP_KERNEL | __GFP_NOWARN);
	if (!file->index)
		return -ENOMEM;
	morph_rows_make_index(&file->table, file->index);
	return 0;
}

/* The earlier rows of the same file. */
static struct morph_row_file *find_same(const struct morph_rows *key)
{
	struct morph_row_file *file;

	hlist_for_each_entry(file, bucket_of(key->ino), node)
		if (file->key.ino == key->ino && file->key.dev_major == key->dev_major &&
		    file->key.dev_minor == key->dev_minor && file->key.flags == key->flags &&
		    file->key.ino_generation == key->ino_generation)
			return file;
	return NULL;
}

/* Adds @file in place of @old, which may be NULL. */
static void change(struct morph_row_file *file, struct morph_row_file *old)
{
	if (old) {
		hlist_replace_rcu(&old->node, &file->node);
		WRITE_ONCE(nr_bytes, nr_bytes - old->bytes);
	} else {
		hlist_add_head_rcu(&file->node, bucket_of(file->key.ino));
		WRITE_ONCE(nr_files, nr_files + 1);
	}
	WRITE_ONCE(nr_bytes, nr_bytes + file->bytes);
	/* A walk that begins from now on uses no earlier answer. */
	atomic_inc_return_release(&generation);
	if (!old)
		return;
	/* Walks have interrupts off. */
	synchronize_rcu();
	row_file_free(old);
}

int morph_row_file_add(const void __user *arg, u64 limit_bytes)
{
	struct morph_row_file *file = kzalloc(sizeof(*file), GFP_KERNEL);
	struct morph_row_file *old;
	u64 segments, bytes, size;
	int ret;

	if (!file)
		return -ENOMEM;
	ret = copy_from_user(&file->key, arg, sizeof(file->key)) ? -EFAULT : check_key(&file->key);
	if (ret)
		goto fail;
	segments = file->key.segments;
	bytes = file->key.bytes;
	size = file->key.size;
	file->bytes = sizeof(*file);
	old = find_same(&file->key);
	/* The earlier rows stay until these are there, but are not counted. */
	limit_bytes -= min(limit_bytes, nr_bytes - (old ? old->bytes : 0));
	ret = take_segments(file, segments);
	if (!ret && size)
		ret = take_rows(file, bytes, size, limit_bytes);
	else if (!ret && file->bytes > limit_bytes)
		ret = -ENOSPC;
	if (ret)
		goto fail;
	change(file, old);
	return 0;

fail:
	row_file_free(file);
	return ret;
}

void morph_row_files_free(void)
{
	struct morph_row_file *file;
	struct hlist_node *next;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(buckets); i++) {
		hlist_for_each_entry_safe(file, next, &buckets[i], node)
			row_file_free(file);
		INIT_HLIST_HEAD(&buckets[i]);
	}
	atomic_inc(&generation);
	nr_bytes = 0;
	nr_files = 0;
}
