-- SPDX-License-Identifier: Apache-2.0
--
-- What hosts call. Each function acts on the host of session_user only. A batch is one transaction: batch(),
-- then push_modules() and push_rows() as often as needed. A batch that is sent twice, late or in another order
-- changes nothing.
--
-- SQLSTATEs: MF001 the epoch was continued elsewhere; MF002 unknown module; MF003 a row that no correct client
-- sends; MF004 day out of range; MF005 more than the day's quota; MF006 not enrolled, or banned.
--
-- Functions that take arrays have one statement for a whole batch: starting a statement under row-level security costs
-- more than writing a row. The plans do not depend on the arrays, so they are made once for each connection
-- (plan_cache_mode). Clients forbid nested loops for the sake of readers; a few rows that are looked up in a large table
-- need them.
SET LOCAL ROLE morph_fleet_owner;

CREATE FUNCTION fleet.today() RETURNS integer LANGUAGE sql STABLE AS $$
	SELECT floor(extract(epoch FROM now()) / 86400)::integer
$$;

CREATE FUNCTION fleet.require_host() RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.current_host();
BEGIN
	IF me IS NULL THEN
		RAISE 'host % is not enrolled, or it is banned', session_user USING ERRCODE = 'MF006';
	END IF;
	RETURN me;
END $$;

CREATE FUNCTION fleet.my_host() RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
	SELECT fleet.current_host()
$$;

