-- SPDX-License-Identifier: Apache-2.0
--
-- Reads the bytes of counts and edges (Documentation/abi.md, "The store"; daemon/fleet/packed_counts.h has those of
-- packed counts, which the last byte tells from the store's). The server checks with these functions what hosts send,
-- and can sum counts by itself. A program that reads many rows decodes them itself.
SET LOCAL ROLE morph_fleet_owner;

-- read_plain - the counts of one chunk in the store's form, and their sum. lists: whether the lists are wanted. SQLSTATE MF003:
-- no valid data, or a count of 2^46 and more.
CREATE FUNCTION fleet.read_plain(data bytea, lists boolean, OUT total bigint, OUT offs integer[], OUT counts bigint[])
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
	count bigint := 1;
	nr integer := 0;
BEGIN
	total := 0;
	WHILE pos < size LOOP
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
			END IF;
		END IF;
		next_off := next_off + (token >> 2) + 1;
		IF token & 3 > 0 THEN
			count := token & 3;
			IF count = 3 THEN
				b := 128;
				shift := 0;
				count := 0;
				WHILE b > 127 LOOP
					b := get_byte(bytes, pos);
					pos := pos + 1;
					count := count | ((b & 127)::bigint << shift);
					shift := shift + 7;
				END LOOP;
			END IF;
		END IF;
		IF token >= 2097152 OR next_off > 65536 OR pos > size OR count NOT BETWEEN 1 AND 70368744177663 OR shift > 49 THEN
			RAISE 'counts: a damaged entry, a count of % at %', count, next_off - 1 USING ERRCODE = 'MF003';
		END IF;
		-- At most 65536 counts below 2^46: no overflow.
		total := total + count;
		IF lists THEN
			nr := nr + 1;
			offs[nr] := next_off - 1;
			counts[nr] := count;
		END IF;
	END LOOP;
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

-- packed_total - the sum of the counts of packed data. It is called for each row of a push, so it calls no other
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
	RETURN (fleet.read_plain(data, false)).total;
END $$;

-- decode_counts - the counts of one chunk whose data counts_total() accepts.
CREATE FUNCTION fleet.decode_counts(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 200 AS $$
DECLARE
	ks integer := get_byte(data, octet_length(data) - 1);
	bits bit varying := ('x' || encode(data, 'hex'))::bit varying;
	pos integer := 0;
	nr integer := 0;
	k integer := ks >> 3 & 15;
	unread integer;
	nr_classes integer;
	class_of integer[]; -- by place
	numbers bigint[];
	distances bigint[];
BEGIN
	IF ks < 128 THEN
		RETURN QUERY SELECT (chunk << 16) + u.off, u.count FROM fleet.read_plain(data, true) p, unnest(p.offs, p.counts) u(off, count);
		RETURN;
	END IF;
	LOOP
		nr := nr | ((get_byte(data, pos / 8) & 127) << (pos / 8 * 7));
		pos := pos + 8;
		EXIT WHEN get_byte(data, pos / 8 - 1) < 128;
	END LOOP;
	-- The distances, then the counts.
	FOR list IN 1..2 LOOP
		class_of := array_fill(NULL::integer, ARRAY[nr]);
		unread := nr;
		nr_classes := 0;
		WHILE unread > 0 LOOP
			FOR place IN 1..nr LOOP
				CONTINUE WHEN class_of[place] IS NOT NULL;
				IF get_bit(bits, pos) = 1 THEN
					class_of[place] := nr_classes;
					unread := unread - 1;
				END IF;
				pos := pos + 1;
			END LOOP;
			nr_classes := nr_classes + 1;
		END LOOP;
		-- A one before the digits of a number, less 1 << k, is the first number of its class and the digits.
		numbers := array_fill(1::bigint, ARRAY[nr]);
		FOR class IN 0..nr_classes - 1 LOOP
			FOR digit IN 1..class + k LOOP
				FOR place IN 1..nr LOOP
					CONTINUE WHEN class_of[place] <> class;
					numbers[place] := numbers[place] << 1 | get_bit(bits, pos);
					pos := pos + 1;
				END LOOP;
			END LOOP;
		END LOOP;
		IF list = 1 THEN
			distances := numbers;
			k := ks & 7;
		END IF;
	END LOOP;
	vaddr := (chunk << 16) - 1;
	FOR place IN 1..nr LOOP
		vaddr := vaddr + distances[place] - (1 << (ks >> 3 & 15)) + 1;
		count := numbers[place] - (1 << k) + 1;
		RETURN NEXT;
	END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION fleet.read_plain, fleet.decode_counts TO morph_fleet_reader;

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
GRANT EXECUTE ON FUNCTION fleet.numbers, fleet.pick, fleet.slices TO morph_fleet_host;
