-- SPDX-License-Identifier: Apache-2.0
--
-- The fleet's tables, its roles, and who sees which rows.
--
-- Each host has a role of its own, which has no right on any table. A host calls functions, which run as
-- morph_fleet_owner. Row-level security is forced on the owner, too, and goes by session_user: so even a
-- mistake in one of these functions lets a host write no row of another host.
--
-- The first column of each key is the module, so that hash partitions can distribute the tables. Tables
-- about hosts have the host instead.

DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['morph_fleet_owner', 'morph_fleet_host', 'morph_fleet_reader', 'morph_fleet_operator',
			'morph_fleet_builder'] LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE format('CREATE ROLE %I NOLOGIN', role);
		END IF;
		-- The caller creates the objects as the owner, and enrols hosts. A superuser needs no membership.
		IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
			EXECUTE format('GRANT %I TO %I WITH ADMIN OPTION', role, current_user);
		END IF;
	END LOOP;
	EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
	EXECUTE format('GRANT CONNECT ON DATABASE %I TO morph_fleet_host, morph_fleet_reader, morph_fleet_operator, '
		'morph_fleet_builder', current_database());
END $$;

CREATE SCHEMA fleet AUTHORIZATION morph_fleet_owner;
SET LOCAL ROLE morph_fleet_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE morph_fleet_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT USAGE ON SCHEMA fleet TO morph_fleet_host, morph_fleet_reader, morph_fleet_operator, morph_fleet_builder;

-- The versions that the schema had; the highest one is today's.
CREATE TABLE fleet.migration(number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());

-- Limits, in bytes and days. An operator may change them.
CREATE TABLE fleet.setting(name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO fleet.setting VALUES
	('bytes_per_day', 64 * 1024 * 1024), -- that a host may send
	('oldest_day', 400),                 -- before today
	('epochs', 1000),                    -- that a host may begin
	('plan_bytes', 16 * 1024 * 1024),    -- that a build's plan may have
	('lease_seconds', 120),              -- that a builder has a job without renewing it
	('build_attempts', 3),               -- of builders that ended over a job
	('modules_asked', 10000);            -- that a host may ask builds of

-- A host is named by its role, which is the name in its certificate.
CREATE TABLE fleet.host(
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text NOT NULL UNIQUE,
	enrolled_at timestamptz NOT NULL DEFAULT now(),
	banned_at timestamptz
);
CREATE INDEX host_banned ON fleet.host(id) WHERE banned_at IS NOT NULL;

-- An epoch is one lineage of a host's local store. A restored or cloned store begins a new epoch, which sends
-- only what the old one did not have: the counts of all epochs add up. The token changes with each batch; two
-- stores that continue the same epoch are thus told apart.
CREATE TABLE fleet.epoch(
	host integer NOT NULL,
	epoch bytea NOT NULL CHECK (octet_length(epoch) = 16),
	number smallint NOT NULL, -- stands for the epoch in the rows
	seq bigint NOT NULL,      -- of the last batch
	token bigint NOT NULL,
	last_at timestamptz NOT NULL,
	PRIMARY KEY (host, epoch),
	UNIQUE (host, number)
);

CREATE TABLE fleet.traffic(
	host integer NOT NULL,
	day integer NOT NULL, -- of the server
	nr_batches bigint NOT NULL,
	nr_rows bigint NOT NULL,
	nr_bytes bigint NOT NULL,
	PRIMARY KEY (host, day)
);

-- A module is its text hash (8 bytes, the highest first) and its build-id.
CREATE TABLE fleet.module(
	module bytea PRIMARY KEY CHECK (octet_length(module) BETWEEN 8 AND 40),
	build_id bytea NOT NULL GENERATED ALWAYS AS (substr(module, 9)) STORED,
	kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 2) -- enum mp_module_kind
);
CREATE INDEX module_build_id ON fleet.module(build_id);

-- What a host says of a module. No host's word counts for another host.
CREATE TABLE fleet.module_host(
	module bytea NOT NULL,
	host integer NOT NULL,
	text_size bigint NOT NULL,
	name text, -- '#' and a salted hash, or a path
	lowest_chunk bigint, -- of counts and edges
	highest_chunk bigint,
	PRIMARY KEY (module, host)
);
CREATE INDEX module_host_name ON fleet.module_host(name, module);

