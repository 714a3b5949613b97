// SPDX-License-Identifier: Apache-2.0
/* build - opens one compilation; see build.h. */
#include "editor/compilations/build.h"

#include <errno.h>

int me_build_open(const char *path, struct me_build *out, struct mp_err *err)
{
	int rc;

	*out = (struct me_build){.path = path};
	rc = mp_elf_open(path, MP_ELF_ALL, &out->elf, err);
	if (rc)
		return rc;
	if (!out->elf->relinkable)
		return mp_err_set(err, EINVAL, "%s: was linked without -Wl,--emit-relocs", path);
	rc = me_markers_find(out->elf, &out->markers, err);
	if (!rc && !out->markers.nr)
		return mp_err_set(err, EINVAL,
				  "%s: has no code markers (compile with morph_marker.so, do not "
				  "strip)",
				  path);
	if (!rc)
		rc = mp_cfg_build(out->elf, NULL, &out->cfg, err);
	if (!rc && me_file_loops_find(out->cfg, &out->loops))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	return rc ? rc : me_slices_find(out->cfg, &out->markers, NULL, &out->slices, err);
}

void me_build_close(struct me_build *build)
{
	me_slices_fini(&build->slices);
	me_markers_fini(&build->markers);
	me_file_loops_fini(&build->loops);
	mp_cfg_free(build->cfg);
	mp_elf_close(build->elf);
	*build = (struct me_build){.path = build->path};
}
