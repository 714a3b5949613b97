// SPDX-License-Identifier: Apache-2.0
/*
 * verify_own - the list of who checked which bytes of the output. Each check claims the bytes that it has
 * proved; in the end every byte of the file must have one owner, and no byte two. So nothing is left over that
 * no rule accounts for.
 *
 * All parts of verify claim, in the thread that runs the checks one after the other.
 */
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "libprof/base/grow.h"

/*
 *	offset  0      64     232          0x3000 0x3140  0x3150 ...    size
 *		| ehdr | phdrs | old bytes  | gap  | copies | padding ... |
 *
 * One check claims in ascending order, mostly: the list consists of a few ascending runs. Runs that do not
 * overlap are only put in order, which takes no time for a list of many pieces.
 */

static const struct {
	const char *name;
	const char *freedom; /* why some of the bytes may have other values; NULL: none may */
} owners[ME_NR_OWNERS] = {
	[ME_OWNER_EHDR] = {"ELF header", NULL},
	[ME_OWNER_PHDRS] = {"program headers", NULL},
	[ME_OWNER_OLD] =
		{"bytes of the original, the same or changed as proved",
		 "a branch, a table or a pointer may lead to a block's old place or to any copy of it; "
		 "the size of a dynamic symbol may end with any copy"},
	[ME_OWNER_BUILD_ID] = {"build-id",
			       "a name of which nothing is computed: any but the original's"},
	[ME_OWNER_MOVED] = {"bytes behind the program headers, which moved", NULL},
	[ME_OWNER_GAP] = {"zeros up to an alignment", NULL},
	[ME_OWNER_COPY] =
		{"copies of code",
		 "a branch may lead to a block's old place or to any copy of it, by any stub of it"},
	[ME_OWNER_STUB] =
		{"stubs",
		 "a stub may lead to its block's old place or to any copy of it; a number that "
		 "a stub keeps says only what a profile means"},
	[ME_OWNER_PADDING] = {"no-ops and int3 between copies", NULL},
	[ME_OWNER_RUNTIME] = {"runtime", NULL},
	[ME_OWNER_ANSWERS] = {"answers about enclosing functions", NULL},
	[ME_OWNER_COUNTS_PATH] = {"path of the file of counts", "it says where counts go"},
	[ME_OWNER_VERSION_TABLES] = {"jump tables of versions",
				     "an entry may lead to any copy of its block"},
	[ME_OWNER_LSDA] =
		{"exception tables",
		 "a call site may cover padding; a landing pad may be any copy of its block"},
	[ME_OWNER_EH_FRAME] = {"unwind rows", "a row may cover padding"},
	[ME_OWNER_EH_FRAME_HDR] = {"search table of unwind rows", NULL},
	[ME_OWNER_MAP] = {"map note", NULL},
	[ME_OWNER_KEPT] = {"sections that are not loaded, unchanged", NULL},
	[ME_OWNER_SYMBOLS] = {"symbols",
			      "the size of a symbol of copies is for debuggers: the symbol may end "
			      "where copies of any function end"},
	[ME_OWNER_STRINGS] = {"names of symbols", NULL},
	[ME_OWNER_SECTION_NAMES] = {"names of sections", NULL},
	[ME_OWNER_SHDRS] =
		{"section headers",
		 "the section of exception tables may count the zeros behind them; an empty section that "
		 "is not loaded may lie anywhere"},
	[ME_OWNER_DEBUG_INFO] =
		{"entries of debug information",
		 "where they lead to added lists and line programs: no run depends on it"},
	[ME_OWNER_DEBUG_ADDED] = {"added debug information", "no run depends on it"},
	[ME_OWNER_LINK] = {"link to the debug file", NULL},
	[ME_OWNER_TABLE] = {"table of what is counted", "it says what counts mean"},
};

const char *me_owner_name(enum me_owner owner)
{
	return owners[owner].name;
}

const char *me_owner_freedom(enum me_owner owner)
{
	return owners[owner].freedom;
}

