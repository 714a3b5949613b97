// SPDX-License-Identifier: Apache-2.0
/*
 * debug_file - separate debug files, as distributions ship them: finds the debug file of a program,
 * and makes the debug file of an output.
 *
 * Such a file has all sections of the program; those that are loaded have no bytes (objcopy
 * --only-keep-debug, eu-strip -f). Debuggers find it by the build-id, or by name and checksum.
 */
#ifndef ME_DEBUG_FILE_H
#define ME_DEBUG_FILE_H

#include <stdint.h>

#include "editor/debug/debug.h"
#include "editor/place/output_parts.h"
#include "editor/place/phdr_extend.h"
#include "editor/place/place.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

#define ME_DEBUG_FILE_AUTO "auto"

/*
 * me_debug_file_open - opens the debug file of @elf: @path, or with ME_DEBUG_FILE_AUTO the file
 * that a debugger finds: by build-id, by .gnu_debuglink, in debuginfod's cache. No server is
 * asked.
 * Return: 0; -ENOENT none was found (only ME_DEBUG_FILE_AUTO; @err is not set); -EPERM it is not
 * @elf's or cannot be used; else as mp_elf_open(). Ownership: mp_elf_close(*@out).
 */
int me_debug_file_open(const struct mp_elf *elf, const char *path, struct mp_elf **out,
		       struct mp_err *err);

struct me_debug_file_input {
	const struct mp_elf *elf; /* the original's debug file */
	/* From the output: */
	const uint8_t *head;		/* first bytes of the output: its headers */
	const uint8_t *build_id_note;	/* contents of its .note.gnu.build-id; NULL: none */
	const Elf64_Shdr *new_sections; /* ME_NR_NEW_SECTIONS of them */
	const struct me_displaced *displaced;
};

/*
 * me_debug_file_build - makes the debug file of an output.
 * Return: 0, -ENOMEM, -EPERM. Ownership: me_output_parts_fini(@output), also on failure; parts
 * of it point into @in->elf.
 */
int me_debug_file_build(const struct me_debug_file_input *in, const struct mp_cfg *cfg,
			const struct me_placement *placement, struct me_output_parts *output,
			struct me_debug_report *report, struct mp_err *err);

#endif
