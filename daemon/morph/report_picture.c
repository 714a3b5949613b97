// SPDX-License-Identifier: Apache-2.0
/* report_picture - the heat picture of one program, as `morph-stats heat' draws it; see report.h. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/draw/heat_draw.h"
#include "daemon/machine/module_counts.h"
#include "daemon/morph/report.h"

struct drawing {
	struct md_module_counts counts;
	struct mp_elf *after_elf;
	struct mp_map *map;
	struct mp_ip_count *loose;
	uint64_t *func_samples;
	size_t nr_loose;
	struct md_heat before, after;
	struct md_heat_picture picture;
};

static void fini(struct drawing *d)
{
	md_heat_fini(&d->before);
	md_heat_fini(&d->after);
	mp_map_free(d->map);
	mp_elf_close(d->after_elf);
	free(d->loose);
	free(d->func_samples);
	md_module_counts_fini(&d->counts);
}

/* Samples by function, and those outside of all blocks. */
static int sort_samples(struct drawing *d)
{
	const struct mp_cfg *cfg = d->counts.code.cfg;

	d->func_samples = calloc((size_t)cfg->nr_funcs + 1, sizeof(*d->func_samples));
	d->loose = calloc(d->counts.nr_ips + 1, sizeof(*d->loose));
	if (!d->func_samples || !d->loose)
		return -ENOMEM;
	for (size_t i = 0; i < d->counts.nr_ips; i++) {
		const struct mp_ip_count *ip = &d->counts.ips[i];
		uint32_t f = mp_cfg_func_at(cfg, ip->vaddr);

		d->func_samples[f == MP_NONE ? cfg->nr_funcs : f] += ip->count;
		d->picture.nr_samples += ip->count;
		if (mp_cfg_block_at(cfg, ip->vaddr) != MP_NONE ||
		    !mp_elf_is_code(d->counts.code.elf, ip->vaddr))
			continue;
		d->loose[d->nr_loose++] = *ip;
		d->picture.nr_loose += ip->count;
	}
	return 0;
}

/* The optimised version, if it is in the program's place. Without it the original is drawn alone. */
static int open_after(struct drawing *d, const struct md_machine_program *p, struct mp_err *err)
{
	int r = p->file == MD_FILE_OUTPUT ? mp_elf_open(p->path, MP_ELF_SYMBOLS, &d->after_elf, err)
					  : -ENOENT;

	if (!r)
		r = mp_map_read(d->after_elf, &d->map, err);
	if (r)
		return mp_err_is_failure(r) ? r : 0;
	if (!mp_id_equal(&d->map->original, &d->counts.code.elf->id)) {
		mp_map_free(d->map);
		d->map = NULL;
	}
	return 0;
}

static int compute(struct drawing *d)
{
	struct md_heat_input in = {.cfg = d->counts.code.cfg, .counts = &d->counts.counts};
	int r = sort_samples(d);

	in.loose = d->loose;
	in.nr_loose = d->nr_loose;
	if (!r)
		r = md_heat_before(&in, &d->before);
	if (!r && d->map)
		r = md_heat_after(&in, d->map, d->after_elf, &d->after);
	if (!r && !(d->before.insns > 0))
		r = -ENODATA;
	if (!r)
		r = md_heat_figures_count(&d->before, d->before.insns, &d->picture.before_figures);
	if (!r && d->map && !d->after.nr_unplaced)
		r = md_heat_figures_count(&d->after, d->before.insns, &d->picture.after_figures);
	return r;
}

int md_report_picture_draw(struct mp_store *store, const struct md_machine_program *p,
			   struct md_report_picture *out, struct mp_err *err)
{
	struct drawing d = {0};
	FILE *file;
	int r;

	*out = (struct md_report_picture){.path = p->path};
	if (!p->module)
		return mp_err_set(err, ENODATA, "%s: no sample", p->path);
	r = md_module_counts_read(store, p->module, 0, &d.counts, err);
	if (!r)
		r = open_after(&d, p, err);
	if (!r)
		r = compute(&d);
	if (!r) {
		d.picture.program = p->path;
		d.picture.cfg = d.counts.code.cfg;
		d.picture.func_samples = d.func_samples;
		d.picture.before = &d.before;
		d.picture.after = d.map && !d.after.nr_unplaced ? &d.after : NULL;
		out->after = d.picture.after != NULL;
		file = open_memstream(&out->svg, &out->size);
		r = file ? md_heat_draw_svg(&d.picture, file) : -ENOMEM;
		if (file && fclose(file))
			r = -ENOMEM;
	}
	if (r) {
		free(out->svg);
		out->svg = NULL;
	}
	fini(&d);
	return r;
}
