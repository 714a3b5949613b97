-- SPDX-License-Identifier: Apache-2.0
--
-- Counts in fewer bytes (daemon/fleet/packed_counts.h has the format). The last byte tells packed data from the
-- store's. The server checks packed data by counting ones, without a look at each count. read_rows() unpacks,
-- for readers with an older Morph; newer ones call read_packed_rows(), and unpack themselves.
SET LOCAL ROLE morph_fleet_owner;

-- packed_total - as counts_total(), of packed data. It is called for each row of a push, so it calls no other
-- function of its own.
CREATE FUNCTION fleet.packed_total(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	-- Zeros behind the data end a number of entries that is cut short.
	bits bit varying := ('x' || encode(data, 'hex') || '0000')::bit varying;
	size integer := 8 * octet_length(data) - 8; -- the last byte has the parameters
	pos integer := 0;                           -- bits that were read
	nr integer := 0;
	b integer := 128;
	k integer := (get_byte(data, octet_length(data) - 1) >> 3) & 15;
	width_max integer := 16;
	total bigint := 0;
	kept integer;
	ones integer;
	nr_classes integer;
	ends integer[]; -- numbers of the class 0, 1, ...
BEGIN
	WHILE b > 127 AND pos < 24 LOOP
		b := substring(bits, pos + 1, 8)::integer;
		nr := nr | ((b & 127) << (pos / 8 * 7));
		pos := pos + 8;
	END LOOP;
	IF b > 127 OR nr < 1 OR nr > 65536 THEN
		RAISE 'counts: % entries in one chunk', nr USING ERRCODE = 'MF003';
	END IF;
	-- The distances, then the counts.
	FOR list IN 1..2 LOOP
		kept := nr;
		nr_classes := 0;
		WHILE kept > 0 LOOP
			IF nr_classes + k > width_max OR pos >= size THEN
				RAISE 'counts: a number that is too large, or cut short' USING ERRCODE = 'MF003';
			END IF;
			ones := bit_count(substring(bits, pos + 1, kept));
			ends[nr_classes] := ones;
			nr_classes := nr_classes + 1;
			pos := pos + kept;
			kept := kept - ones;
		END LOOP;
		total := 0;
		FOR class IN 0..nr_classes - 1 LOOP
			ones := ends[class];
			CONTINUE WHEN ones = 0;
			total := total + ones * (((1::bigint << class) - 1) << k);
			FOR digit IN REVERSE class + k - 1..0 LOOP
				total := total + (bit_count(substring(bits, pos + 1, ones)) << digit);
				pos := pos + ones;
			END LOOP;
		END LOOP;
		IF list = 1 THEN
			IF total + nr > 65536 THEN
				RAISE 'counts: an address outside of its chunk' USING ERRCODE = 'MF003';
			END IF;
			k := get_byte(data, octet_length(data) - 1) & 7;
			width_max := 46;
		END IF;
	END LOOP;
	IF size - pos NOT BETWEEN 0 AND 7 THEN
		RAISE 'counts: bits that belong to no entry, or are missing' USING ERRCODE = 'MF003';
	END IF;
	RETURN total + nr;
END $$;

-- packed_nr - the number of entries, and the bit that follows it (the first bit is 1), of data that packed_total()
-- accepts.
CREATE FUNCTION fleet.packed_nr(data bytea, OUT nr integer, OUT pos integer) LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	b integer := 128;
BEGIN
	nr := 0;
	pos := 1;
	WHILE b > 127 LOOP
		b := get_byte(data, pos / 8);
		nr := nr | ((b & 127) << (pos / 8 * 7));
		pos := pos + 8;
	END LOOP;
END $$;

-- The function of 0011-push-sets.sql keeps its text under another name; counts_total() chooses.
ALTER FUNCTION fleet.counts_total(bytea) RENAME TO plain_total;
CREATE FUNCTION fleet.counts_total(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	IF octet_length(data) > 0 AND get_byte(data, octet_length(data) - 1) > 127 THEN
		RETURN fleet.packed_total(data);
	END IF;
	RETURN fleet.plain_total(data);
END $$;

-- list_numbers - the numbers themselves, of a list that packed_total() accepts.
CREATE FUNCTION fleet.list_numbers(bits bit varying, INOUT pos integer, nr integer, k integer, OUT numbers bigint[])
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	kept integer[] := ARRAY(SELECT generate_series(1, nr)); -- places whose class is not known yet
	ended integer[];
	classes text[]; -- places of each class, as a text: arrays of arrays have one size
	nr_ended integer;
	place integer;
	number bigint;
	digits integer;
BEGIN
	WHILE kept <> '{}' LOOP
		SELECT coalesce(array_agg(u.place ORDER BY u.i) FILTER (WHERE get_bit(bits, pos + u.i::integer - 2) = 1), '{}'),
			coalesce(array_agg(u.place ORDER BY u.i) FILTER (WHERE get_bit(bits, pos + u.i::integer - 2) = 0), '{}')
		INTO ended, kept FROM unnest(kept) WITH ORDINALITY AS u(place, i);
		pos := pos + cardinality(ended) + cardinality(kept);
		classes := classes || ended::text;
	END LOOP;
	FOR class IN 0..coalesce(cardinality(classes), 0) - 1 LOOP
		ended := classes[class + 1];
		nr_ended := cardinality(ended);
		digits := class + k;
		FOR i IN 1..nr_ended LOOP
			number := 0;
			FOR digit IN 0..digits - 1 LOOP
				number := number << 1 | get_bit(bits, pos + digit * nr_ended + i - 2);
			END LOOP;
			place := ended[i];
			numbers[place] := number + (((1::bigint << class) - 1) << k);
		END LOOP;
		pos := pos + digits * nr_ended;
	END LOOP;
END $$;

ALTER FUNCTION fleet.decode_counts(bigint, bytea) RENAME TO decode_plain;
CREATE FUNCTION fleet.decode_packed(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 200 AS $$
DECLARE
	ks integer := get_byte(data, octet_length(data) - 1);
	bits bit varying := ('x' || encode(data, 'hex'))::bit varying;
	nr integer;
	pos integer;
	distances bigint[];
	counts bigint[];
BEGIN
	SELECT p.nr, p.pos INTO nr, pos FROM fleet.packed_nr(data) p;
	SELECT l.pos, l.numbers INTO pos, distances FROM fleet.list_numbers(bits, pos, nr, ks >> 3 & 15) l;
	SELECT l.numbers INTO counts FROM fleet.list_numbers(bits, pos, nr, ks & 7) l;
	vaddr := (chunk << 16) - 1;
	FOR i IN 1..nr LOOP
		vaddr := vaddr + distances[i] + 1;
		count := counts[i] + 1;
		RETURN NEXT;
	END LOOP;
END $$;

CREATE FUNCTION fleet.decode_counts(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 200 AS $$
BEGIN
	IF octet_length(data) > 0 AND get_byte(data, octet_length(data) - 1) > 127 THEN
		RETURN QUERY SELECT d.vaddr, d.count FROM fleet.decode_packed(chunk, data) d;
	ELSE
		RETURN QUERY SELECT d.vaddr, d.count FROM fleet.decode_plain(chunk, data) d;
	END IF;
END $$;

-- put_number - LEB128.
CREATE FUNCTION fleet.put_number(number bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	bytes bytea := '';
BEGIN
	WHILE number > 127 LOOP
		bytes := bytes || set_byte('\x00', 0, (number & 127 | 128)::integer);
		number := number >> 7;
	END LOOP;
	RETURN bytes || set_byte('\x00', 0, number::integer);
END $$;

-- plain_counts - the store's bytes of counts that may be packed.
CREATE FUNCTION fleet.plain_counts(data bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	IF octet_length(data) = 0 OR get_byte(data, octet_length(data) - 1) < 128 THEN
		RETURN data;
	END IF;
	RETURN (SELECT string_agg(fleet.put_number(t.distance << 2 | t.how)
			|| CASE WHEN t.how = 3 THEN fleet.put_number(t.count) ELSE ''::bytea END, ''::bytea ORDER BY t.vaddr)
		FROM (SELECT d.vaddr, d.count, d.vaddr - lag(d.vaddr, 1, -1::bigint) OVER w - 1 AS distance,
				CASE WHEN d.count = lag(d.count, 1, 1::bigint) OVER w THEN 0 ELSE least(d.count, 3) END AS how
			FROM fleet.decode_packed(0, data) d WINDOW w AS (ORDER BY d.vaddr)) t);
END $$;

-- read_packed_rows is what read_rows was.
ALTER FUNCTION fleet.read_rows(bytea, smallint, integer, integer, double precision, integer) RENAME TO read_packed_rows;
CREATE FUNCTION fleet.read_rows(the_module bytea, the_kind smallint, since_day integer, until_day integer,
	quantile double precision, without integer) RETURNS TABLE(chunk bigint, host integer, first_day integer,
	last_day integer, exact boolean, total bigint, weight integer, data bytea)
LANGUAGE sql STABLE ROWS 10000 AS $$
	SELECT r.chunk, r.host, r.first_day, r.last_day, r.exact, r.total, r.weight,
		CASE WHEN the_kind = 0 THEN fleet.plain_counts(r.data) ELSE r.data END
	FROM fleet.read_packed_rows(the_module, the_kind, since_day, until_day, quantile, without) r
$$;

CREATE OR REPLACE FUNCTION fleet.sum_counts(the_module bytea, since_day integer, until_day integer, quantile double precision)
RETURNS TABLE(vaddr bigint, count bigint) LANGUAGE sql STABLE AS $$
	SELECT d.vaddr, pg_catalog.div(pg_catalog.sum(d.count * r.weight) + 32768, 65536)::bigint
	FROM fleet.read_packed_rows(the_module, 0::smallint, since_day, until_day, quantile, NULL) r
		CROSS JOIN LATERAL fleet.decode_counts(r.chunk, r.data) d
	GROUP BY d.vaddr HAVING pg_catalog.sum(d.count * r.weight) >= 32768 ORDER BY d.vaddr
$$;

-- ---- rows of a push, whose numbers have as many bytes as the largest of them needs

-- Loops in PL/pgSQL: a connection plans each of its statements once, and those of SQL functions at each call.
--
-- numbers - numbers of width bytes each, the highest first.
CREATE FUNCTION fleet.numbers(bytes bytea, width integer) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	found bigint[];
	number bigint;
BEGIN
	FOR i IN 0..octet_length(bytes) / width - 1 LOOP
		number := get_byte(bytes, i * width);
		FOR place IN i * width + 1..(i + 1) * width - 1 LOOP
			number := (number << 8) | get_byte(bytes, place);
		END LOOP;
		found[i + 1] := number;
	END LOOP;
	RETURN found;
END $$;

-- pick - the elements of a list that the numbers name, from 1.
CREATE FUNCTION fleet.pick(list bytea[], places bigint[]) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	found bytea[];
BEGIN
	FOR i IN 1..cardinality(places) LOOP
		found[i] := list[places[i]::integer];
	END LOOP;
	RETURN found;
END $$;

-- slices - the bytes, cut into pieces of these sizes.
CREATE FUNCTION fleet.slices(sizes bigint[], bytes bytea) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	found bytea[];
	pos integer := 1;
BEGIN
	FOR i IN 1..cardinality(sizes) LOOP
		found[i] := substr(bytes, pos, sizes[i]::integer);
		pos := pos + sizes[i]::integer;
	END LOOP;
	RETURN found;
END $$;
GRANT EXECUTE ON FUNCTION fleet.numbers(bytea, integer), fleet.pick(bytea[], bigint[]), fleet.slices(bigint[], bytea)
	TO morph_fleet_host;
GRANT EXECUTE ON FUNCTION fleet.packed_nr(bytea), fleet.list_numbers(bit varying, integer, integer, integer),
	fleet.decode_plain(bigint, bytea), fleet.decode_packed(bigint, bytea), fleet.decode_counts(bigint, bytea),
	fleet.put_number(bigint), fleet.plain_counts(bytea),
	fleet.read_rows(bytea, smallint, integer, integer, double precision, integer) TO morph_fleet_reader;
