-- SPDX-License-Identifier: Apache-2.0
--
-- What hosts call. Each function acts on the host of session_user only. A batch is one transaction: batch(),
-- then push_modules() and push_rows() as often as needed. A batch that is sent twice, late or in another order
-- changes nothing.
--
-- SQLSTATEs: MF001 the epoch was continued elsewhere; MF002 unknown module; MF003 a row that no correct client
-- sends; MF004 day out of range; MF005 more than the day's quota; MF006 not enrolled, or banned.
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
CREATE FUNCTION fleet.add_traffic(me integer, add_batches bigint, add_rows bigint, add_bytes bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sent bigint;
BEGIN
	UPDATE fleet.traffic t SET nr_batches = t.nr_batches + add_batches, nr_rows = t.nr_rows + add_rows,
		nr_bytes = t.nr_bytes + add_bytes
	WHERE t.host = me AND t.day = fleet.today() RETURNING t.nr_bytes INTO sent;
	IF NOT FOUND THEN
		INSERT INTO fleet.traffic VALUES (me, fleet.today(), add_batches, add_rows, add_bytes);
		sent := add_bytes;
	END IF;
	IF sent > (SELECT s.value FROM fleet.setting s WHERE s.name = 'bytes_per_day') THEN
		RAISE 'host %: % bytes today are more than its quota', session_user, sent USING ERRCODE = 'MF005';
	END IF;
END $$;

CREATE FUNCTION fleet.push_modules(modules bytea[], kinds smallint[], text_sizes bigint[], names text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
	nr integer := cardinality(modules);
	nr_bytes bigint := 0;
BEGIN
	IF nr IS NULL OR nr > 1000 OR (cardinality(kinds) = nr AND cardinality(text_sizes) = nr AND cardinality(names) = nr)
			IS NOT TRUE THEN
		RAISE 'push_modules: at most 1000 modules, and arrays of one length' USING ERRCODE = 'MF003';
	END IF;
	FOR i IN 1..nr LOOP
		IF (octet_length(modules[i]) BETWEEN 8 AND 40 AND kinds[i] BETWEEN 0 AND 2
				AND text_sizes[i] BETWEEN 1 AND 4294967296) IS NOT TRUE
				OR length(names[i]) > 4096 OR names[i] ~ '[[:cntrl:]]' THEN
			RAISE 'push_modules: module % is damaged', i USING ERRCODE = 'MF003';
		END IF;
		INSERT INTO fleet.module(module, kind) VALUES (modules[i], kinds[i]) ON CONFLICT DO NOTHING;
		UPDATE fleet.module_host m SET text_size = text_sizes[i], name = names[i]
		WHERE m.module = modules[i] AND m.host = me;
		IF NOT FOUND THEN
			INSERT INTO fleet.module_host(module, host, text_size, name) VALUES (modules[i], me, text_sizes[i], names[i]);
		END IF;
		nr_bytes := nr_bytes + octet_length(modules[i]) + 16 + coalesce(octet_length(names[i]), 0);
	END LOOP;
	PERFORM fleet.add_traffic(me, 0, 0, nr_bytes);
	RETURN nr;
END $$;

-- use_chunks - widens a host's range of chunks in a module. Text may lie in several segments; together
-- they are not much longer than the text, unless somebody makes the addresses up.
CREATE FUNCTION fleet.use_chunks(me integer, the_module bytea, low bigint, high bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m record;
BEGIN
	SELECT h.text_size, h.lowest_chunk, h.highest_chunk, k.kind INTO m
	FROM fleet.module_host h JOIN fleet.module k USING (module) WHERE h.module = the_module AND h.host = me;
	IF NOT FOUND THEN
		RAISE 'push_rows: unknown module %', encode(the_module, 'hex') USING ERRCODE = 'MF002';
	END IF;
	IF low >= m.lowest_chunk AND high <= m.highest_chunk OR low IS NULL THEN
		RETURN;
	END IF;
	low := least(low, m.lowest_chunk);
	high := greatest(high, m.highest_chunk);
	IF m.kind = 0 AND high - low > 2 * (m.text_size >> 16) + 64 THEN
		RAISE 'push_rows: addresses from % to % are more than a text of % bytes', low << 16, high << 16, m.text_size
			USING ERRCODE = 'MF003';
	END IF;
	UPDATE fleet.module_host h SET lowest_chunk = low, highest_chunk = high WHERE h.module = the_module AND h.host = me;
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

-- push_rows - adds or replaces rows. uptos: where it is above first_day, the host has folded its buckets of the
-- days first_day + 1 to upto into this row, so that the server's rows of these buckets are taken back.
CREATE FUNCTION fleet.push_rows(the_epoch bytea, new_seq bigint, modules bytea[], kinds smallint[],
	first_days integer[], uptos integer[], last_days integer[], chunks bigint[], exacts boolean[], totals bigint[],
	datas bytea[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
	nr integer := cardinality(modules);
	nr_new integer := 0;
	nr_bytes bigint := 0;
	number smallint;
	found_seq bigint;
	today integer := fleet.today();
	oldest integer := today - (SELECT s.value FROM fleet.setting s WHERE s.name = 'oldest_day');
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
	-- Contexts and paths have no addresses in their keys.
	PERFORM fleet.use_chunks(me, r.module, min(r.chunk) FILTER (WHERE r.kind <= 1),
		max(r.chunk) FILTER (WHERE r.kind <= 1))
	FROM unnest(modules, kinds, chunks) AS r(module, kind, chunk) GROUP BY r.module;
	FOR i IN 1..nr LOOP
		PERFORM fleet.check_row(oldest, today, kinds[i], chunks[i], first_days[i], last_days[i], totals[i], datas[i]);
		-- Two statements, since foreign tables know no ON CONFLICT DO UPDATE. batch() has locked the host's epoch,
		-- so that nothing comes between them.
		UPDATE fleet.evidence e SET last_day = last_days[i], exact = exacts[i], seq = new_seq, total = totals[i],
			data = datas[i]
		WHERE e.module = modules[i] AND e.kind = kinds[i] AND e.chunk = chunks[i] AND e.first_day = first_days[i]
			AND e.host = me AND e.epoch = number AND e.seq < new_seq;
		IF NOT FOUND THEN
			INSERT INTO fleet.evidence(module, kind, chunk, first_day, host, epoch, last_day, exact, seq, total, data)
			VALUES (modules[i], kinds[i], chunks[i], first_days[i], me, number, last_days[i], exacts[i], new_seq,
				totals[i], datas[i]) ON CONFLICT DO NOTHING;
		END IF;
		nr_new := nr_new + FOUND::integer;
		IF uptos[i] > first_days[i] THEN
			UPDATE fleet.evidence e SET seq = new_seq, total = 0, data = ''
			WHERE e.module = modules[i] AND e.kind = kinds[i] AND e.chunk = chunks[i]
				AND e.first_day > first_days[i] AND e.first_day <= uptos[i] AND e.host = me AND e.epoch = number
				AND e.seq < new_seq;
		END IF;
		nr_bytes := nr_bytes + octet_length(datas[i]) + 96;
	END LOOP;
	PERFORM fleet.add_traffic(me, 1, nr, nr_bytes);
	RETURN nr_new;
END $$;

CREATE FUNCTION fleet.my_rows(the_module bytea) RETURNS TABLE(kind smallint, chunk bigint, first_day integer,
	last_day integer, epoch bytea, seq bigint, total bigint, data bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT e.kind, e.chunk, e.first_day, e.last_day, p.epoch, e.seq, e.total, e.data
	FROM fleet.evidence e JOIN fleet.epoch p ON p.host = e.host AND p.number = e.epoch
	WHERE e.module = the_module AND e.host = fleet.require_host() ORDER BY 1, 2, 3, 5
$$;

GRANT EXECUTE ON FUNCTION fleet.today(), fleet.my_host() TO morph_fleet_host, morph_fleet_reader, morph_fleet_operator;
GRANT EXECUTE ON FUNCTION fleet.epoch(bytea), fleet.batch(bytea, bigint, bigint, bigint),
	fleet.push_modules(bytea[], smallint[], bigint[], text[]),
	fleet.push_rows(bytea, bigint, bytea[], smallint[], integer[], integer[], integer[], bigint[], boolean[], bigint[],
		bytea[]),
	fleet.my_rows(bytea) TO morph_fleet_host;