-- The counts of a host: one row for each module, kind, 64 KiB of text and bucket of days. Counts are absolute:
-- a row that is sent again replaces the earlier one.
CREATE TABLE fleet.evidence(
	module bytea NOT NULL,
	kind smallint NOT NULL, -- 0 counts, 1 edges, 2 paths, 3 contexts, 4 calls
	chunk bigint NOT NULL,  -- counts and edges: address >> 16; others: number of the piece
	first_day integer NOT NULL,
	host integer NOT NULL,
	epoch smallint NOT NULL,
	last_day integer NOT NULL,
	exact boolean NOT NULL, -- counted, not sampled
	seq bigint NOT NULL,
	total bigint NOT NULL,  -- the sum of the counts in data
	data bytea NOT NULL,    -- empty: the host has taken the row back
	PRIMARY KEY (module, kind, chunk, first_day, host, epoch)
);
-- Rows are rewritten during their first days.
ALTER TABLE fleet.evidence SET (fillfactor = 85);
ALTER TABLE fleet.evidence ALTER COLUMN data SET COMPRESSION lz4;

-- ---- who sees which rows

CREATE FUNCTION fleet.is_operator() RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.pg_has_role(session_user, 'morph_fleet_operator', 'member')
$$;

-- The number of the host that is logged in; NULL: no host, or a banned one. Each statement on a table with
-- row-level security calls it. plpgsql keeps its plan. The collation is that
-- of the index: session_user has another one.
CREATE FUNCTION fleet.current_host() RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT h.id FROM fleet.host h
		WHERE h.name OPERATOR(pg_catalog.=) session_user::text COLLATE pg_catalog."default" AND h.banned_at IS NULL);
END $$;
GRANT EXECUTE ON FUNCTION fleet.is_operator, fleet.current_host TO morph_fleet_host, morph_fleet_reader, morph_fleet_operator;

-- protect - row-level security of a table. Operators have all rows. by_host: the table has a column host; hosts have their own
-- rows, and readers see those of hosts that are not banned. Else readers and operators see all rows.
CREATE FUNCTION fleet.protect(the_table regclass, by_host boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	readers text := CASE WHEN by_host THEN 'morph_fleet_reader' ELSE 'morph_fleet_reader, morph_fleet_operator' END;
BEGIN
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', the_table);
	EXECUTE format('CREATE POLICY operators ON %s TO morph_fleet_owner USING ((SELECT fleet.is_operator())) '
		'WITH CHECK ((SELECT fleet.is_operator()))', the_table);
	EXECUTE format('CREATE POLICY readers ON %s FOR SELECT TO %s USING (%s)', the_table, readers, CASE WHEN by_host
		THEN 'host NOT IN (SELECT h.id FROM fleet.host h WHERE h.banned_at IS NOT NULL)' ELSE 'true' END);
	EXECUTE format('GRANT SELECT ON %s TO %s', the_table, readers);
	IF by_host THEN
		EXECUTE format('CREATE POLICY own_rows ON %s TO morph_fleet_owner USING (host = (SELECT fleet.current_host())) '
			'WITH CHECK (host = (SELECT fleet.current_host()))', the_table);
	END IF;
END $$;

SELECT fleet.protect(t::regclass, true)
FROM unnest(ARRAY['fleet.epoch', 'fleet.traffic', 'fleet.module_host', 'fleet.evidence']) t;
SELECT fleet.protect('fleet.host', false);
CREATE POLICY own_row ON fleet.host FOR SELECT TO morph_fleet_owner USING (name = session_user::text COLLATE pg_catalog."default");

-- Any host may say that a module exists; a module's row holds nothing else.
ALTER TABLE fleet.module ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY see ON fleet.module FOR SELECT TO morph_fleet_owner, morph_fleet_reader, morph_fleet_operator USING (true);
CREATE POLICY add ON fleet.module FOR INSERT TO morph_fleet_owner
	WITH CHECK ((SELECT fleet.current_host()) IS NOT NULL OR (SELECT fleet.is_operator()));
GRANT SELECT ON fleet.module TO morph_fleet_reader, morph_fleet_operator;
