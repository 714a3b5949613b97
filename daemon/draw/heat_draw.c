// SPDX-License-Identifier: Apache-2.0
/*
 * heat_draw - draws title, figures, legend and the two panels of the heat picture. Decides
 * colours, words and places. heat_panel.c draws a panel.
 */
#include "daemon/draw/heat_draw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/draw/heat_panel.h"
#include "libprof/cli/svg.h"

#define WIDTH	     1600
#define MARGIN	     24
#define PANEL_TOP    222.0
#define PANEL_BOTTOM 966.0
#define FIGURES_LEFT 1010.0

static const char style[] =
	"<style>text{font-family:'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;"
	"fill:#1a1a1a}.q{fill:#555}.e{text-anchor:end}.m{text-anchor:middle}.b{font-weight:bold}"
	".f{fill:#06c;fill-opacity:0}.f:hover,.f.on{fill-opacity:.35;stroke:#036;"
	"stroke-width:1.2;vector-effect:non-scaling-stroke}</style>\n";

/* Optional: highlights the same function in both panels, and zooms. */
static const char script[] =
	"<script>/*<![CDATA[*/\n"
	"(function(){var s=document.getElementById('morph-heat'),v=s.viewBox.baseVal;\n"
	"var w0=v.width,h0=v.height,by={};\n"
	"s.querySelectorAll('[data-f]').forEach(function(e){var k=e.getAttribute('data-f');\n"
	"(by[k]=by[k]||[]).push(e);\n"
	"e.addEventListener('mouseenter',function(){by[k].forEach(function(x)"
	"{x.classList.add('on')})});\n"
	"e.addEventListener('mouseleave',function(){by[k].forEach(function(x)"
	"{x.classList.remove('on')})})});\n"
	"s.addEventListener('wheel',function(e){e.preventDefault();\n"
	"var m=s.getScreenCTM().inverse(),p=s.createSVGPoint();p.x=e.clientX;p.y=e.clientY;\n"
	"p=p.matrixTransform(m);var z=Math.min(e.deltaY<0?.8:1.25,w0/v.width);\n"
	"v.x=p.x-(p.x-v.x)*z;v.y=p.y-(p.y-v.y)*z;v.width*=z;v.height*=z},{passive:false});\n"
	"s.addEventListener('dblclick',function(){v.x=v.y=0;v.width=w0;v.height=h0})})();\n"
	"/*]]>*/</script>\n";

/* ---- words --------------------------------------------------------------------------------- */

static void draw_title(const struct md_heat_picture *p, FILE *out)
{
	char *name = mp_svg_fit_text(p->program, 26, 420);
	char buf[1024];

	snprintf(buf, sizeof(buf), "%s: where the code that runs lies%s", name ? name : "program",
		 p->after ? ", before and after" : "");
	free(name);
	mp_svg_put_words(out, MARGIN, 44, 26, "b", buf);
	mp_svg_put_words(out, MARGIN, 72, 16, "",
			 "Each coloured cell is a cache line: 64 bytes of machine code that ran. "
			 "The darker it is, the more was executed there.");
	mp_svg_put_words(
		out, MARGIN, 94, 16, "",
		p->after
			? "Both halves show the same work at the same scale. The processor fetches "
			  "code by lines and pages: fewer is better."
			: "The processor fetches code by lines and pages: the fewer hold what runs, "
			  "the better.");
}

static const char *share_label(double share, char *buf)
{
	snprintf(buf, 32, "%.6g %%", 100 * share);
	return buf;
}

