// SPDX-License-Identifier: Apache-2.0
/* own_files - scans /proc/self as a source does when it starts; see own_files.h. */
#include "tests/support/process/own_files.h"

#include <unistd.h>

#include "daemon/module/modcache.h"
#include "daemon/record/record.h"
#include "daemon/source/proc_scan.h"

int own_files_each(struct md_modcache *modcache,
		   int (*take)(struct morph_record *record, struct md_file *file, void *arg),
		   void *arg)
{
	struct md_buf scan = {0};
	struct morph_record *record;
	size_t pos = 0;
	int ret = md_proc_scan(getpid(), 0, NULL, &scan);

	while (!ret && !md_record_next(scan.data, scan.size, &pos, &record)) {
		struct md_file *file = NULL;

		if (record->type == MORPH_REC_MMAP) {
			struct morph_mmap *mmap = (void *)record;

			ret = md_modcache_resolve(modcache, mmap, 0, &file);
			if (!ret)
				mmap->module = file->number;
		}
		if (!ret)
			ret = take(record, file, arg);
	}
	md_buf_fini(&scan);
	return ret;
}

static int attribute(struct morph_record *record, struct md_file *file, void *arg)
{
	(void)file;
	return md_attribute_record(arg, record);
}

int own_files_attribute(struct md_attribute *at)
{
	return own_files_each(at->modcache, attribute, at);
}
