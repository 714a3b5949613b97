-- SPDX-License-Identifier: Apache-2.0
--
-- Builds that were asked for, and what hosts' audits found of them. Hosts have no right on these tables yet.
SET LOCAL ROLE morph_fleet_owner;

-- An output of a module, by the options and the version of Morph. A builder takes a row that is queued with
-- FOR UPDATE SKIP LOCKED.
CREATE TABLE fleet.build(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	state text NOT NULL CHECK (state IN ('queued', 'taken', 'done', 'failed', 'withdrawn')),
	changed_at timestamptz NOT NULL DEFAULT now(),
	output bytea, -- the module that the output is
	delta bytea,  -- against the original
	detail text,
	PRIMARY KEY (module, options, version)
);
CREATE INDEX build_queued ON fleet.build(changed_at) WHERE state = 'queued';
ALTER TABLE fleet.build ALTER COLUMN delta SET STORAGE EXTERNAL; -- it is compressed already
ALTER TABLE fleet.build ENABLE ROW LEVEL SECURITY;
ALTER TABLE fleet.build FORCE ROW LEVEL SECURITY;
CREATE POLICY operators ON fleet.build TO morph_fleet_owner USING ((SELECT fleet.is_operator()))
	WITH CHECK ((SELECT fleet.is_operator()));
CREATE POLICY readers ON fleet.build FOR SELECT TO morph_fleet_reader USING (true);
GRANT SELECT ON fleet.build TO morph_fleet_reader;

-- The state of a host's audit of a build: absolute, as evidence is.
CREATE TABLE fleet.audit(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	host integer NOT NULL,
	epoch smallint NOT NULL,
	seq bigint NOT NULL,
	day integer NOT NULL,
	pairs bigint NOT NULL,
	log_e_value double precision NOT NULL,
	ratio double precision NOT NULL, -- times as fast
	lowest double precision NOT NULL,
	highest double precision NOT NULL,
	PRIMARY KEY (module, options, version, host, epoch)
);
SELECT fleet.protect('fleet.audit');
