#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page of `morph report': one file without references, complete in both themes, with escaped names.
# Chromium shows it if it is installed.
. "$(dirname "$0")/../lib.sh"
. "$root/tests/e2e/manager/lib-manager.sh"
need gcc objdump readelf python3 sqlite3
manager_scratch report
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
morph="$BUILD/morph --db=db --backup-dir=backup"
# shellcheck disable=SC2086
{
	$morph optimize ./prog >/dev/null 2>&1 || fail "optimize"
	sqlite3 db "UPDATE job SET ratio = 1.05, lowest = 1.02, highest = 1.09;
		UPDATE history SET ratio = 1.05, lowest = 1.02, highest = 1.09;
		UPDATE history SET reason = '<script>alert(1)</script> \"&' WHERE step = 'advise';
		INSERT INTO module SELECT NULL, x'1234567890', 5, 0, '/evil/</td><script src=\"http://x.example/\">&\"''' || char(27, 8238) || 'gpj',
			4096, first_s, last_s FROM module LIMIT 1;
		INSERT INTO bucket SELECT NULL, m.key, b.first_day, b.last_day, 0, 0, 0 FROM bucket b, module m WHERE m.path LIKE '/evil%';
		INSERT INTO job SELECT NULL, '/evil/<img src=x>', build_id, text_hash, '', 'failed', since_s, asked, uid, 1, 0,
			'<svg onload=x>', '', '', 0, 0, 0, 0, 0, 0, 0, 0 FROM job LIMIT 1"
	$morph adopt ./prog >/dev/null || fail "adopt"
	# Adopted five days ago; all 12,000 samples are of yesterday, at 100 a second.
	sqlite3 db "UPDATE session SET rate_hz = 100, start_s = unixepoch() - 10 * 86400, last_s = unixepoch();
		UPDATE job SET adopted_s = unixepoch() - 5 * 86400 WHERE path = '$dir/prog';
		UPDATE history SET when_s = unixepoch() - 5 * 86400;
		UPDATE bucket SET first_day = unixepoch() / 86400 - 1, last_day = unixepoch() / 86400 - 1;
		UPDATE bucket SET first_day = unixepoch() / 86400 - 10, last_day = unixepoch() / 86400 - 10 WHERE nr_samples = 0"
	command_ends 0 "report" $morph report -o report.html
	command_ends 0 "report to standard output" $morph report
	[ "$(head -c 15 out.txt)" = "<!DOCTYPE html>" ] || fail "standard output: $(head -c 100 out.txt)"
	command_ends 0 "report as JSON" $morph --json report -o again.html
	json "report as JSON" '.command == "report" and .bytes > 1000 and .pictures == 1'
	command_ends 2 "JSON and page on one output" $morph --json report
	command_ends 0 "first line" $morph
	[ "$(head -n 1 out.txt)" = "Saved 4.8 % (2.0 to 8.3) of this machine's CPU time in the last 7 days, 6.0 s." ] ||
		fail "first line: $(head -n 3 out.txt)"
	[ "$(wc -l <out.txt)" -le 24 ] || fail "the page has $(wc -l <out.txt) lines"
	command_ends 0 "saved" $morph --json
	json "saved" '.saved | .programs == 1 and .not_measured == 0 and .whole and (.used_cpu_seconds | round) == 120 and
		(.cpu_seconds - 6 | fabs) < 1e-6 and (.cpu_seconds_least - 2.4 | fabs) < 1e-6 and (.cpu_seconds_most - 10.8 | fabs) < 1e-6 and
		(.percent - 100 * 6 / 126 | fabs) < 1e-6 and (.days | length) == 7 and (.days[5].cpu_seconds - 6 | fabs) < 1e-6 and
		.days[5].used_cpu_seconds == 120 and .days[6].cpu_seconds == 0 and .days[6].day_s - .days[5].day_s == 86400'
	command_ends 0 "metrics" $morph report --format=prometheus
	for line in 'morph_saved_cpu_seconds 6' 'morph_saved_cpu_seconds_lowest 2.4' 'morph_saved_cpu_seconds_highest 10.8' \
		'morph_used_cpu_seconds 120' 'morph_collecting 0' 'morph_programs_optimised 1' 'morph_programs_not_measured 0' \
		"morph_program_speedup{path=\"$dir/prog\"} 1.05" "morph_program_saved_cpu_seconds{path=\"$dir/prog\"} 6" \
		'# TYPE morph_saved_cpu_seconds gauge'; do
		grep -qxF -e "$line" out.txt || fail "metrics: no '$line': $(cat out.txt)"
	done
	command_ends 2 "no such form" $morph report --format=text
	command_ends 1 "a directory that is not there" $morph report -o no/such/report.html
	command_ends 3 "no samples" "$BUILD/morph" --db=none.db report -o none.html
}
[ ! -e none.html ] || fail "a page without samples"
left=$(ls report.html.* 2>/dev/null)
[ -z "$left" ] || fail "left: $left"

