-- SPDX-License-Identifier: Apache-2.0
--
-- Reads the bytes of counts and edges (Documentation/abi.md, "The store"; daemon/fleet/packed_counts.h has those of
-- packed counts, which the last byte tells from the store's). The server checks with these functions what hosts send,
-- and can sum counts by itself. A program that reads many rows decodes them itself.
SET LOCAL ROLE morph_fleet_owner;

-- plain_total - the sum of the counts of one chunk in the store's form. SQLSTATE MF003: no valid data, or a count of
-- 2^46 and more.
CREATE FUNCTION fleet.plain_total(data bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	size integer := octet_length(data);
	-- Zeros behind the data end an entry that is cut short, without a look at the size for each byte.
	bytes bytea := data || '\x00000000';
	pos integer := 0;
	b integer;
	shift integer;
	token integer;
	next_off integer := 0;
	nr bigint := 1;
	total bigint := 0;
BEGIN
	WHILE pos < size AND next_off <= 65536 LOOP
		token := get_byte(bytes, pos);
		IF token < 128 THEN
			pos := pos + 1;
		ELSE
			token := token - 128 + (get_byte(bytes, pos + 1) << 7);
			IF token < 16384 THEN
				pos := pos + 2;
			ELSE
				token := token - 16384 + (get_byte(bytes, pos + 2) << 14);
				pos := pos + 3;
				IF token >= 2097152 THEN
					RAISE 'counts: a damaged distance' USING ERRCODE = 'MF003';
				END IF;
			END IF;
		END IF;
		next_off := next_off + (token >> 2) + 1;
		IF token & 3 > 0 THEN
			nr := token & 3;
			IF nr = 3 THEN
				b := 128;
				shift := 0;
				nr := 0;
				WHILE b > 127 LOOP
					b := get_byte(bytes, pos);
					pos := pos + 1;
					nr := nr | ((b & 127)::bigint << shift);
					shift := shift + 7;
				END LOOP;
				IF nr <= 0 OR nr >= 70368744177664 OR shift > 49 THEN
					RAISE 'counts: a count of % in one address', nr USING ERRCODE = 'MF003';
				END IF;
			END IF;
		END IF;
		-- At most 65537 counts below 2^46: no overflow.
		total := total + nr;
	END LOOP;
	IF next_off > 65536 THEN
		RAISE 'counts: an address outside of its chunk' USING ERRCODE = 'MF003';
	ELSIF pos > size THEN
		RAISE 'counts: an entry that is cut short' USING ERRCODE = 'MF003';
	END IF;
	RETURN total;
END $$;

-- edges_total - the sum of the transfers of one chunk.
CREATE FUNCTION fleet.edges_total(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	size integer := octet_length(data);
	pos integer := 0;
	b integer;
	shift integer;
	token bigint;
	value bigint;
	part integer;
	off bigint := 0;
	nr bigint := 1;
	total bigint := 0;
BEGIN
	WHILE pos < size LOOP
		-- The parts of an entry: 0 token, 1 target, 2 count, 3 mispredicted.
		FOR part IN 0..3 LOOP
			CONTINUE WHEN part = 2 AND token & 3 <> 3 OR part = 3 AND token & 4 = 0;
			b := 128;
			shift := 0;
			value := 0;
			WHILE b > 127 LOOP
				IF pos >= size OR shift > 63 THEN
					RAISE 'edges: an entry that is cut short' USING ERRCODE = 'MF003';
				END IF;
				b := get_byte(data, pos);
				pos := pos + 1;
				value := value | ((b & 127)::bigint << shift);
				shift := shift + 7;
			END LOOP;
			IF part = 0 THEN
				token := value;
				off := off + (value >> 3);
				IF value < 0 OR off > 65535 THEN
					RAISE 'edges: an address outside of its chunk' USING ERRCODE = 'MF003';
				END IF;
				IF value & 3 IN (1, 2) THEN
					nr := value & 3;
				END IF;
			ELSIF part = 2 THEN
				nr := value;
			END IF;
			IF nr <= 0 OR nr >= 70368744177664 OR part = 3 AND value NOT BETWEEN 1 AND nr THEN
				RAISE 'edges: a count of %', nr USING ERRCODE = 'MF003';
			END IF;
		END LOOP;
		total := total + nr;
		IF total > 281474976710656 THEN
			RAISE 'edges: more than 2^48 transfers' USING ERRCODE = 'MF003';
		END IF;
	END LOOP;
	RETURN total;
END $$;

-- packed_total - as plain_total(), of packed data. It is called for each row of a push, so it calls no other
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

-- counts_total - the sum of the counts of one chunk.
CREATE FUNCTION fleet.counts_total(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	IF octet_length(data) > 0 AND get_byte(data, octet_length(data) - 1) > 127 THEN
		RETURN fleet.packed_total(data);
	END IF;
	RETURN fleet.plain_total(data);
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

-- decode_plain - the counts of one chunk whose data plain_total() accepts.
CREATE FUNCTION fleet.decode_plain(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 200 AS $$
DECLARE
	size integer := octet_length(data);
	pos integer := 0;
	b integer;
	shift integer;
	token integer;
BEGIN
	vaddr := (chunk << 16) - 1;
	count := 1;
	WHILE pos < size LOOP
		b := get_byte(data, pos);
		pos := pos + 1;
		token := b & 127;
		shift := 7;
		WHILE b > 127 LOOP
			b := get_byte(data, pos);
			pos := pos + 1;
			token := token | ((b & 127) << shift);
			shift := shift + 7;
		END LOOP;
		vaddr := vaddr + (token >> 2) + 1;
		token := token & 3;
		IF token = 3 THEN
			b := 128;
			shift := 0;
			count := 0;
			WHILE b > 127 LOOP
				b := get_byte(data, pos);
				pos := pos + 1;
				count := count | ((b & 127)::bigint << shift);
				shift := shift + 7;
			END LOOP;
		ELSIF token > 0 THEN
			count := token;
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;

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

-- decode_counts - the counts of one chunk whose data counts_total() accepts.
CREATE FUNCTION fleet.decode_counts(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 200 AS $$
BEGIN
	IF octet_length(data) > 0 AND get_byte(data, octet_length(data) - 1) > 127 THEN
		RETURN QUERY SELECT d.vaddr, d.count FROM fleet.decode_packed(chunk, data) d;
	ELSE
		RETURN QUERY SELECT d.vaddr, d.count FROM fleet.decode_plain(chunk, data) d;
	END IF;
END $$;

GRANT EXECUTE ON FUNCTION fleet.packed_nr(bytea), fleet.list_numbers(bit varying, integer, integer, integer),
	fleet.decode_plain(bigint, bytea), fleet.decode_packed(bigint, bytea), fleet.decode_counts(bigint, bytea)
	TO morph_fleet_reader;

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
