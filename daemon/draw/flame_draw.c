// SPDX-License-Identifier: Apache-2.0
/*
 * flame_draw - draws boxes, words, legend and the list of functions; see flame_draw.h. Decides
 * colours and places.
 */
#include "daemon/draw/flame_draw.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "libprof/cli/svg.h"

#define WIDTH	   1600
#define MARGIN	   24.0
#define FULL	   (WIDTH - 2 * MARGIN)
#define TOP	   128.0
#define SIZE	   13 /* font size in boxes */
#define LIST_ROWS  12
#define NR_LISTED  (3 * LIST_ROWS)
#define NR_COLOURS 8

/* Light, so that dark text is readable; colour-blind people can tell them apart. */
static const char *const colours[NR_COLOURS] = {"#77aadd", "#ee8866", "#eedd88", "#44bb99",
						"#ffaabb", "#99ddff", "#bbcc33", "#cccccc"};

/* Box heights by level. A function's box has room for a vertical name. */
static const double heights[MD_FLAME_NR_LEVELS] = {28, 40, 150, 66};

const char md_flame_style[] =
	"<style>text{font-family:'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;"
	"fill:#1a1a1a;pointer-events:none}.q{fill:#555}.e{text-anchor:end}.b{font-weight:bold}"
	".m{text-anchor:middle}"
	"rect{stroke:#fff;stroke-width:1}g:hover>rect{stroke:#000}.n{cursor:pointer}</style>\n";

/*
 * Optional: a click shows a box over the whole width. data-x and data-w are sample counts; @e
 * allows for rounding of numbers above 2^53 in JavaScript.
 */
const char md_flame_script[] =
	"<script>/*<![CDATA[*/\n"
	"(function(){var s=document.getElementById('morph-flame'),L=24,W=1552,now=null;\n"
	"var ns=[].slice.call(s.querySelectorAll('g.n'));\n"
	"function num(e,k){return parseFloat(e.getAttribute(k))}\n"
	"function show(f){now=f;var fx=num(f,'data-x'),fw=num(f,'data-w'),fd=num(f,'data-d'),e=fw/1e9;\n"
	"ns.forEach(function(g){var x=num(g,'data-x'),w=num(g,'data-w'),d=num(g,'data-d');\n"
	"var up=d<fd&&x<=fx+e&&x+w>=fx+fw-e;\n"
	"var out=!up&&(x+w<=fx+e||x>=fx+fw-e);g.style.display=out?'none':'';if(out)return;\n"
	"var nx=up?L:L+(x-fx)/fw*W,nw=up?W:w/fw*W,r=g.querySelector('rect');\n"
	"var h=num(r,'height'),y=num(r,'y'),ts=g.querySelectorAll('text'),t=ts[0];\n"
	"for(var i=1;i<ts.length;i++)g.removeChild(ts[i]);\n"
	"r.setAttribute('x',nx);r.setAttribute('width',nw);\n"
	"if(!t){t=document.createElementNS('http://www.w3.org/2000/svg','text');"
	"t.setAttribute('font-size',13);g.appendChild(t)}\n"
	"var ls=g.querySelector('title').textContent.split('\\n'),full=ls[0],"
	"n=Math.floor((nw-8)/8);\n"
	"var v=n<full.length&&n<9&&h>60;if(v)n=nw<15?0:Math.floor((h-8)/8);\n"
	"var pc=full+'   '+ls[1].split(', ')[1];if(!v&&pc.length<=n)full=pc;\n"
	"t.textContent=n<3?'':full.length>n?full.slice(0,n-1)+'\\u2026':full;\n"
	"t.removeAttribute('class');\n"
	"if(v){var tx=nx+nw/2+4.5,ty=y+h-5;t.setAttribute('transform','rotate(-90 '+tx+' '+ty+')');"
	"t.setAttribute('x',tx);t.setAttribute('y',ty)}\n"
	"else{t.removeAttribute('transform');t.setAttribute('x',nx+5);"
	"t.setAttribute('y',y+Math.min(h/2+5,24))}})}\n"
	"ns.forEach(function(g){g.addEventListener('click',function(){show(now===g?ns[0]:g)})});\n"
	"})();\n/*]]>*/</script>\n";

static const char *format_tenths(unsigned int tenths, char *buf)
{
	snprintf(buf, 32, "%u.%u %%", tenths / 10, tenths % 10);
	return buf;
}

/* Return: the name without C++ parameters, cut to @width; NULL: nothing fits. Ownership: free(). */
static char *fit_brief(const char *name, double size, double width)
{
	size_t len = md_name_base_len(name);
	char *brief = strndup(name, len ? len : strlen(name)), *fit = NULL;

	if (brief)
		fit = mp_svg_fit_text(brief, size, width);
	free(brief);
	return fit;
}

