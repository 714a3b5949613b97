// SPDX-License-Identifier: Apache-2.0
/* attributes - reads and sets a file's attributes, in an order in which no step undoes another. */
#include "editor/base/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	TRIES = 8, /* attributes may be added between asking for the size and reading */
};

#define XATTR_CAPABILITY "security.capability"

/* The names of @fd's extended attributes; none if the file system does not support them. */
static ssize_t list_names(int fd, char **out)
{
	*out = NULL;
	for (int i = 0; i < TRIES; i++) {
		ssize_t room = flistxattr(fd, NULL, 0), n;
		char *names;

		if (room < 0)
			return errno == ENOTSUP ? 0 : -errno;
		names = malloc((size_t)room + 1);
		if (!names)
			return -ENOMEM;
		n = flistxattr(fd, names, (size_t)room);
		if (n >= 0) {
			*out = names;
			return n;
		}
		free(names);
		if (errno != ERANGE)
			return -errno;
	}
	return -EBUSY;
}

static int read_value(int fd, const char *name, struct me_xattr *out)
{
	for (int i = 0; i < TRIES; i++) {
		ssize_t room = fgetxattr(fd, name, NULL, 0), n;

		if (room < 0)
			return -errno;
		out->value = malloc((size_t)room + 1);
		if (!out->value)
			return -ENOMEM;
		n = fgetxattr(fd, name, out->value, (size_t)room);
		if (n >= 0) {
			out->size = (size_t)n;
			return 0;
		}
		free(out->value);
		out->value = NULL;
		if (errno != ERANGE)
			return -errno;
	}
	return -EBUSY;
}

static int read_xattrs(int fd, struct me_attributes *out, const char **which)
{
	char *names;
	ssize_t size = list_names(fd, &names);
	uint32_t nr = 0;
	int rc = size < 0 ? (int)size : 0;

	*which = "extended attributes";
	for (ssize_t i = 0; i < size; i += (ssize_t)strlen(names + i) + 1)
		nr++;
	if (!rc && nr) {
		out->xattrs = calloc(nr, sizeof(*out->xattrs));
		rc = out->xattrs ? 0 : -ENOMEM;
	}
	for (ssize_t i = 0; !rc && i < size; i += (ssize_t)strlen(names + i) + 1) {
		struct me_xattr *x = &out->xattrs[out->nr_xattrs];

		x->name = strdup(names + i);
		if (!x->name) {
			rc = -ENOMEM;
			break;
		}
		out->nr_xattrs++;
		*which = x->name;
		rc = read_value(fd, x->name, x);
	}
	free(names);
	return rc;
}

int me_attributes_read(int fd, const char *path, struct me_attributes *out, struct mp_err *err)
{
	const char *which;
	struct stat st;
	int rc;

	*out = (struct me_attributes){0};
	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	out->mode = st.st_mode & 07777;
	out->uid = st.st_uid;
	out->gid = st.st_gid;
	out->mtime = st.st_mtim;
	rc = read_xattrs(fd, out, &which);
	if (rc) /* callers take -EPERM for a refusal */
		return mp_err_set(err, rc == -EPERM ? EACCES : -rc, "%s: cannot read its %.80s: %s",
				  path, which, strerror(-rc));
	return 0;
}

const struct me_xattr *me_attributes_find(const struct me_attributes *attributes, const char *name)
{
	for (uint32_t i = 0; i < attributes->nr_xattrs; i++) {
		if (!strcmp(attributes->xattrs[i].name, name))
			return &attributes->xattrs[i];
	}
	return NULL;
}

static int cannot_keep(const char *path, const char *what, int code, struct mp_err *err)
{
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s: cannot keep its %.80s: %s", path,
			  what, strerror(code));
}

/* Remove attributes that the original does not have, such as a directory's default ACL. */
static int remove_extra_xattrs(const struct me_attributes *a, int fd, const char *path,
			       struct mp_err *err)
{
	char *names;
	ssize_t size = list_names(fd, &names);
	int rc = 0;

	if (size < 0)
		return cannot_keep(path, "extended attributes", (int)-size, err);
	for (ssize_t i = 0; !rc && i < size; i += (ssize_t)strlen(names + i) + 1) {
		if (!me_attributes_find(a, names + i) && fremovexattr(fd, names + i) &&
		    errno != ENODATA)
			rc = cannot_keep(path, names + i, errno, err);
	}
	free(names);
	return rc;
}

static bool same_value(int fd, const struct me_xattr *want)
{
	struct me_xattr have = {0};
	bool same = !read_value(fd, want->name, &have) && have.size == want->size &&
		    !memcmp(have.value, want->value, want->size);

	free(have.value);
	return same;
}

static int set_xattr(int fd, const struct me_xattr *x, const char *path, struct mp_err *err)
{
	/* We may lack the right to set a value that is right already, such as a security label. */
	if (same_value(fd, x) || !fsetxattr(fd, x->name, x->value, x->size, 0))
		return 0;
	return cannot_keep(path, x->name, errno, err);
}

int me_attributes_apply(const struct me_attributes *a, int fd, const char *path, struct mp_err *err)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	/*
	 * Owner first: changing the owner removes set-id bits and capabilities. Set
	 * earlier, they would apply to the wrong user.
	 */
	if ((st.st_uid != a->uid || st.st_gid != a->gid) && fchown(fd, a->uid, a->gid))
		return cannot_keep(path, "owner and group", errno, err);
	rc = remove_extra_xattrs(a, fd, path, err);
	/*
	 * Setting an ACL changes the group permissions, so the mode follows;
	 * capabilities come last.
	 */
	for (uint32_t i = 0; !rc && i < a->nr_xattrs; i++) {
		if (strcmp(a->xattrs[i].name, XATTR_CAPABILITY))
			rc = set_xattr(fd, &a->xattrs[i], path, err);
	}
	if (!rc && fchmod(fd, a->mode))
		return cannot_keep(path, "mode", errno, err);
	for (uint32_t i = 0; !rc && i < a->nr_xattrs; i++) {
		if (!strcmp(a->xattrs[i].name, XATTR_CAPABILITY))
			rc = set_xattr(fd, &a->xattrs[i], path, err);
	}
	if (!rc && (fstat(fd, &st) || (st.st_mode & 07777) != a->mode || st.st_uid != a->uid ||
		    st.st_gid != a->gid))
		return mp_err_set(err, EACCES, "%s: cannot keep its mode and owner here", path);
	return rc;
}

void me_attributes_fini(struct me_attributes *attributes)
{
	for (uint32_t i = 0; i < attributes->nr_xattrs; i++) {
		free(attributes->xattrs[i].name);
		free(attributes->xattrs[i].value);
	}
	free(attributes->xattrs);
	*attributes = (struct me_attributes){0};
}
