// SPDX-License-Identifier: Apache-2.0
/*
 * separate - debug information in a file of its own, as distributions ship it: which file that is,
 * and the one that goes with an output.
 *
 * Such a file has the sections of the program, those that are loaded without their bytes (objcopy
 * --only-keep-debug, eu-strip -f). Debuggers find it by the build-id, or by name and checksum.
 */
#ifndef ME_SEPARATE_H
#define ME_SEPARATE_H

#include <stdint.h>

#include "editor/debug.h"
#include "editor/image.h"
#include "editor/phdr_room.h"
#include "editor/place.h"
#include "libprof/cfg.h"
#include "libprof/elf.h"
#include "libprof/err.h"

#define ME_SEPARATE_AUTO "auto"

/*
 * me_separate_open - the debug file of @elf: @path, or with ME_SEPARATE_AUTO what a debugger would
 * take: by build-id, by .gnu_debuglink, from debuginfod's cache. Nothing is asked of a server.
 * Return: 0; -ENOENT none was found (ME_SEPARATE_AUTO alone; @err says nothing); -EPERM it is not @elf's or
 * cannot be used; else as mp_elf_open(). Ownership: *@out is the caller's, by mp_elf_close().
 */
int me_separate_open(const struct mp_elf *elf, const char *path, struct mp_elf **out,
		     struct mp_err *err);

struct me_separate {
	const struct mp_elf *elf; /* the original's debug file */
	/* Of the output: */
	const uint8_t *head;	      /* its first bytes: program headers */
	const uint8_t *build_id_note; /* contents of the section of this name, or NULL: it has none */
	const Elf64_Shdr *new_sections; /* ME_NR_NEW_SECTIONS of them */
	const struct me_displaced *displaced;
};

/*
 * me_separate_build - the debug file of an output.
 * Return: 0, -ENOMEM, -EPERM. Ownership: me_image_fini(@image), also on failure; parts of it point into
 * @separate->elf.
 */
int me_separate_build(const struct me_separate *separate, const struct mp_cfg *cfg,
		      const struct me_placement *placement, struct me_image *image,
		      struct me_debug_report *report, struct mp_err *err);

#endif