# ---- well-formed, without references, scripts or handlers
python3 - <<'P' || fail "the page"
import base64, re, sys
from html.parser import HTMLParser
import xml.etree.ElementTree as tree

VOID = {"meta", "img", "br", "wbr", "line", "rect", "circle"}
bad = []

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.pictures, self.tags = [], "", [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("href", "action", "srcset", "background"):
                bad.append(f"{tag} {name}={value}")
            if name == "src":
                if not value.startswith("data:image/svg+xml;base64,"):
                    bad.append(f"{tag} src={value[:60]}")
                self.pictures.append(base64.b64decode(value.split(",", 1)[1], validate=True))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            bad.append(f"</{tag}>")

    def handle_data(self, data):
        self.text += data

with open("report.html", encoding="utf-8") as f:
    source = f.read()
page = Page()
page.feed(source)
page.close()
if page.open:
    bad.append(f"open: {page.open}")
if page.tags & {"script", "iframe", "object", "link", "form", "base"}:
    bad.append(f"tags: {page.tags}")
for want in ("of the machine's CPU time is saved (1.96 to 8.26), in the last 7 days", "4.76 %", "What was saved", ": 120 s used, 6.0 s saved"):
    if want not in page.text:
        bad.append(f"the week: {want}")
for want in ("<script>alert(1)</script> \"&", "/evil/<img src=x>", "5.0 % faster (2.0 to 9.0)", "in use"):
    if want not in page.text:
        bad.append(f"missing: {want}")
if re.search("[\x00-\x08\x0b-\x1f\u202e]", source):
    bad.append("control characters")
if "prefers-color-scheme:dark" not in source or "default-src 'none'" not in source:
    bad.append("no dark theme, or no policy")
if len(page.pictures) != 1:
    bad.append(f"{len(page.pictures)} pictures")
for picture in page.pictures:
    tree.fromstring(picture)
if re.search(r"url\(|@import", source):
    bad.append("a reference in the style")
print("\n".join(bad))
sys.exit(bool(bad))
P

# ---- a version that was undone counts until then; names are escaped; nobody measured it
# shellcheck disable=SC2086
{
	sqlite3 db "UPDATE module SET path = '/opt/\"' || char(92, 10) || '&' WHERE path = '$dir/prog';
		UPDATE job SET state = 'undone', path = '/opt/\"' || char(92, 10) || '&' WHERE path = '$dir/prog';
		UPDATE history SET path = '/opt/\"' || char(92, 10) || '&' WHERE path = '$dir/prog';
		INSERT INTO history SELECT NULL, (unixepoch() / 86400 - 1) * 86400 + 43200, path, build_id, text_hash, round, 'undo',
			'undone', 'done', '', ratio, lowest, highest, predicted, layout FROM history WHERE step = 'adopt' LIMIT 1"
	cp original prog
	command_ends 0 "undone" $morph report --format=prometheus
	grep -qxF 'morph_saved_cpu_seconds 3' out.txt || fail "undone: $(grep saved out.txt)"
	grep -qxF 'morph_programs_optimised 0' out.txt || fail "undone: $(grep programs out.txt)"
	grep -qxF 'morph_program_speedup{path="/opt/\"\\\n&"} 1.05' out.txt || fail "a label: $(grep speedup out.txt)"
	sqlite3 db "UPDATE job SET ratio = 0, lowest = 0, highest = 0; UPDATE history SET ratio = 0, lowest = 0, highest = 0"
	command_ends 0 "not measured" $morph
	[ "$(head -n 1 out.txt)" = "Saved: not known, since no optimised program was measured." ] ||
		fail "not measured: $(head -n 1 out.txt)"
}

# ---- in a browser: both themes are drawn, and they differ
browser=
for b in chromium chromium-headless-shell; do
	[ -n "$browser" ] || browser=$(command -v $b)
done
if [ -z "$browser" ]; then
	left_out="$left_out chromium"
	finish
fi
shot() {
	timeout 200 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/profile" \
		--window-size=1100,1600 "$@" "file://$dir/report.html" >browser.txt 2>&1
}
shot --screenshot=light.png || fail "the browser: $(tail -3 browser.txt)"
shot --blink-settings=preferredColorScheme=0 --screenshot=dark.png || fail "the browser: $(tail -3 browser.txt)"
python3 - <<'P' || fail "the themes"
import struct, sys, zlib

def brightness(name):
    """Mean of the first columns of all rows: the page's background."""
    data = open(name, "rb").read()
    at, parts = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            parts += data[at + 8:at + 8 + size]
        at += 12 + size
    channels = {2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(parts), width * channels + 1
    # The first pixel of a row is stored as it is with filters 0 and 1; the others add the row above.
    above, total = 0, 0
    for y in range(height):
        kind, value = raw[y * stride], raw[y * stride + 1]
        above = value if kind in (0, 1) else (value + (above // 2 if kind == 3 else above)) & 255
        total += above
    return width, height, total / height

light, dark = brightness("light.png"), brightness("dark.png")
print(light, dark)
sys.exit(not (light[:2] == (1100, 1600) and light[2] > 200 and dark[2] < 80))
P
finish
