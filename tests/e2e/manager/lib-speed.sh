# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# An audit that needs no time: a rule's command named speed prints how fast it says the version is.

# audits_by_speed FOLDER: a morph-audit there that believes such a command
audits_by_speed() {
	cat >"$1/morph-audit" <<END
#!/bin/sh
for word; do
	case \$word in */speed) exec "$BUILD/morph-audit" '--metric=/speed ([0-9]+)/' "\$@" ;; esac
done
exec "$BUILD/morph-audit" "\$@"
END
	chmod 755 "$1/morph-audit"
}

# worker_by_speed FOLDER: makes it, with morph-worker, which takes the other programs from its own folder
worker_by_speed() {
	mkdir "$1"
	cp "$BUILD/morph-worker" "$1/"
	ln -s "$BUILD/morph" "$BUILD/morph-optimize" "$BUILD/morph-stats" "$BUILD/morphd" "$1/"
	audits_by_speed "$1"
}
