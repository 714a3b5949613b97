// SPDX-License-Identifier: Apache-2.0
/* defaults - numbers of morph-stats and morph, with their units and reasons. */
#ifndef MD_STATS_DEFAULTS_H
#define MD_STATS_DEFAULTS_H

/* ---- morph-stats --------------------------------------------------------------------------- */

/* Without --limit and --percent-limit, smaller rows are left out: of call graphs, of calling contexts. */
#define MD_STATS_GRAPH_PERCENT	  0.1
#define MD_STATS_CONTEXTS_PERCENT 1.0

/* ---- morph --------------------------------------------------------------------------------- */

/* Programs below this share of the machine's samples are shown with --all only. */
#define MD_MORPH_LEAST_SHARE 0.001
/* Seconds that estimates of what layouts gain may take together, before something is shown. */
#define MD_MORPH_ESTIMATE_S 5.0
/* Programs of which that is estimated: those with the most samples. */
#define MD_MORPH_ESTIMATES 25
/* Seconds between two tables of `morph top'. */
#define MD_MORPH_DELAY_S 2

#endif
