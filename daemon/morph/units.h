// SPDX-License-Identifier: Apache-2.0
/*
 * units - the units of systemd that start morph-worker. Packages leave these units disabled; the
 * first rule of an administrator enables them. Called by morph_watch.c.
 */
#ifndef MD_UNITS_H
#define MD_UNITS_H

enum md_units {
	MD_UNITS_NONE,	  /* no systemd, no such units, or not root */
	MD_UNITS_ENABLED, /* they were enabled before */
	MD_UNITS_CHANGED, /* they are enabled now */
	MD_UNITS_FAILED,  /* systemctl could not enable them, and has said why */
};

/* md_units_enable - see to it that morph-optimize.timer and .path are enabled and active. */
enum md_units md_units_enable(void);

#endif