-- What the server has of an epoch of this host. No row: nothing.
CREATE FUNCTION fleet.epoch(the_epoch bytea) RETURNS TABLE(seq bigint, token bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT e.seq, e.token FROM fleet.epoch e WHERE e.host = fleet.require_host() AND e.epoch = the_epoch
$$;

-- Begins a batch. prev_token 0: a new epoch.
CREATE FUNCTION fleet.batch(the_epoch bytea, prev_token bigint, new_token bigint, new_seq bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
	nr bigint;
BEGIN
	IF the_epoch IS NULL OR octet_length(the_epoch) <> 16 OR prev_token IS NULL OR prev_token < 0
			OR new_token IS NULL OR new_token <= 0 OR new_seq IS NULL OR new_seq <= 0 THEN
		RAISE 'batch: an epoch has 16 bytes; tokens and numbers are above 0' USING ERRCODE = 'MF003';
	END IF;
	IF prev_token = 0 THEN
		SELECT coalesce(max(e.number), 0) + 1 INTO nr FROM fleet.epoch e WHERE e.host = me;
		IF nr > (SELECT s.value FROM fleet.setting s WHERE s.name = 'epochs') THEN
			RAISE 'batch: % epochs', nr USING ERRCODE = 'MF005';
		END IF;
		INSERT INTO fleet.epoch VALUES (me, the_epoch, nr, new_seq, new_token, now()) ON CONFLICT DO NOTHING;
	ELSE
		UPDATE fleet.epoch e SET seq = new_seq, token = new_token, last_at = now()
		WHERE e.host = me AND e.epoch = the_epoch AND e.token = prev_token AND e.seq < new_seq;
	END IF;
	IF NOT FOUND THEN
		RAISE 'batch: the server has another state of this epoch' USING ERRCODE = 'MF001';
	END IF;
END $$;

-- add_traffic - counts what a host sent, and holds it to its quota.
CREATE FUNCTION fleet.add_traffic(me integer, add_batches bigint, add_rows bigint, add_bytes bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sent bigint;
BEGIN
	INSERT INTO fleet.traffic AS t VALUES (me, fleet.today(), add_batches, add_rows, add_bytes)
	ON CONFLICT (host, day) DO UPDATE SET nr_batches = t.nr_batches + add_batches, nr_rows = t.nr_rows + add_rows,
		nr_bytes = t.nr_bytes + add_bytes
	RETURNING t.nr_bytes INTO sent;
	IF sent > (SELECT s.value FROM fleet.setting s WHERE s.name = 'bytes_per_day') THEN
		RAISE 'host %: % bytes today are more than its quota', session_user, sent USING ERRCODE = 'MF005';
	END IF;
END $$;

CREATE FUNCTION fleet.push_modules(modules bytea[], kinds smallint[], text_sizes bigint[], names text[])
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = on AS $$
DECLARE
	me integer := fleet.require_host();
	nr integer := cardinality(modules);
	nr_bytes bigint;
	bad bigint;
BEGIN
	IF nr IS NULL OR nr > 1000 OR (cardinality(kinds) = nr AND cardinality(text_sizes) = nr AND cardinality(names) = nr)
			IS NOT TRUE THEN
		RAISE 'push_modules: at most 1000 modules, and arrays of one length' USING ERRCODE = 'MF003';
	END IF;
	SELECT sum(octet_length(r.module) + 16 + coalesce(octet_length(r.name), 0)),
		min(r.i) FILTER (WHERE (octet_length(r.module) BETWEEN 8 AND 40 AND r.kind BETWEEN 0 AND 2
				AND r.text_size BETWEEN 1 AND 4294967296) IS NOT TRUE
			OR length(r.name) > 4096 OR r.name ~ '[[:cntrl:]]')
	INTO nr_bytes, bad
	FROM unnest(modules, kinds, text_sizes, names) WITH ORDINALITY AS r(module, kind, text_size, name, i);
	IF bad IS NOT NULL THEN
		RAISE 'push_modules: module % is damaged', bad USING ERRCODE = 'MF003';
	END IF;
	-- In order: two hosts that add the same modules would otherwise wait for each other.
	INSERT INTO fleet.module(module, kind)
	SELECT r.module, r.kind FROM unnest(modules, kinds) AS r(module, kind) ORDER BY r.module
	ON CONFLICT DO NOTHING;
	INSERT INTO fleet.module_host AS h (module, host, text_size, name)
	SELECT r.module, me, r.text_size, r.name FROM unnest(modules, text_sizes, names) AS r(module, text_size, name)
	ON CONFLICT (module, host) DO UPDATE SET text_size = excluded.text_size, name = excluded.name
		WHERE h.text_size <> excluded.text_size OR h.name IS DISTINCT FROM excluded.name;
	PERFORM fleet.add_traffic(me, 0, 0, coalesce(nr_bytes, 0));
	RETURN nr;
END $$;

-- use_chunks - widens a host's ranges of chunks. Text may lie in several segments; together they are not
-- much longer than the text, unless somebody makes the addresses up. Contexts and paths have no addresses in
-- their keys.
CREATE FUNCTION fleet.use_chunks(me integer, modules bytea[], kinds smallint[], chunks bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	bad record;
BEGIN
	UPDATE fleet.module_host h SET lowest_chunk = least(r.low, h.lowest_chunk),
		highest_chunk = greatest(r.high, h.highest_chunk)
	FROM (SELECT u.module, min(u.chunk) AS low, max(u.chunk) AS high FROM unnest(modules, kinds, chunks) AS u(module, kind, chunk)
		WHERE u.kind <= 1 GROUP BY u.module) r
	WHERE h.module = r.module AND h.host = me AND (r.low >= h.lowest_chunk AND r.high <= h.highest_chunk) IS NOT TRUE;
	SELECT r.module, h.host, h.text_size, h.lowest_chunk, h.highest_chunk INTO bad
	FROM (SELECT DISTINCT u.module FROM unnest(modules) AS u(module)) r
		LEFT JOIN fleet.module_host h ON h.module = r.module AND h.host = me LEFT JOIN fleet.module m ON m.module = r.module
	WHERE h.host IS NULL
		OR (m.kind = 0 AND h.highest_chunk - h.lowest_chunk > 2 * (h.text_size >> 16) + 64)
	LIMIT 1;
	IF FOUND AND bad.host IS NULL THEN
		RAISE 'push_rows: unknown module %', encode(bad.module, 'hex') USING ERRCODE = 'MF002';
	ELSIF FOUND THEN
		RAISE 'push_rows: addresses from % to % are more than a text of % bytes', bad.lowest_chunk << 16,
			bad.highest_chunk << 16, bad.text_size USING ERRCODE = 'MF003';
	END IF;
END $$;

-- check_row - refuses what imports refuse. A last_day outside of oldest to today is refused, too.
CREATE FUNCTION fleet.check_row(oldest integer, today integer, kind smallint, chunk bigint, first_day integer,
	last_day integer, total bigint, data bytea) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	sum bigint;
BEGIN
	IF (kind BETWEEN 0 AND 4 AND chunk BETWEEN 0 AND 281474976710655 AND total BETWEEN 0 AND 281474976710656
			AND octet_length(data) <= 1048576 AND (total = 0) = (octet_length(data) = 0)
			AND first_day >= 0) IS NOT TRUE THEN
		RAISE 'push_rows: a damaged row (kind %, chunk %, total %)', kind, chunk, total USING ERRCODE = 'MF003';
	END IF;
	-- first_day is only a key: a host's clock may have been wrong. last_day decides the period.
	IF (last_day BETWEEN oldest AND today) IS NOT TRUE THEN
		RAISE 'push_rows: day %, and today is %', last_day, today USING ERRCODE = 'MF004';
	END IF;
	IF kind > 1 THEN
		RETURN;
	END IF;
	sum := CASE kind WHEN 0 THEN fleet.counts_total(data) ELSE fleet.edges_total(data) END;
	IF sum <> total THEN
		RAISE 'push_rows: the counts are %, not %', sum, total USING ERRCODE = 'MF003';
	END IF;
END $$;

-- put_rows - writes the rows. Returns how many of them were new or newer. shards.sql has another one, since
-- foreign tables know no ON CONFLICT DO UPDATE.
CREATE FUNCTION fleet.put_rows(me integer, number smallint, new_seq bigint, modules bytea[], kinds smallint[],
	first_days integer[], last_days integer[], chunks bigint[], exacts boolean[], totals bigint[], datas bytea[])
RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	nr_new integer;
BEGIN
	INSERT INTO fleet.evidence AS e (module, kind, chunk, first_day, host, epoch, last_day, exact, seq, total, data)
	SELECT r.module, r.kind, r.chunk, r.first_day, me, number, r.last_day, r.exact, new_seq, r.total, r.data
	FROM unnest(modules, kinds, chunks, first_days, last_days, exacts, totals, datas)
		AS r(module, kind, chunk, first_day, last_day, exact, total, data)
	ON CONFLICT (module, kind, chunk, first_day, host, epoch) DO UPDATE SET last_day = excluded.last_day,
		exact = excluded.exact, seq = excluded.seq, total = excluded.total, data = excluded.data
		WHERE e.seq < excluded.seq;
	GET DIAGNOSTICS nr_new = ROW_COUNT;
	RETURN nr_new;
END $$;

-- push_rows - adds or replaces rows. uptos: where it is above first_day, the host has folded its buckets of the
-- days first_day + 1 to upto into this row, so that the server's rows of these buckets are taken back.
CREATE FUNCTION fleet.push_rows(the_epoch bytea, new_seq bigint, modules bytea[], kinds smallint[],
	first_days integer[], uptos integer[], last_days integer[], chunks bigint[], exacts boolean[], totals bigint[],
	datas bytea[]) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = on AS $$
DECLARE
	me integer := fleet.require_host();
	nr integer := cardinality(modules);
	nr_new integer;
	nr_bytes bigint;
	number smallint;
	found_seq bigint;
	today integer := fleet.today();
	oldest integer := today - (SELECT s.value FROM fleet.setting s WHERE s.name = 'oldest_day');
	i integer;
BEGIN
	IF nr IS NULL OR nr > 1000 OR (cardinality(kinds) = nr AND cardinality(first_days) = nr
			AND cardinality(uptos) = nr AND cardinality(last_days) = nr AND cardinality(chunks) = nr
			AND cardinality(exacts) = nr AND cardinality(totals) = nr AND cardinality(datas) = nr) IS NOT TRUE THEN
		RAISE 'push_rows: at most 1000 rows, and arrays of one length' USING ERRCODE = 'MF003';
	END IF;
	SELECT e.number, e.seq INTO number, found_seq FROM fleet.epoch e WHERE e.host = me AND e.epoch = the_epoch;
	IF found_seq IS DISTINCT FROM new_seq THEN
		RAISE 'push_rows: no batch % of this epoch', new_seq USING ERRCODE = 'MF001';
	END IF;
	PERFORM fleet.use_chunks(me, modules, kinds, chunks);
	PERFORM fleet.check_row(oldest, today, r.kind, r.chunk, r.first_day, r.last_day, r.total, r.data)
	FROM unnest(kinds, chunks, first_days, last_days, totals, datas)
		AS r(kind, chunk, first_day, last_day, total, data);
	nr_new := fleet.put_rows(me, number, new_seq, modules, kinds, first_days, last_days, chunks, exacts, totals, datas);
	FOR i IN SELECT u.i FROM unnest(first_days, uptos) WITH ORDINALITY AS u(first_day, upto, i)
			WHERE u.upto > u.first_day LOOP
		UPDATE fleet.evidence e SET seq = new_seq, total = 0, data = ''
		WHERE e.module = modules[i] AND e.kind = kinds[i] AND e.chunk = chunks[i]
			AND e.first_day > first_days[i] AND e.first_day <= uptos[i] AND e.host = me AND e.epoch = number
			AND e.seq < new_seq;
	END LOOP;
	SELECT sum(octet_length(u.data) + 96) INTO nr_bytes FROM unnest(datas) AS u(data);
	PERFORM fleet.add_traffic(me, 1, nr, coalesce(nr_bytes, 0));
	RETURN nr_new;
END $$;

CREATE FUNCTION fleet.my_rows(the_module bytea) RETURNS TABLE(kind smallint, chunk bigint, first_day integer,
	last_day integer, epoch bytea, seq bigint, total bigint, data bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT e.kind, e.chunk, e.first_day, e.last_day, p.epoch, e.seq, e.total, e.data
	FROM fleet.evidence e JOIN fleet.epoch p ON p.host = e.host AND p.number = e.epoch
	WHERE e.module = the_module AND e.host = fleet.require_host() ORDER BY 1, 2, 3, 5
$$;

GRANT EXECUTE ON FUNCTION fleet.today, fleet.my_host TO morph_fleet_host, morph_fleet_reader, morph_fleet_operator;
GRANT EXECUTE ON FUNCTION fleet.epoch, fleet.batch, fleet.push_modules, fleet.push_rows, fleet.my_rows TO morph_fleet_host;
