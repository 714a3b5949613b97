#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-fleet report: one page with modules by samples, versions, gains with intervals, roll-outs and hosts that lag;
# names that hosts chose are escaped, and the page loads nothing.
. "$(dirname "$0")/lib-fleet.sh"
need jq python3
fleet_start
"$fleet" init >/dev/null || { echo "FAIL: init"; exit 1; }
fleet_host judge --reader
fleet_host other
today=$(($(date +%s) / 86400))
sql() {
	fleet_sql "$ADMIN" "$1"
}
unset MORPH_FLEET
conn=$(<judge.conn)
report() {
	command_ends "$1" "$2" "$fleet" report -d "$conn" "${@:3}"
}

# ---- an empty fleet
report 0 "an empty fleet" -o empty.html
for words in 'No host has measured a build yet' 'No build was rolled out yet' 'No file has more than one version'; do
	says empty.html "$words" "an empty fleet"
done

# ---- two versions of one file on 20 hosts, a name that is meant to harm, a host that is silent
evil='<script>alert(1)</script>&"<img src=x onerror=1>'
sql "INSERT INTO fleet.host(name) SELECT 'sim' || i FROM generate_series(1, 20) i;
	INSERT INTO fleet.module(module, kind) VALUES ('\\xaa00000000000001bb01', 0), ('\\xaa00000000000002bb02', 0), ('\\xaa00000000000003cc03', 0);
	INSERT INTO fleet.module_host(module, host, text_size, name)
	SELECT m.module, h.id, 1000, CASE WHEN m.module = '\\xaa00000000000003cc03' THEN \$\$$evil\$\$ ELSE '/usr/sbin/server' END
	FROM fleet.host h, fleet.module m WHERE h.name LIKE 'sim%' AND (m.module <> '\\xaa00000000000001bb01' OR h.id % 4 = 0);
	-- The old version has samples until five days ago; every fourth host still has it.
	INSERT INTO fleet.evidence SELECT m.module, 0, 1, $today - 9, m.host, 1, $today - 1, false, 1, 100, '\\x0364'
	FROM fleet.module_host m WHERE m.module = '\\xaa00000000000001bb01';
	INSERT INTO fleet.evidence SELECT m.module, 0, 1, $today - 3, m.host, 1, $today, false, 1, 1000, '\\x03e807'
	FROM fleet.module_host m WHERE m.module = '\\xaa00000000000002bb02' AND m.host % 4 <> 0;
	INSERT INTO fleet.evidence SELECT m.module, 0, 1, $today, m.host, 1, $today, false, 1, 4, '\\x0304'
	FROM fleet.module_host m WHERE m.module = '\\xaa00000000000003cc03';
	INSERT INTO fleet.epoch SELECT id, 'epoch of a host ', 1, 1, 1, now() - CASE WHEN name = 'sim7' THEN interval '9 days' ELSE interval '1 hour' END
	FROM fleet.host WHERE name LIKE 'sim%';
	UPDATE fleet.host SET banned_at = now() WHERE name = 'sim8';
	INSERT INTO fleet.build(module, options, version, state, release) VALUES ('\\xaa00000000000002bb02', '--x=<b>', 'v1', 'done', 1)"
sql 'SELECT FROM fleet.step_canaries()'
sql "INSERT INTO fleet.audit(module, options, version, host, release, seq, day, pairs, log_faster, log_slower, ratio, lowest, highest, state)
	SELECT '\\xaa00000000000002bb02', '--x=<b>', 'v1', id, 1, 1, $today, 20, 6, -6, 1 + id / 1000.0, 0.99, 1.09, 'kept'
	FROM fleet.host WHERE name LIKE 'sim%'"
report 0 "a page" -o page.html
cat >check.py <<'P'
import html.parser, sys
class Page(html.parser.HTMLParser):
    void = {"meta", "img", "br", "wbr", "rect", "circle", "line", "path"}
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.bad, self.text = [], [], []
    def handle_starttag(self, tag, attrs):
        if tag in ("script", "img", "link", "iframe", "object", "embed", "b1"):
            self.bad.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("src", "href", "action"):
                self.bad.append(name)
        if tag not in self.void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append("</%s>" % tag)
    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)
        if "url(" in data or "@import" in data:
            self.bad.append("style")
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
if page.bad or page.open:
    sys.exit("bad: %s, open: %s" % (page.bad, page.open))
text = " ".join(" ".join(page.text).split())
for words in sys.argv[2:]:
    if words not in text:
        sys.exit("not on the page: %s\n%s" % (words, text))
P
python3 check.py empty.html >said.txt 2>&1 || fail "an empty page: $(cat said.txt)"
# 14 hosts that are not banned have the new version with 1,000 samples each, 4 the old one with 100, and 19 have 4.
nr_new=$(sql "SELECT count(*) FROM fleet.evidence e JOIN fleet.host h ON h.id = e.host WHERE total = 1000 AND banned_at IS NULL")
python3 check.py page.html '<script>alert(1)</script>&"<img src=x onerror=1>' '/usr/sbin/server' "$((nr_new * 1000 / 1000)),000" \
	'running' '1 of 3' 'sim7' 'silent' 'sim8' 'banned' 'old versions' 'other' 'never sent' '--x=<b>' 'Versions in use' '19 hosts, 380 pairs' \
	>said.txt 2>&1 || fail "the page: $(cat said.txt)"
! grep -q 'sim9<' page.html || [ "$(sql "SELECT id % 4 FROM fleet.host WHERE name = 'sim9'")" = 0 ] || fail "a host that does not lag is listed"

# ---- the numbers, as JSON
report 0 "JSON" --json
json "modules by samples" ".modules | length == 3 and .[0].build_id == \"bb02\" and .[0].total == $((nr_new * 1000)) and (map(.total) | . == (sort | reverse))"
json "gains" '.gains | length == 1 and .[0].nr_hosts == 19 and .[0].by_ranks and (.[0] | .lowest < .ratio and .ratio < .highest)'
# The median of ratios, by another way.
want=$(sql "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ratio) FROM fleet.audit a JOIN fleet.host h ON h.id = a.host WHERE banned_at IS NULL")
json "the median" ".gains[0].ratio - $want | fabs < 1e-9"
json "hosts" ".hosts | length == 22 and ([.[] | select(.nr_old > 0)] | length == $(sql "SELECT count(*) FROM fleet.host WHERE name LIKE 'sim%' AND id % 4 = 0 AND banned_at IS NULL"))"
json "roll-outs" '.canaries | length == 1 and .[0].stage == 1 and .[0].nr_stages == 3'
json "history" '.history | length == 1 and .[0].cause == "started"'
report 0 "later days only" --json --since=1d
json "later days only" '.modules | length > 0'
report 0 "a lag of 30 days" -o late.html --lag=30d
! grep -q 'sim7<' late.html || [ "$(sql "SELECT id % 4 FROM fleet.host WHERE name = 'sim7'")" = 0 ] || fail "sim7 lags by --lag=30d"

# ---- where the page goes, and who may have it
mkdir pages
report 0 "a directory" -o pages
[ -s pages/index.html ] || fail "no pages/index.html"
"$fleet" report -d "$conn" >stdout.html && grep -q '</html>' stdout.html || fail "standard output"
report 1 "no such directory" -o none/page.html
one_line "no such directory"
conn=$(<other.conn)
report 1 "a host that is no reader" -o x.html
says err.txt 'permission denied' "a host that is no reader"
[ ! -e x.html ] || fail "a page for a host that may not read"
conn="host=127.0.0.1 port=1 dbname=x"
report 75 "no server" -o x.html
finish
