// SPDX-License-Identifier: Apache-2.0
/* rows_give - rows for walks in the kernel; see rows_give.h. */
#include "daemon/attribute/rows_give.h"

#include <errno.h>

static bool takes_rows(const struct md_source *source)
{
	return source->has_stacks && source->ops->give_rows;
}

const char *md_rows_give_file(struct md_rows_give *give, struct md_source *source,
			      const struct md_modcache *mc, struct md_file *file,
			      const struct morph_mmap *mmap)
{
	struct md_module *module = md_modcache_module(mc, file->module);
	struct mp_rows laid = {0};
	struct md_source_rows rows = {
		.mmap = mmap,
		.laid = &laid,
		.segments = file->segments,
		.nr_segments = file->nr_segments,
	};
	/* A file that was found in /proc has no generation; its mappings of later have one. */
	uint8_t *given = &file->rows_given[mmap->task.flags & MORPH_MMAP_GENERATION ? 1 : 0];
	int ret;

	/* A file whose rows could not be read may have some. Its rbp is no frame pointer then. */
	if (!takes_rows(source) || !module || !module->rows.rules || *given == give->session)
		return NULL;
	if (module->rows.nr_rows)
		rows.rows = &module->rows;
	*given = give->session;
	ret = source->ops->give_rows(source, &rows);
	/* A source that took the rows may still have no room for the file. */
	if (laid.nr_rows)
		md_module_lay_rows(module, &laid);
	if (!ret) {
		give->nr++;
		give->bytes += module->row_size;
	}
	if (ret != -ENOSPC || give->was_full)
		return NULL;
	give->was_full = true;
	return source->ops->rows_full;
}

void md_rows_give_start(struct md_rows_give *give, struct md_source *source,
			const struct mp_rows *vdso)
{
	const struct morph_segment all = {.size = UINT32_MAX};
	const struct md_source_rows rows = {.segments = &all, .nr_segments = 1, .rows = vdso};

	give->session = give->session == UINT8_MAX ? 1 : give->session + 1;
	give->was_full = false;
	/* Without rows, walks end there: the vDSO has no frame pointers. */
	if (takes_rows(source) && vdso)
		source->ops->give_rows(source, &rows);
}