/* Return: the label of a box. @buf holds 64 bytes. */
static const char *node_name(const struct md_flame *node, enum md_flame_level level, char *buf)
{
	static const char *const plural[] = {"", "modules", "functions", "blocks"};
	char count[32];

	if (!node->nr_merged)
		return node->name;
	snprintf(buf, 64, "%s smaller %s", mp_svg_format_count(node->nr_merged, count),
		 plural[level]);
	return buf;
}

static const char *colour_of(const struct md_flame *root, size_t module)
{
	if (root->children[module].nr_merged || module >= NR_COLOURS)
		module = NR_COLOURS - 1;
	return colours[module];
}

/* ---- boxes --------------------------------------------------------------------------------- */

struct box {
	double x, y, width, height;
};

/*
 * Writes the name horizontally if it fits, else vertically, else not. A second line has the
 * percentage.
 */
static void put_name(FILE *out, const struct box *box, const char *name, unsigned int tenths)
{
	char percent[32], *fit = NULL;
	double width = mp_svg_text_width(name, SIZE);

	format_tenths(tenths, percent);
	if (box->width >= 60 || width <= box->width - 8)
		fit = fit_brief(name, SIZE, box->width - 8);
	if (fit) {
		bool two = box->height >= 38 && box->width >= 52;

		mp_svg_put_words(out, box->x + 5,
				 box->y + (box->height < 60 && !two ? box->height / 2 + 5 : 17),
				 SIZE, "", fit);
		if (two)
			mp_svg_put_words(out, box->x + 5, box->y + 34, SIZE, "q", percent);
		else if (width + 80 < box->width)
			mp_svg_put_words(out, box->x + box->width - 5, box->y + box->height / 2 + 5,
					 SIZE, "q e", percent);
	} else if (box->height >= 60 && box->width >= SIZE + 2) {
		fit = fit_brief(name, SIZE, box->height - 10);
		if (fit)
			mp_svg_put(out,
				   "<text transform=\"translate(%n %n) rotate(-90)\" "
				   "font-size=\"13\">%t</text>\n",
				   box->x + box->width / 2 + 4.5, box->y + box->height - 5, fit);
	}
	free(fit);
}

/* @before: number of samples to the left of the box. */
static void draw_node(FILE *out, const struct md_flame *node, enum md_flame_level level,
		      const struct box *box, uint64_t before, const char *colour, size_t place)
{
	/* Alternate the opacity, so that neighbouring boxes can be told apart. */
	static const char *const opacity[] = {"1", "0.78"};
	char buf[64], count[32], percent[32];
	const char *name = node_name(node, level, buf);

	fprintf(out,
		"<g class=\"n\" data-x=\"%" PRIu64 "\" data-w=\"%" PRIu64
		"\" data-d=\"%d\"><title>",
		before, node->samples, (int)level);
	mp_svg_put(out, "%t\n", name);
	fprintf(out, "%s samples, %s", mp_svg_format_count(node->samples, count),
		format_tenths(node->tenths, percent));
	if (node->nr_insns)
		fprintf(out, "\n%" PRIu32 " instructions at 0x%" PRIx64, node->nr_insns,
			node->vaddr);
	else if (node->vaddr)
		fprintf(out, "\nat 0x%" PRIx64, node->vaddr);
	mp_svg_put(out,
		   "</title><rect x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\" fill=\"%s\" "
		   "fill-opacity=\"%s\"/>",
		   box->x, box->y, box->width, box->height, node->nr_merged ? "#dddddd" : colour,
		   opacity[place % 2]);
	/* A merged box that is too small for its label gets a shorter label. */
	if (node->nr_merged && mp_svg_text_width(name, SIZE) > fmax(box->width, box->height) - 10) {
		snprintf(buf, sizeof(buf), "%s more", mp_svg_format_count(node->nr_merged, count));
		name = buf;
	}
	put_name(out, box, name, node->tenths);
	fputs("</g>\n", out);
}

static void draw_children(FILE *out, const struct md_flame_picture *p, const struct md_flame *node,
			  enum md_flame_level level, uint64_t before, double y, const char *colour)
{
	double per_sample = FULL / (double)p->root->samples;

	for (size_t i = 0; i < node->nr; i++) {
		const struct md_flame *child = &node->children[i];
		struct box box = {MARGIN + (double)before * per_sample, y,
				  (double)child->samples * per_sample, heights[level]};
		const char *own = level == MD_FLAME_MODULE ? colour_of(p->root, i) : colour;

		draw_node(out, child, level, &box, before, own, level == MD_FLAME_MODULE ? 0 : i);
		draw_children(out, p, child, level + 1, before, y + heights[level], own);
		before += child->samples;
	}
}

/* ---- the list ------------------------------------------------------------------------------ */

struct listed {
	const struct md_flame *function;
	size_t module;
};

static int compare_listed(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->function->samples != y->function->samples)
		return x->function->samples < y->function->samples ? 1 : -1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->function->vaddr > y->function->vaddr) -
	       (x->function->vaddr < y->function->vaddr);
}

