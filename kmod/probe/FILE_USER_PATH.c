// SPDX-License-Identifier: GPL-2.0
/* A backing file of overlayfs knows the path that the user opened. */
#include <linux/fs.h>

const struct path *probe(struct file *file);
const struct path *probe(struct file *file)
{
	return file_user_inode(file) ? file_user_path(file) : NULL;
}
