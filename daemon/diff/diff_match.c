// SPDX-License-Identifier: Apache-2.0
/*
 * diff_match - groups the modules of two sides; see diff.h. Decides that modules with one path
 * belong together even if their identity differs: an updated library is compared with its old
 * version.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diff/diff.h"

struct member {
	size_t side, index;
	const struct mp_module *module;
};

static size_t root_of(size_t *parent, size_t i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

static bool is_same_module_for_user(const struct mp_module *a, const struct mp_module *b)
{
	if (mp_id_equal(&a->id, &b->id))
		return true;
	return a->kind == b->kind && a->path[0] && !strcmp(a->path, b->path);
}

/* Only modules with samples on a side take part. */
static struct member *list_members(const struct md_diff *diff, size_t *nr)
{
	struct member *members =
		malloc((diff->sides[0].nr + diff->sides[1].nr + 1) * sizeof(*members));
	size_t n = 0;

	for (size_t s = 0; members && s < 2; s++)
		for (size_t i = 0; i < diff->sides[s].nr; i++)
			if (diff->sides[s].more[i].samples)
				members[n++] = (struct member){s, i, &diff->sides[s].modules[i]};
	*nr = n;
	return members;
}

static size_t count_builds(const struct member *members, const size_t *group_of, size_t nr,
			   size_t group)
{
	size_t builds = 0;

	for (size_t i = 0; i < nr; i++) {
		bool seen = false;

		if (group_of[i] != group)
			continue;
		for (size_t k = 0; k < i && !seen; k++)
			seen = group_of[k] == group &&
			       mp_id_equal(&members[k].module->id, &members[i].module->id);
		builds += !seen;
	}
	return builds;
}

static int read_ids(const struct md_diff *diff, struct mp_id *ids, struct mp_err *err)
{
	for (size_t i = 0; i < diff->nr_binaries; i++) {
		struct mp_elf *elf;
		int r = mp_elf_open(diff->binaries[i], MP_ELF_ID, &elf, err);

		if (r)
			return r;
		ids[i] = elf->id;
		mp_elf_close(elf);
	}
	return 0;
}

static bool is_wanted(const struct md_diff *diff, const struct mp_module *module,
		      const struct mp_id *ids)
{
	if (!md_stats_filter_matches(&diff->filter, module))
		return false;
	for (size_t i = 0; i < diff->nr_binaries; i++)
		if (mp_id_equal(&ids[i], &module->id))
			return true;
	return !diff->nr_binaries;
}

static void fill_groups(struct md_diff *diff, const struct member *members, size_t *parent,
			size_t nr, const struct mp_id *ids)
{
	/* Number the groups. The root is always the first member of its group. */
	for (size_t i = 0; i < nr; i++) {
		size_t root = root_of(parent, i);
		struct md_diff_module *more = &diff->sides[members[i].side].more[members[i].index];
		struct md_diff_group *group;

		if (root == i) {
			more->group = diff->nr_groups++;
		} else {
			const struct member *first = &members[root];

			more->group = diff->sides[first->side].more[first->index].group;
		}
		group = &diff->groups[more->group];
		group->samples[members[i].side] += more->samples;
		group->wanted |= is_wanted(diff, members[i].module, ids);
		if (!group->module || members[i].module->last_s >= group->module->last_s) {
			group->module = members[i].module;
			group->path = members[i].module->path;
		}
	}
}

int md_diff_match(struct md_diff *diff, struct mp_err *err)
{
	struct mp_id *ids = calloc(diff->nr_binaries + 1, sizeof(*ids));
	size_t nr = 0, *parent;
	struct member *members = list_members(diff, &nr);
	int r = -ENOMEM;

	parent = malloc((nr + 1) * sizeof(*parent));
	diff->groups = calloc(nr + 1, sizeof(*diff->groups));
	if (!ids || !members || !parent || !diff->groups) {
		mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	r = read_ids(diff, ids, err);
	if (r)
		goto out;
	/*
	 * Keep the first member as the root, so that groups are numbered in the order of
	 * members.
	 */
	for (size_t i = 0; i < nr; i++) {
		parent[i] = i;
		for (size_t k = 0; k < i; k++) {
			size_t a = root_of(parent, k), b = root_of(parent, i);

			if (a == b ||
			    !is_same_module_for_user(members[k].module, members[i].module))
				continue;
			if (a < b)
				parent[b] = a;
			else
				parent[a] = b;
		}
	}
	fill_groups(diff, members, parent, nr, ids);
	for (size_t i = 0; i < nr; i++)
		parent[i] = diff->sides[members[i].side].more[members[i].index].group;
	for (size_t g = 0; g < diff->nr_groups; g++)
		diff->groups[g].nr_builds = count_builds(members, parent, nr, g);
out:
	free(ids);
	free(members);
	free(parent);
	return r;
}