static int draw_list(FILE *out, const struct md_flame_picture *p, double y)
{
	const struct md_flame *root = p->full;
	struct listed *list;
	size_t nr = 0;

	for (size_t m = 0; m < root->nr; m++)
		nr += root->children[m].nr;
	list = calloc(nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	nr = 0;
	for (size_t m = 0; m < root->nr; m++)
		for (size_t f = 0; f < root->children[m].nr; f++)
			list[nr++] = (struct listed){&root->children[m].children[f], m};
	if (nr)
		qsort(list, nr, sizeof(*list), compare_listed);
	if (nr)
		mp_svg_put_words(out, MARGIN, y, 16, "b", "The functions with the most samples");
	for (size_t i = 0; i < nr && i < NR_LISTED; i++) {
		const struct md_flame *module = &root->children[list[i].module];
		double x = MARGIN + (double)(i / LIST_ROWS) * (FULL / 3);
		double at = y + 26 + (double)(i % LIST_ROWS) * 21;
		size_t colour = list[i].module < p->root->nr ? list[i].module : p->root->nr - 1;
		char share[32], *name, *of;

		name = fit_brief(list[i].function->name, 14, 300);
		of = mp_svg_fit_text(module->name, 12, 110);
		mp_svg_put(out, "<rect x=\"%n\" y=\"%n\" width=\"12\" height=\"12\" fill=\"%s\"/>",
			   x, at - 11, colour_of(p->root, colour));
		mp_svg_put_words(out, x + 72, at, 14, "e",
				 mp_svg_format_share((double)list[i].function->samples /
							     (double)root->samples,
						     share));
		mp_svg_put_words(out, x + 80, at, 14, "", name ? name : "");
		mp_svg_put_words(out, x + FULL / 3 - 16, at, 12, "q e", of ? of : "");
		free(name);
		free(of);
	}
	free(list);
	return 0;
}

static void draw_legend(FILE *out, const struct md_flame_picture *p)
{
	double x = MARGIN, y = TOP - 34;

	for (size_t i = 0; i < p->root->nr; i++) {
		const struct md_flame *module = &p->root->children[i];
		char buf[64], percent[32], text[160], *name;

		name = mp_svg_fit_text(node_name(module, MD_FLAME_MODULE, buf), 14, 260);
		snprintf(text, sizeof(text), "%s %s", name ? name : "?",
			 format_tenths(module->tenths, percent));
		free(name);
		if (x + 20 + mp_svg_text_width(text, 14) > WIDTH - MARGIN)
			break;
		mp_svg_put(out, "<rect x=\"%n\" y=\"%n\" width=\"14\" height=\"14\" fill=\"%s\"/>",
			   x, y - 12, module->nr_merged ? "#dddddd" : colour_of(p->root, i));
		mp_svg_put_words(out, x + 20, y, 14, "", text);
		x += 44 + mp_svg_text_width(text, 14);
	}
}

static void draw_title(FILE *out, const struct md_flame_picture *p)
{
	char count[32], share[32], text[256];
	int used;

	mp_svg_put_words(out, MARGIN, 40, 26, "b", "Where the time goes");
	used = snprintf(
		text, sizeof(text),
		"Each box is as wide as its share of %s samples%s: modules, below them their "
		"functions, below those their basic blocks.",
		mp_svg_format_count(p->root->samples, count), p->what);
	if (p->root->samples != p->nr_samples)
		snprintf(text + used, sizeof(text) - (size_t)used, " They are %s of all.",
			 mp_svg_format_share((double)p->root->samples / (double)p->nr_samples,
					     share));
	mp_svg_put_words(out, MARGIN, 66, 16, "", text);
}

int md_flame_draw_svg(const struct md_flame_picture *p, FILE *out)
{
	double y = TOP, bottom = TOP + heights[0] + heights[1] + heights[2] + heights[3];
	const struct box all = {MARGIN, TOP, FULL, heights[0]};
	size_t nr_listed = 0;
	int r;

	for (size_t m = 0; m < p->full->nr; m++)
		nr_listed += p->full->children[m].nr;
	nr_listed = nr_listed < LIST_ROWS ? nr_listed : LIST_ROWS;
	mp_svg_put(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"morph-flame\" viewBox=\"0 0 %n %n\" "
		"preserveAspectRatio=\"xMidYMin\" role=\"img\">\n<title>Where the time goes</title>\n",
		(double)WIDTH, bottom + 70 + 21.0 * (double)nr_listed);
	fputs(md_flame_style, out);
	fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
	draw_title(out, p);
	draw_legend(out, p);
	draw_node(out, p->root, MD_FLAME_ALL, &all, 0, "#e4e4e4", 0);
	y += heights[0];
	draw_children(out, p, p->root, MD_FLAME_MODULE, 0, y, "");
	r = draw_list(out, p, bottom + 40);
	fputs(md_flame_script, out);
	fputs("</svg>\n", out);
	return r;
}
