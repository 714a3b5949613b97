-- SPDX-License-Identifier: Apache-2.0
--
-- Reads the bytes of counts and edges (Documentation/abi.md, "The store"). The server checks with these
-- functions what hosts send, and can sum counts by itself. They take half a microsecond a byte; a program that
-- reads many rows decodes them itself.
SET LOCAL ROLE morph_fleet_owner;

-- counts_total - the sum of the counts of one chunk. SQLSTATE MF003: no valid data, or a count of 2^46 and more.
CREATE FUNCTION fleet.counts_total(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	size integer := octet_length(data);
	pos integer := 0;
	b integer;
	shift integer;
	token integer;
	next_off integer := 0;
	nr bigint := 1;
	total bigint := 0;
BEGIN
	WHILE pos < size LOOP
		b := get_byte(data, pos);
		pos := pos + 1;
		token := b & 127;
		shift := 7;
		WHILE b > 127 LOOP
			IF pos >= size OR shift > 14 THEN
				RAISE 'counts: a damaged distance' USING ERRCODE = 'MF003';
			END IF;
			b := get_byte(data, pos);
			pos := pos + 1;
			token := token | ((b & 127) << shift);
			shift := shift + 7;
		END LOOP;
		next_off := next_off + (token >> 2) + 1;
		IF next_off > 65536 THEN
			RAISE 'counts: an address outside of its chunk' USING ERRCODE = 'MF003';
		END IF;
		token := token & 3;
		IF token = 3 THEN
			b := 128;
			shift := 0;
			nr := 0;
			WHILE b > 127 LOOP
				IF pos >= size OR shift > 42 THEN
					RAISE 'counts: a count that is cut short or too large' USING ERRCODE = 'MF003';
				END IF;
				b := get_byte(data, pos);
				pos := pos + 1;
				nr := nr | ((b & 127)::bigint << shift);
				shift := shift + 7;
			END LOOP;
			IF nr = 0 OR nr >= 70368744177664 THEN
				RAISE 'counts: a count of % in one address', nr USING ERRCODE = 'MF003';
			END IF;
		ELSIF token > 0 THEN
			nr := token;
		END IF;
		-- At most 65536 counts below 2^46: no overflow.
		total := total + nr;
	END LOOP;
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

-- decode_counts - the counts of one chunk whose data counts_total() accepts.
CREATE FUNCTION fleet.decode_counts(chunk bigint, data bytea) RETURNS TABLE(vaddr bigint, count bigint)
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
GRANT EXECUTE ON FUNCTION fleet.decode_counts(bigint, bytea) TO morph_fleet_reader;
