-- SPDX-License-Identifier: Apache-2.0
--
-- What reports show: gains of builds, and hosts that lag. These functions run with the reader's rights.
SET LOCAL ROLE morph_fleet_owner;

-- list_gains - for each build, the median of the hosts' measured ratios (times as fast), with an interval for the
-- median: ranks of the sign test at 99 %, in the normal approximation. With fewer than 11 hosts there are no such
-- ranks, and the interval is from the lowest to the highest bound of any host; it then promises nothing.
CREATE FUNCTION fleet.list_gains() RETURNS TABLE(module bytea, options text, version text, release integer,
	nr_hosts bigint, pairs bigint, ratio double precision, lowest double precision, highest double precision,
	by_ranks boolean)
LANGUAGE sql STABLE AS $$
	SELECT g.module, g.options, g.version, g.release, g.nr, g.pairs,
		CASE WHEN g.nr % 2 = 1 THEN g.ratios[g.nr / 2 + 1] ELSE (g.ratios[g.nr / 2] + g.ratios[g.nr / 2 + 1]) / 2 END,
		CASE WHEN g.place >= 1 THEN g.ratios[g.place] ELSE g.lowest END,
		CASE WHEN g.place >= 1 THEN g.ratios[g.nr - g.place + 1] ELSE g.highest END, g.place >= 1
	FROM (
		SELECT a.module, a.options, a.version, a.release, pg_catalog.count(*) AS nr, pg_catalog.sum(a.pairs)::bigint AS pairs,
			pg_catalog.array_agg(a.ratio ORDER BY a.ratio) AS ratios, pg_catalog.min(a.lowest) AS lowest,
			pg_catalog.max(a.highest) AS highest,
			pg_catalog.floor((pg_catalog.count(*) - 2.576 * pg_catalog.sqrt(pg_catalog.count(*))) / 2)::integer AS place
		FROM fleet.audit a WHERE a.ratio IS NOT NULL GROUP BY a.module, a.options, a.version, a.release
	) g
	ORDER BY g.nr DESC, g.module, g.options, g.version
$$;

-- list_hosts - each host with the time of its last batch, and the number of files of which it was last seen with
-- another version than the newest one. A version is newest if it was first seen last, and two hosts or more have it.
CREATE FUNCTION fleet.list_hosts(since_day integer) RETURNS TABLE(name text, banned boolean, last_at timestamptz,
	asked_at timestamptz, nr_files bigint, nr_old bigint)
LANGUAGE sql STABLE AS $$
	WITH used AS (
		SELECT h.name, e.module, e.host, pg_catalog.min(e.first_day) AS first_day, pg_catalog.max(e.last_day) AS last_day
		FROM fleet.evidence e JOIN fleet.module_host h ON h.module = e.module AND h.host = e.host
		WHERE e.kind = 0 AND e.total > 0 AND e.last_day >= since_day AND h.name IS NOT NULL
		GROUP BY h.name, e.module, e.host
	), versions AS (
		SELECT u.name, u.module, pg_catalog.min(u.first_day) AS first_day, pg_catalog.count(*) AS nr_hosts
		FROM used u GROUP BY u.name, u.module
	), newest AS (
		SELECT DISTINCT ON (v.name) v.name, v.module, v.first_day FROM versions v WHERE v.nr_hosts >= 2
		ORDER BY v.name, v.first_day DESC, v.nr_hosts DESC, v.module
	), last_used AS (
		SELECT DISTINCT ON (u.host, u.name) u.host, u.name, u.module FROM used u
		ORDER BY u.host, u.name, u.last_day DESC, u.first_day DESC, u.module
	), files AS (
		SELECT l.host, pg_catalog.count(*) AS nr_files, pg_catalog.count(*) FILTER (WHERE l.module <> n.module
			AND v.first_day < n.first_day) AS nr_old
		FROM last_used l JOIN versions v ON v.name = l.name AND v.module = l.module
			LEFT JOIN newest n ON n.name = l.name GROUP BY l.host
	)
	SELECT h.name, h.banned_at IS NOT NULL, e.last_at, b.asked_at, coalesce(f.nr_files, 0), coalesce(f.nr_old, 0)
	FROM fleet.host h
		LEFT JOIN (SELECT p.host, pg_catalog.max(p.last_at) AS last_at FROM fleet.epoch p GROUP BY p.host) e ON e.host = h.id
		LEFT JOIN (SELECT q.host, pg_catalog.max(q.asked_at) AS asked_at FROM fleet.build_host q GROUP BY q.host) b
			ON b.host = h.id
		LEFT JOIN files f ON f.host = h.id
	ORDER BY e.last_at NULLS FIRST, h.name
$$;
GRANT EXECUTE ON FUNCTION fleet.list_gains, fleet.list_hosts TO morph_fleet_reader;
