// SPDX-License-Identifier: Apache-2.0
/* report_gains - the part of the fleet's page about gains: a picture of intervals. Called by report_page. */
#ifndef MD_FLEET_REPORT_GAINS_H
#define MD_FLEET_REPORT_GAINS_H

#include "daemon/fleet/report/report_page.h"

void md_fleet_report_put_gains(const struct md_fleet_report *report, FILE *out);

/* report_page.c: how a module is called, by its row. */
void md_fleet_report_put_module(FILE *out, const json_t *row);

#endif
