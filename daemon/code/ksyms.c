// SPDX-License-Identifier: Apache-2.0
/* ksyms - reads and sorts /proc/kallsyms; see ksyms.h. */
#include "daemon/code/ksyms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/module/kernel.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static int add(struct md_ksyms *ksyms, uint64_t vaddr, const char *name)
{
	if (mp_grow(ksyms->all, ksyms->max, ksyms->nr + 1))
		return -ENOMEM;
	ksyms->all[ksyms->nr] = (struct md_ksym){.vaddr = vaddr, .name = strdup(name)};
	return ksyms->all[ksyms->nr++].name ? 0 : -ENOMEM;
}

/* By address, then by name, so that reports are reproducible. */
static int compare(const void *a, const void *b)
{
	const struct md_ksym *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort(struct md_ksyms *ksyms, uint64_t end)
{
	size_t kept = 0;

	if (!ksyms->nr)
		return;
	qsort(ksyms->all, ksyms->nr, sizeof(*ksyms->all), compare);
	for (size_t i = 0; i < ksyms->nr; i++) {
		if (kept && ksyms->all[kept - 1].vaddr == ksyms->all[i].vaddr)
			free(ksyms->all[i].name);
		else
			ksyms->all[kept++] = ksyms->all[i];
	}
	ksyms->nr = kept;
	for (size_t i = 0; i < kept; i++)
		ksyms->all[i].size =
			(i + 1 < kept ? ksyms->all[i + 1].vaddr : end) - ksyms->all[i].vaddr;
}

int md_ksyms_read(FILE *file, uint64_t size, struct md_ksyms *out)
{
	char line[512], name[256], type;
	uint64_t address, start = 0;
	int r = 0;

	*out = (struct md_ksyms){0};
	while (!start && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3 &&
		    !strcmp(name, "_text"))
			start = address;
	if (!start)
		return -EACCES;
	/* Symbols at the same address may precede _text, so start again. */
	rewind(file);
	while (!r && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) != 3 ||
		    !strchr("tTwW", type) || address < start || address - start >= size ||
		    strchr(line, '['))
			continue;
		/* Skip linker marks, which name no function. */
		if (!strcmp(name, "_text") || !strcmp(name, "_stext") || !strcmp(name, "_etext"))
			continue;
		r = add(out, address - start + MD_KERNEL_LINK_TEXT, name);
	}
	if (r)
		md_ksyms_fini(out);
	else
		sort(out, MD_KERNEL_LINK_TEXT + size);
	return r;
}

int md_ksyms_open(const struct mp_module *module, struct md_ksyms *out)
{
	struct md_kernel kernel;
	FILE *file;
	int r;

	*out = (struct md_ksyms){0};
	if (module->kind != MP_MODULE_KERNEL)
		return -ENOENT;
	md_kernel_read(0, &kernel);
	if (!kernel.text.size) {
		/*
		 * Addresses are hidden, so the kernel's id is specific to this boot: compare
		 * only the build-id.
		 */
		return kernel.id.build_id_len == module->id.build_id_len &&
				       !memcmp(kernel.id.build_id, module->id.build_id,
					       kernel.id.build_id_len)
			       ? -EACCES
			       : -ENOENT;
	}
	if (!mp_id_equal(&kernel.id, &module->id))
		return -ENOENT;
	file = fopen("/proc/kallsyms", "re");
	if (!file)
		return -EACCES;
	r = md_ksyms_read(file, kernel.text.size, out);
	fclose(file);
	return r;
}

void md_ksyms_fini(struct md_ksyms *ksyms)
{
	for (size_t i = 0; i < ksyms->nr; i++)
		free(ksyms->all[i].name);
	free(ksyms->all);
	*ksyms = (struct md_ksyms){0};
}

const struct md_ksym *md_ksyms_at(const struct md_ksyms *ksyms, uint64_t vaddr)
{
	size_t low = mp_search(i, 0, ksyms->nr, ksyms->all[i].vaddr <= vaddr);

	if (!low || vaddr - ksyms->all[low - 1].vaddr >= ksyms->all[low - 1].size)
		return NULL;
	return &ksyms->all[low - 1];
}

static bool is_wanted(const struct md_ksyms *ksyms, const struct md_ksym *sym, const char *wanted)
{
	unsigned long long address;
	char *end;

	if (!wanted)
		return true;
	if (!sym)
		return false;
	if (!strcmp(sym->name, wanted))
		return true;
	if (strncmp(wanted, "0x", 2))
		return false;
	address = strtoull(wanted, &end, 16);
	return !*end && md_ksyms_at(ksyms, address) == sym;
}

static int add_row(struct md_rows *rows, struct md_row *row, const struct md_ksym *sym)
{
	if (sym) {
		row->function = strdup(sym->name);
		if (!row->function)
			return -ENOMEM;
	}
	return md_rows_add(rows, row);
}

int md_rows_of_kernel(struct md_rows *rows, const struct mp_module *module,
		      const struct md_ksyms *ksyms, bool addresses, const char *function,
		      const struct mp_ip_count *counts, size_t nr)
{
	struct md_row outside = {.module = module};
	int r = 0;

	for (size_t i = 0, end; i < nr && !r; i = end) {
		const struct md_ksym *sym = md_ksyms_at(ksyms, counts[i].vaddr);
		struct md_row row = {.module = module, .vaddr = counts[i].vaddr};

		/* Counts ascend, so the counts of a function are adjacent. */
		for (end = i; end < nr &&
			      (end == i ||
			       (!addresses && sym && counts[end].vaddr - sym->vaddr < sym->size));
		     end++)
			row.samples += counts[end].count;
		if (!is_wanted(ksyms, sym, function))
			continue;
		if (!sym && !addresses) {
			outside.vaddr = outside.samples ? outside.vaddr : row.vaddr;
			outside.samples += row.samples;
			continue;
		}
		if (sym && addresses) {
			row.offset = row.vaddr - sym->vaddr;
		} else if (sym) {
			row.vaddr = sym->vaddr;
			row.size = sym->size;
		}
		r = add_row(rows, &row, sym);
	}
	if (!r && outside.samples)
		r = md_rows_add(rows, &outside);
	return r;
}
