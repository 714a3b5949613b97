// SPDX-License-Identifier: Apache-2.0
/* flame_calls - builds the tree, and draws one row for each depth; see flame_calls.h. */
#include "daemon/draw/flame_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "daemon/draw/flame_draw.h"
#include "libprof/cli/svg.h"

#define WIDTH  1600
#define MARGIN 24.0
#define FULL   (WIDTH - 2 * MARGIN)
#define TOP    96.0
#define ROW    20.0
#define SIZE   12

#define NR_COLOURS 8
/* Light, so that dark text is readable. The first is for nodes without a module. */
static const char *const colours[NR_COLOURS] = {"#dddddd", "#ee8866", "#eedd88", "#77aadd",
						"#44bb99", "#ffaabb", "#99ddff", "#bbcc33"};

/* Optional: marks the boxes whose names contain a text, and says how many samples they have. */
static const char search[] =
	"<script>/*<![CDATA[*/\n"
	"(function(){var s=document.getElementById('morph-flame'),b=document.getElementById('search'),\n"
	"o=document.getElementById('found'),ns=[].slice.call(s.querySelectorAll('g.n'));\n"
	"b.addEventListener('click',function(){var q=prompt('Functions whose names contain:','');\n"
	"if(q===null)return;q=q.toLowerCase();var end=0,sum=0;\n"
	"var all=parseFloat(ns[0].getAttribute('data-w'));\n"
	"ns.forEach(function(g){var r=g.querySelector('rect'),t=g.querySelector('title').textContent;\n"
	"var x=parseFloat(g.getAttribute('data-x')),w=parseFloat(g.getAttribute('data-w'));\n"
	"var hit=q!==''&&t.split('\\n')[0].toLowerCase().indexOf(q)>=0;\n"
	"if(hit&&x>=end){sum+=w;end=x+w}\n"
	"r.style.fill=hit?'#ee66ee':''});\n"
	"o.textContent=q===''?'':(100*sum/all).toFixed(1)+' % of the samples'})})();\n"
	"/*]]>*/</script>\n";

/* ---- the tree ------------------------------------------------------------------------------- */

/* Return: 0 for a node without a module, else a colour of its module: 1 to NR_COLOURS - 1. */
static uint32_t colour_of(const struct md_calls *calls, uint32_t node)
{
	const struct mp_module *module = md_calls_module(calls, node);

	return module ? (uint32_t)(module - calls->modules) % (NR_COLOURS - 1) + 1 : 0;
}

static int make_node(struct md_flame *out, const struct md_calls *calls, uint32_t node)
{
	const struct mp_context_node *nodes = calls->tree.nodes;
	const char *name = md_calls_name(calls, node);
	char *brief = name ? md_name_brief(name) : NULL;
	int r = 0;

	out->name = brief;
	out->samples = nodes[node].total;
	out->colour = colour_of(calls, node);
	if (!brief)
		return -ENOMEM;
	for (uint32_t c = nodes[node].first; c; c = nodes[c].next)
		out->max++;
	if (!out->max)
		return 0;
	out->children = calloc(out->max, sizeof(*out->children));
	if (!out->children)
		return -ENOMEM;
	for (uint32_t c = nodes[node].first; c && !r; c = nodes[c].next)
		r = make_node(&out->children[out->nr++], calls, c);
	return r;
}

int md_flame_add_calls(struct md_flame *root, const struct md_calls *calls)
{
	const struct mp_context_node *nodes = calls->tree.nodes;
	int r = 0;

	root->samples = nodes[0].total;
	root->children = calloc(calls->nr_programs + 1, sizeof(*root->children));
	root->max = calls->nr_programs;
	if (!root->children)
		return -ENOMEM;
	for (uint32_t c = nodes[0].first; c && !r; c = nodes[c].next)
		r = make_node(&root->children[root->nr++], calls, c);
	return r;
}

/* ---- the picture ---------------------------------------------------------------------------- */

static void draw_node(FILE *out, const struct md_flame *root, const struct md_flame *node,
		      unsigned int depth, uint64_t before)
{
	double per_sample = FULL / (double)root->samples, x = MARGIN + (double)before * per_sample;
	double width = (double)node->samples * per_sample, y = TOP + ROW * depth;
	char buf[64], count[32], *fit;
	const char *name = node->name;

	if (node->nr_merged) {
		snprintf(buf, sizeof(buf), "%s smaller functions",
			 mp_svg_format_count(node->nr_merged, count));
		name = buf;
	}
	fprintf(out,
		"<g class=\"n\" data-x=\"%" PRIu64 "\" data-w=\"%" PRIu64
		"\" data-d=\"%u\"><title>",
		before, node->samples, depth);
	mp_svg_put(out, "%t\n", name);
	fprintf(out, "%s samples, %u.%u %%", mp_svg_format_count(node->samples, count),
		node->tenths / 10, node->tenths % 10);
	mp_svg_put(out,
		   "</title><rect x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\" fill=\"%s\" "
		   "fill-opacity=\"%s\"/>",
		   x, y, width, ROW, node->nr_merged ? colours[0] : colours[node->colour],
		   depth % 2 ? "1" : "0.8");
	fit = width >= 24 ? mp_svg_fit_text(name, SIZE, width - 8) : NULL;
	if (fit)
		mp_svg_put_words(out, x + 4, y + ROW - 6, SIZE, "", fit);
	free(fit);
	fputs("</g>\n", out);
	for (size_t i = 0; i < node->nr; i++) {
		draw_node(out, root, &node->children[i], depth + 1, before);
		before += node->children[i].samples;
	}
}

static unsigned int depth_of(const struct md_flame *node)
{
	unsigned int deepest = 0, depth;

	for (size_t i = 0; i < node->nr; i++) {
		depth = depth_of(&node->children[i]);
		if (depth > deepest)
			deepest = depth;
	}
	return deepest + 1;
}

void md_flame_draw_calls(const struct md_flame *root, FILE *out)
{
	char count[32], text[160];

	mp_svg_put(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"morph-flame\" viewBox=\"0 0 %n %n\" "
		"preserveAspectRatio=\"xMidYMin\" role=\"img\">\n<title>Who called</title>\n",
		(double)WIDTH, TOP + ROW * depth_of(root) + MARGIN);
	fputs(md_flame_style, out);
	fputs("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
	mp_svg_put_words(out, MARGIN, 40, 26, "b", "Who called");
	snprintf(
		text, sizeof(text),
		"Each box is as wide as its share of %s samples; what a function called lies below it.",
		mp_svg_format_count(root->samples, count));
	mp_svg_put_words(out, MARGIN, 66, 16, "", text);
	mp_svg_put(
		out,
		"<text id=\"search\" class=\"e\" x=\"%n\" y=\"40\" font-size=\"16\" "
		"style=\"pointer-events:auto;cursor:pointer;text-decoration:underline\">Search</text>\n"
		"<text id=\"found\" class=\"e q\" x=\"%n\" y=\"66\" font-size=\"16\"> </text>\n",
		WIDTH - MARGIN, WIDTH - MARGIN);
	draw_node(out, root, root, 0, 0);
	fputs(md_flame_script, out);
	fputs(search, out);
	fputs("</svg>\n", out);
}
