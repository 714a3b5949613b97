// SPDX-License-Identifier: Apache-2.0
/*
 * build - one compilation with code markers: its code, its markers, and where their increments
 * stand. Decides nothing about other compilations. Called by compilations.
 */
#ifndef ME_BUILD_H
#define ME_BUILD_H

#include <stdint.h>

#include "editor/compilations/file_loops.h"
#include "editor/marker/marker.h"
#include "editor/marker/slice.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"

struct me_build {
	const char *path;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_file_loops loops;
	struct me_markers markers;
	struct me_slices slices;
};

/*
 * me_build_open - reads @path. Return: 0; -EINVAL: it has no markers, or no relocations to find
 * their increments by; else -errno. Ownership: me_build_close(@out), after an error too.
 */
int me_build_open(const char *path, struct me_build *out, struct mp_err *err);
void me_build_close(struct me_build *build);

#endif