/* Ascending claims, from @first up to the next run's. */
struct vf_run {
	uint32_t start; /* the file offset of its first claim */
	uint32_t first, nr;
};

void vf_owned_fini(struct vf_owned *owned)
{
	free(owned->list);
	*owned = (struct vf_owned){0};
}

void vf_own(const struct vf *vf, uint64_t off, uint64_t size, enum me_owner owner)
{
	struct vf_owned *owned = vf->owned;
	struct me_owned *last = owned->nr ? &owned->list[owned->nr - 1] : NULL;

	if (!size)
		return;
	if (off > vf->n->size || size > vf->n->size - off) {
		owned->outside = true;
		return;
	}
	if (last && last->end == off && last->owner == owner) {
		last->end += (uint32_t)size;
		return;
	}
	owned->nr_runs += !last || last->end > off;
	if (mp_push(owned->list, owned->nr, owned->cap,
		    (struct me_owned){(uint32_t)off, (uint32_t)(off + size), (uint32_t)owner}))
		owned->failed = true;
}

void vf_own_at(const struct vf *vf, uint64_t vaddr, uint64_t size, enum me_owner owner)
{
	const uint8_t *bytes = size ? mp_elf_bytes(vf->n, vaddr, size) : NULL;

	if (bytes)
		vf_own(vf, (uint64_t)(bytes - vf->n->data), size, owner);
	else if (size)
		vf->owned->outside = true;
}

static int by_run(const void *a, const void *b)
{
	const struct vf_run *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_offset(const void *a, const void *b)
{
	const struct me_owned *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Put whole runs in order, in @to. */
static void order_runs(const struct me_owned *list, size_t nr, struct vf_run *runs,
		       uint32_t nr_runs, struct me_owned *to)
{
	uint32_t k = 0;

	for (size_t i = 0; i < nr; i++) {
		if (!i || list[i].start < list[i - 1].end)
			runs[k++] = (struct vf_run){list[i].start, (uint32_t)i, 0};
		runs[k - 1].nr++;
	}
	qsort(runs, nr_runs, sizeof(*runs), by_run);
	for (k = 0; k < nr_runs; k++) {
		memcpy(to, list + runs[k].first, runs[k].nr * sizeof(*to));
		to += runs[k].nr;
	}
}

static int sort(struct vf_owned *owned)
{
	struct vf_run *runs;
	struct me_owned *list;
	size_t i = 1;

	if (owned->nr_runs < 2)
		return 0;
	runs = malloc(owned->nr_runs * sizeof(*runs));
	list = malloc(owned->nr * sizeof(*list));
	if (!runs || !list) {
		free(runs);
		free(list);
		return -ENOMEM;
	}
	order_runs(owned->list, owned->nr, runs, owned->nr_runs, list);
	free(runs);
	free(owned->list);
	owned->list = list;
	owned->cap = owned->nr;
	while (i < owned->nr && list[i].start >= list[i - 1].start)
		i++;
	if (i < owned->nr) /* runs overlap: names of sections */
		qsort(list, owned->nr, sizeof(*list), by_offset);
	return 0;
}

int vf_check_owned(const struct vf *vf)
{
	struct vf_owned *owned = vf->owned;
	uint32_t at = 0;
	int ret = owned->failed ? -ENOMEM : sort(owned);

	if (ret)
		return ret;
	if (owned->outside)
		return vf_refuse(vf, 0, "a check is about bytes outside of the file");
	for (size_t i = 0; i < owned->nr; i++) {
		const struct me_owned *o = &owned->list[i];

		if (o->start < at)
			return vf_refuse(vf, 0, "file offset %#x belongs to two: %s, and %s",
					 o->start, owners[owned->list[i - 1].owner].name,
					 owners[o->owner].name);
		if (o->start > at)
			break;
		at = o->end;
	}
	if (at != vf->n->size)
		return vf_refuse(vf, 0, "nothing accounts for the bytes at file offset %#x", at);
	return 0;
}