static void draw_legend(const struct md_heat_scale *scale, FILE *out)
{
	double x = MARGIN, y = 136;
	char buf[32], text[64];

	mp_svg_put_words(out, x, y - 8, 14, "b", "Share of all executed instructions in one line");
	for (int i = MD_HEAT_CLASSES - 1; i >= 0; i--) {
		mp_svg_put(out,
			   "<rect x=\"%n\" y=\"%n\" width=\"60\" height=\"16\" fill=\"%s\"/>\n", x,
			   y, md_heat_colours[i]);
		snprintf(text, sizeof(text), "%s%s", i ? "" : "\xe2\x89\xa5 ",
			 i == MD_HEAT_CLASSES - 1 ? "less" : share_label(scale->least[i], buf));
		mp_svg_put_words(out, x + 30, y + 31, 13, "m", text);
		x += 60;
	}
	x += 20;
	mp_svg_put(out,
		   "<rect x=\"%n\" y=\"%n\" width=\"72\" height=\"16\" fill=\"" MD_HEAT_IDLE
		   "\"/>\n",
		   x, y);
	mp_svg_put_words(out, x + 36, y + 31, 13, "m", "not seen to run");
	x += 104;
	mp_svg_put_words(out, x, y - 8, 14, "b", "Jumps and calls from row to row");
	mp_svg_put(out, "<defs><marker id=\"fw\" viewBox=\"0 0 6 6\" refX=\"1\" refY=\"3\" "
			"markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\"><path "
			"d=\"M0 0L6 3L0 6z\" fill=\"" MD_HEAT_FORWARD
			"\"/></marker><marker id=\"bw\" viewBox=\"0 0 6 6\" refX=\"1\" refY=\"3\" "
			"markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\"><path "
			"d=\"M0 0L6 3L0 6z\" fill=\"" MD_HEAT_BACKWARD "\"/></marker></defs>\n");
	mp_svg_put(out,
		   "<path d=\"M%n %nh36\" stroke=\"" MD_HEAT_FORWARD
		   "\" stroke-width=\"3\" marker-end=\"url(#fw)\"/><path d=\"M%n %nh36\" "
		   "stroke=\"" MD_HEAT_BACKWARD "\" stroke-width=\"3\" marker-end=\"url(#bw)\"/>\n",
		   x, y + 8, x + 160, y + 8);
	mp_svg_put_words(out, x + 50, y + 13, 13, "", "down, forward");
	mp_svg_put_words(out, x + 210, y + 13, 13, "", "up, backward");
	mp_svg_put_words(out, x, y + 31, 13, "q", "Thicker: more often. The busiest are drawn.");
}

/* ---- figures ------------------------------------------------------------------------------- */

static void put_pair(FILE *out, double x, double y, const struct md_heat_picture *p, size_t before,
		     size_t after)
{
	char a[32], b[32], text[80];

	snprintf(text, sizeof(text), "%s", mp_svg_format_count(before, a));
	if (p->after)
		snprintf(text, sizeof(text), "%s \xe2\x86\x92 %s", a,
			 mp_svg_format_count(after, b));
	mp_svg_put_words(out, x, y, 15, "e", text);
}

/* Writes "-38 %", "+2 %" or "0 %". */
static const char *format_change(double change, char *buf)
{
	double percent = round(100 * change);

	snprintf(buf, 32,
		 percent < 0   ? "\xe2\x88\x92%.0f %%"
		 : percent > 0 ? "+%.0f %%"
			       : "%.0f %%",
		 fabs(percent));
	return buf;
}

static void put_rate(FILE *out, double y, const struct md_heat_picture *p, const char *what,
		     double before, double after)
{
	char text[80], change[32];

	mp_svg_put_words(out, FIGURES_LEFT, y, 15, "", what);
	snprintf(text, sizeof(text), "%.1f", before);
	if (p->after && before > 0)
		snprintf(text, sizeof(text), "%.1f \xe2\x86\x92 %.1f  (%s)", before, after,
			 format_change(after / before - 1, change));
	mp_svg_put_words(out, WIDTH - MARGIN, y, 15, "e", text);
}

static void draw_figures(const struct md_heat_picture *p, FILE *out)
{
	const struct md_heat_figures *a = &p->before_figures, *b = &p->after_figures;
	const double lines = 1310, pages = 1456, funcs = WIDTH - MARGIN;
	const struct {
		const char *what;
		size_t lines[2], pages[2], funcs;
	} rows[] = {
		{"90 %", {a->lines.p90, b->lines.p90}, {a->pages.p90, b->pages.p90}, a->funcs.p90},
		{"99 %", {a->lines.p99, b->lines.p99}, {a->pages.p99, b->pages.p99}, a->funcs.p99},
		{"all seen",
		 {a->lines.all, b->lines.all},
		 {a->pages.all, b->pages.all},
		 a->funcs.all},
	};
	char buf[32];
	double y = 36;

	mp_svg_put_words(out, FIGURES_LEFT, y, 15, "b", "Executed instructions");
	mp_svg_put_words(out, lines, y, 15, "b e", "lines (64 B)");
	mp_svg_put_words(out, pages, y, 15, "b e", "pages (4 KiB)");
	mp_svg_put_words(out, funcs, y, 15, "b e", "functions");
	for (size_t i = 0; i < 3; i++) {
		y += 20;
		mp_svg_put_words(out, FIGURES_LEFT, y, 15, "", rows[i].what);
		mp_svg_put_words(out, FIGURES_LEFT + 70, y, 15, "q", "are in");
		put_pair(out, lines, y, p, rows[i].lines[0], rows[i].lines[1]);
		put_pair(out, pages, y, p, rows[i].pages[0], rows[i].pages[1]);
		mp_svg_put_words(out, funcs, y, 15, "e", mp_svg_format_count(rows[i].funcs, buf));
	}
	y += 27;
	mp_svg_put_words(out, FIGURES_LEFT, y, 15, "b",
			 p->after ? "Per 1,000 executed instructions, as predicted"
				  : "Per 1,000 executed instructions");
	y += 20;
	put_rate(out, y, p, "taken branches inside functions", a->taken, b->taken);
	y += 20;
	put_rate(out, y, p, "jumps and calls to another line", a->leave_line, b->leave_line);
	y += 20;
	put_rate(out, y, p, "jumps and calls to another page", a->leave_page, b->leave_page);
}

