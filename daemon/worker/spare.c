// SPDX-License-Identifier: Apache-2.0
/*
 * spare - while versions take turns at a path, the one that was replaced last stays beside it, under the name that
 * mp_kept_name() gives. To put it back is a matter of names: nothing is read, copied or flushed, however large it is.
 * Called by live; see live.h.
 *
 *	PATH  .morph-kept.HASH
 *	A     B			B was in place before, and takes its turn again
 *	A     			B becomes .morph-new.HASH
 *	A     A			A gets a second name
 *	B     A			B gets the path, by one rename
 *
 * Who is killed in between leaves a version at the path. The next worker removes .morph-kept.HASH, and so does who puts
 * the original back over a version; the next swap removes .morph-new.HASH; `morph off' removes both. Each version was
 * flushed when it was written, and nothing depends on the order in which names reach the disk.
 *
 * The bytes of both files are compared by hash once. From then on each is known by device, inode, size, owner, mode and
 * times. What changes a file changes its times, and nobody can set back the time of change. If one is not as it was, the
 * swap is morph-optimize's, which compares hashes, and writes the version anew. Not noticed: somebody writes to a file
 * between the worker's calls of a swap, and sets back its time of modification as well. And a file that another program
 * puts at the path between the last look at it and the rename, microseconds later, is lost, as in morph-optimize's swap.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/file_state.h"
#include "daemon/worker/live.h"
#include "libprof/base/newfile.h"
#include "libprof/elf/own_output.h"

/* The names in the directory of the path. */
struct names {
	int dir;
	const char *base;
	char new[MP_NEW_NAME_MAX], kept[MP_NEW_NAME_MAX];
};

/* Return: false: the directory cannot be opened. */
static bool open_names(const char *path, struct names *n)
{
	struct mp_err ignored;

	n->base = basename(path);
	mp_new_name(n->base, n->new);
	mp_kept_name(n->base, n->kept);
	n->dir = mp_directory_open(path, &ignored);
	return n->dir >= 0;
}

static bool look(const struct names *n, const char *name, struct stat *st)
{
	return !fstatat(n->dir, name, st, AT_SYMLINK_NOFOLLOW);
}

static bool is_as(const struct names *n, const char *name, const struct stat *was)
{
	struct stat st;

	return was->st_ino && look(n, name, &st) && md_file_is_as(&st, was);
}

/* The same after one of its names has come or gone, which changes nothing but the time of change. */
static bool is_renamed(const struct names *n, const char *name, const struct stat *was,
		       struct stat *now)
{
	struct stat st = *was;

	if (!look(n, name, now))
		return false;
	st.st_ctim = now->st_ctim;
	return md_file_is_as(now, &st);
}

/* Has the file, which is as @st says, the bytes of this version? */
static bool has_bytes(const struct md_task *t, const struct names *n, const char *name,
		      const struct stat *st, enum md_variant variant)
{
	struct md_variants variants;
	char path[PATH_MAX], hash[33];

	md_variants_load(&t->dir, &variants);
	return snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", n->dir, name) <
		       (int)sizeof(path) &&
	       !md_file_hash(path, hash) && is_as(n, name, st) &&
	       !strcmp(hash, variant == MD_ORIGINAL ? t->job->file_hash : variants.hash[variant]);
}

bool md_spare_keep(struct md_live *live)
{
	struct stat now;
	struct names n;
	bool kept;

	if (!open_names(live->path, &n))
		return false;
	unlinkat(n.dir, n.kept, 0);
	kept = is_as(&n, n.base, &live->file) && !linkat(n.dir, n.base, n.dir, n.kept, 0);
	if (kept && is_renamed(&n, n.kept, &live->file, &now)) {
		live->file = now;
	} else if (kept) {
		unlinkat(n.dir, n.kept, 0);
		kept = false;
	}
	close(n.dir);
	return kept;
}

void md_spare_take(struct md_task *t, struct md_live *live)
{
	struct stat now;
	struct names n;

	live->spare.file.st_ino = 0;
	if (!open_names(live->path, &n))
		return;
	if (is_renamed(&n, n.kept, &live->file, &now) &&
	    has_bytes(t, &n, n.kept, &now, live->there))
		live->spare = (struct md_spare){now, live->there};
	else
		unlinkat(n.dir, n.kept, 0);
	close(n.dir);
}

void md_spare_remove(const char *path)
{
	struct names n;
	struct stat st;

	if (!open_names(path, &n))
		return;
	if (look(&n, n.kept, &st))
		unlinkat(n.dir, n.kept, 0);
	close(n.dir);
}

void md_spare_drop(struct md_live *live)
{
	struct names n;
	struct stat now;
	bool same;

	live->spare.file.st_ino = 0;
	if (!open_names(live->path, &n))
		return;
	/* It may be a second name of the file at the path, whose time of change its removal sets. */
	same = is_as(&n, n.base, &live->file);
	if (!unlinkat(n.dir, n.kept, 0) && same && is_renamed(&n, n.base, &live->file, &now))
		live->file = now;
	close(n.dir);
}

/* The spare one has the name for new files; *@file and *@spare get the files' states after the swap. */
static bool rename_both(const struct names *n, const struct md_live *live, struct stat *file,
			struct stat *spare)
{
	return !linkat(n->dir, n->base, n->dir, n->kept, 0) &&
	       is_renamed(n, n->kept, &live->file, spare) &&
	       !renameat(n->dir, n->new, n->dir, n->base) &&
	       is_renamed(n, n->kept, &live->file, spare) &&
	       is_renamed(n, n->base, &live->spare.file, file);
}

static bool swap(struct md_live *live, const struct names *n)
{
	struct stat file, spare;

	if (renameat(n->dir, n->kept, n->dir, n->new))
		return false;
	if (!rename_both(n, live, &file, &spare)) {
		unlinkat(n->dir, n->new, 0);
		return false;
	}
	live->file = file;
	live->spare = (struct md_spare){spare, live->there};
	return true;
}

bool md_spare_swap(struct md_task *t, struct md_live *live, enum md_variant variant)
{
	bool swapped = false;
	struct names n;
	int locks;

	if (!live->spare.file.st_ino || live->spare.variant != variant ||
	    !open_names(live->path, &n))
		return false;
	/* As morph-optimize does while it replaces this file. */
	locks = mp_own_file_open("locks", true);
	if (locks >= 0 && !mp_own_lock(locks, live->file.st_dev, live->file.st_ino) &&
	    is_as(&n, n.kept, &live->spare.file) && is_as(&n, n.base, &live->file) &&
	    (live->proved || has_bytes(t, &n, n.base, &live->file, live->there)))
		swapped = swap(live, &n);
	if (locks >= 0)
		close(locks);
	close(n.dir);
	if (swapped)
		live->proved = true;
	else
		md_spare_drop(live);
	return swapped;
}
