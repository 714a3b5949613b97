// SPDX-License-Identifier: Apache-2.0
/*
 * unwind - joins the three new unwind sections. unwind_run decides what they say of the copies,
 * unwind_frame writes it. Called by emit.
 */
#include "editor/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/unwind/unwind_private.h"
#include "libprof/base/assert.h"
#include "libprof/base/round.h"

static int join(const struct me_bytes *lsdas, const struct me_bytes *eh_frame,
		const struct me_bytes *hdr, struct me_unwind *out, struct mp_err *err)
{
	struct me_bytes all = {0};

	out->lsda_off = 0;
	out->lsda_size = lsdas->size;
	me_bytes_put(&all, lsdas->data, lsdas->size);
	me_bytes_align(&all, 8);
	out->eh_frame_off = all.size;
	out->eh_frame_size = eh_frame->size;
	me_bytes_put(&all, eh_frame->data, eh_frame->size);
	me_bytes_align(&all, 8);
	out->hdr_off = all.size;
	out->hdr_size = hdr->size;
	me_bytes_put(&all, hdr->data, hdr->size);
	me_bytes_align(&all, 8);
	if (all.failed) {
		me_bytes_fini(&all);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	out->bytes = all.data;
	out->size = all.size;
	return 0;
}

int me_unwind_build(const struct mp_cfg *cfg, const struct me_placed *placed, uint32_t nr_placed,
		    uint64_t base_vaddr, uint64_t runtime, uint64_t answers, struct me_unwind *out,
		    struct mp_err *err)
{
	struct me_frames frames = {0};
	struct me_runs runs = {0};
	struct mp_cfi_rules rules;
	uint64_t eh_frame_vaddr, hdr_vaddr;
	int ret;

	mp_assert(mp_ascends(placed, nr_placed, new_vaddr));
	*out = (struct me_unwind){0};
	if (base_vaddr & 7)
		return mp_err_set(err, EBADMSG, "unwind tables must start at a multiple of 8");
	if (mp_cfi_rules_init(&rules))
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = me_runs_build(cfg, placed, nr_placed, base_vaddr, &rules, &runs, err);
	out->failed_at = runs.failed_at;
	if (ret)
		goto out;
	eh_frame_vaddr = base_vaddr + mp_round_up(runs.lsdas.size, 8);
	ret = me_frames_build(cfg->elf, &runs, eh_frame_vaddr, runtime, answers, &frames, err);
	if (ret)
		goto out;
	hdr_vaddr = eh_frame_vaddr + mp_round_up(frames.eh_frame.size, 8);
	ret = me_frames_put_hdr(&frames, eh_frame_vaddr, hdr_vaddr, cfg->elf, err);
	if (!ret)
		ret = join(&runs.lsdas, &frames.eh_frame, &frames.hdr, out, err);
	out->nr_fdes_new = runs.nr;
out:
	me_frames_fini(&frames);
	me_runs_fini(&runs);
	mp_cfi_rules_fini(&rules);
	return ret;
}