static void draw_foot(const struct md_heat_picture *p, double y, FILE *out)
{
	char all[32], share[32], text[512];
	int used = snprintf(text, sizeof(text),
			    "Estimated from %s samples of where the time went; code that runs too "
			    "briefly is not seen.",
			    mp_svg_format_count(p->nr_samples, all));

	if (p->nr_loose)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 " %s of them lie where no block is known.",
				 mp_svg_format_share((double)p->nr_loose / (double)p->nr_samples,
						     share));
	if (p->after)
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " After is a prediction for this work; other work may gain less.");
	mp_svg_put_words(out, MARGIN, y, 13, "q", text);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static double largest_share(const struct md_heat_cells *lines, double total)
{
	double largest = 0;

	for (size_t i = 0; i < lines->nr; i++)
		largest = fmax(largest, lines->cells[i].insns);
	return total > 0 ? largest / total : 1;
}

/* Draws everything below the title. *@bottom gets the lower edge. */
static int draw_panels(const struct md_heat_picture *p, FILE *out, double *bottom)
{
	struct md_heat_side sides[2] = {{0}, {0}};
	struct md_heat_panel panel = {
		.picture = p, .top = PANEL_TOP, .bottom = PANEL_BOTTOM, .left = MARGIN};
	double share;
	int r = md_heat_side_init(&sides[0], p->before);

	if (!r && p->after)
		r = md_heat_side_init(&sides[1], p->after);
	if (r)
		goto out;
	share = largest_share(&sides[0].lines, p->before->insns);
	if (p->after)
		share = fmax(share, largest_share(&sides[1].lines, p->before->insns));
	md_heat_scale_fit(share, &panel.scale);
	draw_legend(&panel.scale, out);
	panel.width = p->after ? (WIDTH - 3.0 * MARGIN) / 2 : WIDTH - 2.0 * MARGIN;
	r = md_heat_panel_fit(&panel, sides, p->after != NULL);
	*bottom = PANEL_TOP;
	if (!r)
		r = md_heat_panel_draw(&panel, &sides[0], out, bottom);
	if (!r && p->after) {
		panel.left += panel.width + MARGIN;
		panel.is_after = true;
		r = md_heat_panel_draw(&panel, &sides[1], out, bottom);
	}
out:
	for (int i = 0; i < 2; i++)
		md_heat_side_fini(&sides[i]);
	return r;
}

int md_heat_draw_svg(const struct md_heat_picture *p, FILE *out)
{
	double bottom = PANEL_BOTTOM;
	char *body = NULL;
	size_t size;
	/* Draw the panels first: they determine the height of the picture. */
	FILE *panels = open_memstream(&body, &size);
	int r = panels ? draw_panels(p, panels, &bottom) : -ENOMEM;

	if (panels && (ferror(panels) | fclose(panels)))
		r = -ENOMEM;
	if (r) {
		free(body);
		return r;
	}
	mp_svg_put(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"morph-heat\" viewBox=\"0 0 %n %n\" "
		"preserveAspectRatio=\"xMidYMin\" role=\"img\">\n<title>%t: where the code that runs "
		"lies</title>\n",
		(double)WIDTH, bottom + 34, p->program);
	fputs(style, out);
	fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
	draw_title(p, out);
	draw_figures(p, out);
	fputs(body, out);
	draw_foot(p, bottom + 20, out);
	fputs(script, out);
	fputs("</svg>\n", out);
	free(body);
	return 0;
}

int md_heat_draw_html(const struct md_heat_picture *p, FILE *out)
{
	int r;

	mp_svg_put(
		out,
		"<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>"
		"<meta charset=\"utf-8\"/><title>%t</title>\n"
		"<style>body{margin:0;background:#fff}svg{display:block;max-height:100vh;"
		"width:100%%}@media(prefers-color-scheme:dark){"
		"html{background:#fff;filter:invert(.9) hue-rotate(180deg)}}</style></head><body>\n",
		p->program);
	r = md_heat_draw_svg(p, out);
	fputs("</body></html>\n", out);
	return r;
}
