-- SPDX-License-Identifier: Apache-2.0
--
-- What readers call. These functions run with the reader's own rights, so that row-level security hides the
-- rows of banned hosts. They have no fixed search_path, since PostgreSQL expands only such functions into the
-- query of the caller, which then reads rows as they are found; so all names in them have their schema.
--
-- The robust sum: C is the quantile of the hosts' totals (nearest rank), but never the largest total if there
-- are two hosts or more. A host with a greater total counts with the weight C / total, in units of 2^-16,
-- rounded down. So no host adds more than C, and no single host decides what C is.
SET LOCAL ROLE morph_fleet_owner;

-- read_hosts - the totals and weights of all hosts. without: a host's number, or NULL. quantile 1: all weights
-- are 65536.
CREATE FUNCTION fleet.read_hosts(the_module bytea, the_kind smallint, since_day integer, until_day integer,
	quantile double precision, without integer) RETURNS TABLE(host integer, total bigint, weight integer)
LANGUAGE sql STABLE AS $$
	WITH totals AS (
		SELECT e.host, least(pg_catalog.sum(e.total), 4611686018427387904)::bigint AS total
		FROM fleet.evidence e
		WHERE e.module = the_module AND e.kind = the_kind AND e.last_day BETWEEN since_day AND until_day AND e.total > 0
			AND e.host IS DISTINCT FROM without
		GROUP BY e.host
	), cap AS (
		SELECT CASE WHEN quantile >= 1 THEN pg_catalog.max(t.total)
			ELSE (pg_catalog.array_agg(t.total ORDER BY t.total))[
				greatest(1, least(pg_catalog.ceil(pg_catalog.count(*) * greatest(quantile, 0)), pg_catalog.count(*) - 1))]
			END AS total
		FROM totals t
	)
	-- No join: readers forbid nested loops, and any other way of joining one row costs more.
	SELECT t.host, t.total, CASE WHEN t.total <= (SELECT c.total FROM cap c) THEN 65536
		ELSE pg_catalog.div(65536::numeric * (SELECT c.total FROM cap c), t.total)::integer END
	FROM totals t
$$;

-- read_rows - the rows of a module, in the order of chunks, each with its host's weight.
CREATE FUNCTION fleet.read_rows(the_module bytea, the_kind smallint, since_day integer, until_day integer,
	quantile double precision, without integer) RETURNS TABLE(chunk bigint, host integer, first_day integer,
	last_day integer, exact boolean, total bigint, weight integer, data bytea)
LANGUAGE sql STABLE ROWS 10000 AS $$
	SELECT e.chunk, e.host, e.first_day, e.last_day, e.exact, e.total, h.weight, e.data
	FROM fleet.evidence e JOIN fleet.read_hosts(the_module, the_kind, since_day, until_day, quantile, without) h
		ON h.host = e.host
	WHERE e.module = the_module AND e.kind = the_kind AND e.last_day BETWEEN since_day AND until_day AND e.total > 0
		AND h.weight > 0
	ORDER BY e.chunk
$$;

-- sum_counts - the robust sum of each address, computed by the server.
CREATE FUNCTION fleet.sum_counts(the_module bytea, since_day integer, until_day integer, quantile double precision)
RETURNS TABLE(vaddr bigint, count bigint) LANGUAGE sql STABLE AS $$
	SELECT d.vaddr, pg_catalog.div(pg_catalog.sum(d.count * r.weight) + 32768, 65536)::bigint
	FROM fleet.read_rows(the_module, 0::smallint, since_day, until_day, quantile, NULL) r
		CROSS JOIN LATERAL fleet.decode_counts(r.chunk, r.data) d
	GROUP BY d.vaddr HAVING pg_catalog.sum(d.count * r.weight) >= 32768 ORDER BY d.vaddr
$$;

CREATE FUNCTION fleet.host_shares(the_module bytea, the_kind smallint, since_day integer, until_day integer,
	quantile double precision) RETURNS TABLE(host integer, name text, total bigint, weight integer, weighted bigint)
LANGUAGE sql STABLE AS $$
	SELECT r.host, h.name, r.total, r.weight, pg_catalog.div(r.total::numeric * r.weight, 65536)::bigint
	FROM fleet.read_hosts(the_module, the_kind, since_day, until_day, quantile, NULL) r JOIN fleet.host h ON h.id = r.host
	ORDER BY 5 DESC, r.host
