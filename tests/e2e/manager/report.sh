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
	command_ends 0 "report" $morph report -o report.html
	command_ends 0 "report to standard output" $morph report
	[ "$(head -c 15 out.txt)" = "<!DOCTYPE html>" ] || fail "standard output: $(head -c 100 out.txt)"
	command_ends 0 "report as JSON" $morph --json report -o again.html
	json "report as JSON" '.command == "report" and .bytes > 1000 and .pictures == 1'
	command_ends 2 "JSON and page on one output" $morph --json report
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
