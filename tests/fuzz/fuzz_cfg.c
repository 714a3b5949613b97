// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_cfg - damaged ELF files through mp_elf_open_memory() and mp_cfg_build(): an error, or a
 * graph whose invariants hold.
 */
#include "libprof/cfg/cfg.h"
#include "tests/support/sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	struct mp_cfg *cfg;

	if (mp_elf_open_memory("fuzz", data, size, MP_ELF_ALL, &elf, &err))
		return 0;
	if (!mp_cfg_build(elf, NULL, &cfg, &err)) {
		sound_cfg(cfg);
		mp_cfg_free(cfg);
	}
	mp_elf_close(elf);
	return 0;
}