$$;

-- text_hash_of - the text hash in a module's key, with the bits of the unsigned value.
CREATE FUNCTION fleet.text_hash_of(the_module bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT ('x' || pg_catalog.encode(pg_catalog.substr(the_module, 1, 8), 'hex'))::bit(64)::bigint
$$;

-- module_facts - what most hosts say of a module: its most frequent name, and the median size of its text.
CREATE FUNCTION fleet.module_facts(the_module bytea) RETURNS TABLE(name text, text_size bigint)
LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.mode() WITHIN GROUP (ORDER BY h.name),
		pg_catalog.percentile_disc(0.5) WITHIN GROUP (ORDER BY h.text_size)
	FROM fleet.module_host h WHERE h.module = the_module
$$;

-- find_modules - modules whose build-id begins with these bytes.
CREATE FUNCTION fleet.find_modules(the_build_id bytea) RETURNS TABLE(module bytea, build_id bytea, text_hash bigint,
	kind smallint, text_size bigint, name text)
LANGUAGE sql STABLE AS $$
	SELECT m.module, m.build_id, fleet.text_hash_of(m.module), m.kind, f.text_size, f.name
	FROM fleet.module m CROSS JOIN LATERAL fleet.module_facts(m.module) f
	WHERE m.build_id >= the_build_id
		AND pg_catalog.substr(m.build_id, 1, pg_catalog.octet_length(the_build_id)) = the_build_id
	ORDER BY m.build_id, m.module
$$;

CREATE FUNCTION fleet.list_modules(since_day integer, until_day integer) RETURNS TABLE(module bytea, build_id bytea,
	text_hash bigint, kind smallint, text_size bigint, name text, nr_hosts bigint, total bigint, transfers bigint,
	first_day integer, last_day integer)
LANGUAGE sql STABLE AS $$
	SELECT m.module, m.build_id, fleet.text_hash_of(m.module), m.kind, f.text_size, f.name, t.nr_hosts, t.total,
		t.transfers, t.first_day, t.last_day
	FROM (
		SELECT e.module, pg_catalog.count(DISTINCT e.host) AS nr_hosts,
			coalesce(pg_catalog.sum(e.total) FILTER (WHERE e.kind = 0), 0)::bigint AS total,
			coalesce(pg_catalog.sum(e.total) FILTER (WHERE e.kind = 1), 0)::bigint AS transfers,
			pg_catalog.min(e.first_day) AS first_day, pg_catalog.max(e.last_day) AS last_day
		FROM fleet.evidence e WHERE e.last_day BETWEEN since_day AND until_day AND e.total > 0 GROUP BY e.module
	) t JOIN fleet.module m USING (module) CROSS JOIN LATERAL fleet.module_facts(m.module) f
	ORDER BY t.total DESC, t.transfers DESC, m.module
$$;

-- versions - the modules that hosts reported under a name, the newest last.
CREATE FUNCTION fleet.versions(the_name text) RETURNS TABLE(module bytea, build_id bytea, text_hash bigint,
	nr_hosts bigint, total bigint, first_day integer, last_day integer)
LANGUAGE sql STABLE AS $$
	SELECT h.module, pg_catalog.substr(h.module, 9), fleet.text_hash_of(h.module), pg_catalog.count(DISTINCT e.host),
		coalesce(pg_catalog.sum(e.total), 0)::bigint, pg_catalog.min(e.first_day), pg_catalog.max(e.last_day)
	FROM fleet.module_host h LEFT JOIN fleet.evidence e
		ON e.module = h.module AND e.host = h.host AND e.kind = 0 AND e.total > 0
	WHERE h.name = the_name GROUP BY h.module ORDER BY 7 NULLS FIRST, 1
$$;

GRANT EXECUTE ON FUNCTION fleet.read_hosts, fleet.read_rows, fleet.sum_counts, fleet.host_shares, fleet.text_hash_of,
	fleet.module_facts, fleet.find_modules, fleet.list_modules, fleet.versions TO morph_fleet_reader;
GRANT EXECUTE ON FUNCTION fleet.text_hash_of, fleet.module_facts, fleet.find_modules TO morph_fleet_operator;
