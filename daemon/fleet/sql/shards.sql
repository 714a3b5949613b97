-- SPDX-License-Identifier: Apache-2.0
--
-- Evidence as hash partitions of modules that lie in other clusters, by postgres_fdw. Made for an
-- empty database, by hand: a superuser creates the servers and the user mappings of morph_fleet_owner and of
-- morph_fleet_reader first, then runs this file, then calls fleet.attach_shards(). Each shard has the table of
-- shard.sql. Hosts and readers talk to this database only, and row-level security is this database's.
SET LOCAL ROLE morph_fleet_owner;

CREATE FUNCTION fleet.attach_shards(servers text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	nr integer := cardinality(servers);
BEGIN
	IF EXISTS (SELECT FROM fleet.evidence) THEN
		RAISE 'evidence has rows: shards are attached to an empty database';
	END IF;
	ALTER TABLE fleet.evidence RENAME TO evidence_local;
	CREATE TABLE fleet.evidence(LIKE fleet.evidence_local) PARTITION BY HASH (module);
	DROP TABLE fleet.evidence_local;
	FOR i IN 1..nr LOOP
		EXECUTE format('CREATE FOREIGN TABLE fleet.evidence_%s PARTITION OF fleet.evidence '
			'FOR VALUES WITH (MODULUS %s, REMAINDER %s) SERVER %I '
			'OPTIONS (schema_name ''fleet_shard'', table_name ''evidence'')',
			i, nr, i - 1, servers[i]);
	END LOOP;
	PERFORM fleet.protect('fleet.evidence', true);
END $$;

-- put_rows - a statement for each row, and two where the row is new: see v1-3-push.sql. batch() has locked the
-- host's epoch, so that nothing comes between them.
CREATE OR REPLACE FUNCTION fleet.put_rows(me integer, number smallint, new_seq bigint, modules bytea[], kinds smallint[],
	first_days integer[], last_days integer[], chunks bigint[], exacts boolean[], totals bigint[], datas bytea[])
RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	nr_new integer := 0;
BEGIN
	FOR i IN 1..cardinality(modules) LOOP
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
	END LOOP;
	RETURN nr_new;
END $$;
