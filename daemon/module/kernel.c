// SPDX-License-Identifier: Apache-2.0
/* kernel - reads the identity and position of the running kernel; see kernel.h. */
#include "daemon/module/kernel.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXT_SIZE_MAX UINT64_C(0x40000000) /* no image is larger */

static void read_build_id(struct mp_id *id)
{
	uint8_t notes[4096];
	FILE *f = fopen("/sys/kernel/notes", "re");
	size_t size, pos = 0, name, desc;
	Elf64_Nhdr h;

	if (!f)
		return;
	size = fread(notes, 1, sizeof(notes), f);
	fclose(f);
	while (size - pos >= sizeof(h)) {
		memcpy(&h, notes + pos, sizeof(h));
		pos += sizeof(h);
		name = (h.n_namesz + 3) & ~(size_t)3;
		desc = (h.n_descsz + 3) & ~(size_t)3;
		if (name > size - pos || desc > size - pos - name)
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 &&
		    !memcmp(notes + pos, "GNU", 4)) {
			id->build_id_len = h.n_descsz < sizeof(id->build_id) ? h.n_descsz
									     : sizeof(id->build_id);
			memcpy(id->build_id, notes + pos + name, id->build_id_len);
			return;
		}
		pos += name + desc;
	}
}

/* Return: size of the kernel's text, from its physical addresses; 0: hidden. */
static uint64_t read_text_size(void)
{
	FILE *f = fopen("/proc/iomem", "re");
	uint64_t start, end, size = 0;
	char line[256];

	if (!f)
		return 0;
	while (!size && fgets(line, sizeof(line), f))
		if (strstr(line, "Kernel code") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start)
			size = end - start + 1;
	fclose(f);
	return size;
}

/*
 * /proc/kallsyms is sorted by address: _text is near its head. Read on to _etext only if the
 * text's size is not known.
 */
static void read_text(uint64_t base, struct md_kernel *out)
{
	uint64_t address, start = 0, size = read_text_size();
	bool is_found = base && size;
	char line[512], name[128];
	FILE *f = is_found ? NULL : fopen("/proc/kallsyms", "re");

	while (f && !(start && size) && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %127s", &address, name) != 2)
			continue;
		if (!strcmp(name, "_text"))
			start = address;
		else if (!strcmp(name, "_etext") && start)
			size = address - start;
	}
	if (f)
		fclose(f);
	out->text_size = size;
	if (base)
		out->text = (struct morph_segment){base, MD_KERNEL_LINK_TEXT,
						   size ? size : TEXT_SIZE_MAX};
	else if (start && size)
		out->text = (struct morph_segment){start, MD_KERNEL_LINK_TEXT, size};
}

void md_kernel_read(uint64_t base, struct md_kernel *out)
{
	char boot[64] = "";
	struct utsname u;
	FILE *f;

	memset(out, 0, sizeof(*out));
	uname(&u);
	snprintf(out->name, sizeof(out->name), "[kernel %.64s]", u.release);
	read_build_id(&out->id);
	if (!out->id.build_id_len)
		out->id.text_hash = XXH3_64bits(u.version, strlen(u.version));
	read_text(base, out);
	if (out->text.size)
		return;
	/* Unshifted addresses mean nothing after a reboot, so use one module per boot. */
	out->remark = "/proc/kallsyms hides addresses: samples of the kernel are only valid for "
		      "this boot";
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f) {
		if (!fgets(boot, sizeof(boot), f))
			boot[0] = 0;
		fclose(f);
	}
	out->id.text_hash ^= XXH3_64bits(boot, strlen(boot));
}
