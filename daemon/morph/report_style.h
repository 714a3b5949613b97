// SPDX-License-Identifier: Apache-2.0
/* report_style - the style sheet of the report: one theme for light and one for dark. */
#ifndef MD_REPORT_STYLE_H
#define MD_REPORT_STYLE_H

/* clang-format off */
static const char md_report_style[] =
	":root{color-scheme:light dark;--page:#f6f5f1;--card:#fff;--ink:#1d2126;--soft:#5c6670;"
	"--line:#e3e1da;--bar:#d9d6cc;--move:#3b7dd8;--gain:#11805a;--loss:#b5412b;--warn:#9a6a00}"
	"@media(prefers-color-scheme:dark){:root{--page:#14171b;--card:#1d2227;--ink:#e8e6e1;"
	"--soft:#9aa4ae;--line:#2f363d;--bar:#39424b;--move:#6aa5f8;--gain:#43c592;--loss:#ee7a61;"
	"--warn:#e0ac3c}}"
	"*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);"
	"font:15px/1.5 system-ui,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif}"
	"main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}"
	"h1{font-size:30px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}"
	"h2{font-size:19px;margin:40px 0 10px}p{margin:0 0 12px;max-width:70ch}"
	".soft{color:var(--soft)}.num{font-variant-numeric:tabular-nums;white-space:nowrap}"
	".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;"
	"margin:22px 0}.tile,.card{background:var(--card);border:1px solid var(--line);"
	"border-radius:10px;padding:14px 16px}.tile b{display:block;font-size:25px;line-height:1.25;"
	"font-weight:600;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);"
	"font-size:13px}.card{overflow-x:auto}"
	"table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:600;"
	"font-size:13px;color:var(--soft);padding:4px 14px 8px 0;border-bottom:1px solid var(--line)}"
	"td{padding:7px 14px 7px 0;border-bottom:1px solid var(--line);vertical-align:middle}"
	"tr:last-child td{border-bottom:0}th:last-child,td:last-child{padding-right:0}"
	"td.path{font-weight:500;overflow-wrap:anywhere;min-width:180px}"
	".dir{color:var(--soft);font-weight:400}"
	"svg{display:block}.track{fill:var(--bar)}.move{fill:var(--move)}.axis{stroke:var(--soft);"
	"stroke-width:1}.grid{stroke:var(--line);stroke-width:1}.whisker{stroke:var(--gain);"
	"stroke-width:2.5;stroke-linecap:round}.dot{fill:var(--gain)}.worse{stroke:var(--loss)}"
	".dot.worse{fill:var(--loss);stroke:none}.tick{fill:var(--soft);font-size:11px}"
	".state{display:inline-block;border-radius:99px;padding:1px 10px;font-size:13px;"
	"border:1px solid var(--line);white-space:nowrap}.good{color:var(--gain);"
	"border-color:currentColor}.bad{color:var(--loss);border-color:currentColor}"
	".wait{color:var(--warn);border-color:currentColor}"
	"ol.history{list-style:none;margin:0;padding:0 0 0 18px;border-left:2px solid var(--line)}"
	"ol.history li{position:relative;margin:0 0 12px}ol.history li::before{content:'';"
	"position:absolute;left:-24px;top:7px;width:10px;height:10px;border-radius:50%;"
	"background:var(--soft)}ol.history li.good::before{background:var(--gain)}"
	"ol.history li.bad::before{background:var(--loss)}ol.history li{color:var(--ink)}"
	"details{background:var(--card);border:1px solid var(--line);border-radius:10px;"
	"margin:0 0 10px;padding:0 16px}summary{cursor:pointer;padding:12px 0;font-weight:500}"
	".picture{background:#fff;border-radius:8px;margin:0 0 16px;padding:8px}"
	"@media(prefers-color-scheme:dark){.picture{filter:invert(.9) hue-rotate(180deg)}}"
	".picture img{display:block;width:100%;height:auto}"
	"footer{margin-top:48px;color:var(--soft);font-size:13px}"
	"@media(max-width:720px){thead{display:none}tr{display:flex;flex-wrap:wrap;gap:4px 14px;"
	"align-items:center;padding:10px 0;border-bottom:1px solid var(--line)}"
	"tr:last-child{border-bottom:0}td{border:0;padding:0}td:empty{display:none}"
	"td.path{flex-basis:100%}td:nth-child(4)::after{content:' movable'}}"
	"@media print{body{background:#fff}details{break-inside:avoid}}";
/* clang-format on */

#endif
