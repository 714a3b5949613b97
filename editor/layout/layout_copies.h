#ifndef ME_LAYOUT_COPIES_H
#define ME_LAYOUT_COPIES_H
#include "editor/layout/layout_private.h"
struct me_copies;
int me_copies_choose(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const uint8_t *eligible, uint8_t *zones, struct me_copies **out);
const struct mp_counts *me_copies_rest(const struct me_copies *c);
int me_copies_add(struct me_copies *c, const struct me_layout_options *options,
		  struct me_plan *plan);
#endif
