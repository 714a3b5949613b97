-- SPDX-License-Identifier: Apache-2.0
--
-- Builds: operators ask for them, builders make them, hosts fetch them. A build is a plan, and no code: each host makes
-- the output from its own original, and verifies it. Neither a builder nor the server is trusted with more.
--
-- A builder takes a job for a while, its lease, and renews the lease while it works. The job of a builder that
-- was killed is free when the lease has ended. The lease's number says whether a result still belongs to it.

SET LOCAL ROLE morph_fleet_owner;

-- A build is the plan of an output of a module, by the options and the version of Morph. A builder takes a row that is
-- queued with FOR UPDATE SKIP LOCKED.
CREATE TABLE fleet.build(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	state text NOT NULL CHECK (state IN ('queued', 'taken', 'done', 'failed', 'withdrawn')),
	changed_at timestamptz NOT NULL DEFAULT now(),
	output bytea, -- the module that the builder's output is
	output_hash bytea CHECK (octet_length(output_hash) = 32), -- SHA-256 of that file
	plan bytea,   -- what morph-optimize --plan reads
	detail text,
	release integer NOT NULL DEFAULT 0, -- number of plans that were stored under this key
	builder integer,                    -- the host that has or had the lease
	lease bigint NOT NULL DEFAULT 0,    -- its number
	lease_until timestamptz,
	nr_attempts integer NOT NULL DEFAULT 0,
	lacking integer[], -- failed: builders that did not find the original
	PRIMARY KEY (module, options, version)
);
CREATE INDEX build_queued ON fleet.build(changed_at) WHERE state = 'queued';
CREATE INDEX build_taken ON fleet.build(lease_until) WHERE state = 'taken';
ALTER TABLE fleet.build ALTER COLUMN plan SET STORAGE EXTERNAL; -- it is compressed already
SELECT fleet.protect('fleet.build', false);

-- What a host knows of a build: absolute, so that a host that sends it twice changes nothing. Logarithms are natural.
CREATE TABLE fleet.audit(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	release integer NOT NULL DEFAULT 0,
	host integer NOT NULL,
	epoch smallint NOT NULL DEFAULT 0, -- a host has one state, whatever its epochs
	seq bigint NOT NULL,
	day integer NOT NULL,
	output_hash bytea, -- of the output that the host has made; NULL: it did not say
	pairs bigint NOT NULL,
	log_faster double precision NOT NULL, -- of the audit: against "it is not faster"
	log_slower double precision NOT NULL DEFAULT 0, -- against "it is not slower"
	ratio double precision, -- times as fast
	lowest double precision,
	highest double precision,
	log_used_faster double precision NOT NULL DEFAULT 0, -- the same two of the probation
	log_used_slower double precision NOT NULL DEFAULT 0,
	used_ratio double precision, -- time for the same work after / before
	log_crashes double precision NOT NULL DEFAULT 0, -- against "it crashes as often as before"
	crashes bigint NOT NULL DEFAULT 0,
	state text NOT NULL DEFAULT '', -- of the host's job
	sent_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (module, options, version, host, epoch)
);
SELECT fleet.protect('fleet.audit', true);

-- What a host has of a module's builds. A host sees the builds of modules that it has asked for.
CREATE TABLE fleet.build_host(
	module bytea NOT NULL CHECK (octet_length(module) BETWEEN 8 AND 40),
	host integer NOT NULL,
	asked_at timestamptz NOT NULL DEFAULT now(), -- the last time
	options text, -- these three: the build that the state is about
	version text,
	release integer,
	output_hash bytea CHECK (octet_length(output_hash) = 32), -- of what the host has made; NULL: nothing
	state text NOT NULL DEFAULT 'asked' CHECK (state IN (
		'asked',     -- nothing was fetched yet
		'waiting',   -- made and verified; the host audits it before it goes in place
		'installed', -- in place
		'refused',   -- the output that the host made does not verify
		'rejected',  -- proved, but the host found it slower before, or it is not what the host's policy allows
		'failed',    -- something else went wrong
		'undone')),  -- the original is back
	changed_at timestamptz,
	detail text,
	PRIMARY KEY (module, host)
);
CREATE INDEX build_host_host ON fleet.build_host(host);
SELECT fleet.protect('fleet.build_host', true);

-- A banned builder is none.
CREATE FUNCTION fleet.is_builder() RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.pg_has_role(session_user, 'morph_fleet_builder', 'member') AND fleet.current_host() IS NOT NULL
$$;

CREATE POLICY builders ON fleet.build TO morph_fleet_owner USING ((SELECT fleet.is_builder()))
	WITH CHECK ((SELECT fleet.is_builder()));
CREATE POLICY hosts ON fleet.build FOR SELECT TO morph_fleet_owner USING (state IN ('done', 'withdrawn') AND EXISTS (
	SELECT FROM fleet.build_host h WHERE h.module = build.module AND h.host = (SELECT fleet.current_host())));
CREATE POLICY operators_read ON fleet.build_host FOR SELECT TO morph_fleet_operator USING (true);
CREATE POLICY operators_read ON fleet.audit FOR SELECT TO morph_fleet_operator USING (true);
CREATE POLICY operators_read ON fleet.module_host FOR SELECT TO morph_fleet_operator USING (true);
GRANT SELECT ON fleet.build_host, fleet.audit, fleet.module_host TO morph_fleet_operator;

-- ---- operators

-- request_build - queues a build. One that was made already is made again only if this is asked for, and one
-- that is queued or taken stays. Returns the state that the build had; NULL: it is new.
CREATE FUNCTION fleet.request_build(the_module bytea, the_options text, the_version text, again boolean)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	was text;
BEGIN
	IF (octet_length(the_module) BETWEEN 8 AND 40 AND length(the_options) <= 1000 AND the_options !~ '[[:cntrl:]]'
			AND length(the_version) BETWEEN 1 AND 200) IS NOT TRUE THEN
		RAISE 'request_build: a module has 8 to 40 bytes, options at most 1000 characters' USING ERRCODE = 'MF003';
	END IF;
	SELECT b.state INTO was FROM fleet.build b
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version FOR UPDATE;
	IF NOT FOUND THEN
		INSERT INTO fleet.build(module, options, version, state) VALUES (the_module, the_options, the_version, 'queued')
		ON CONFLICT DO NOTHING;
	ELSIF was = 'failed' OR again AND was IN ('done', 'withdrawn') THEN
		UPDATE fleet.build b SET state = 'queued', changed_at = now(), nr_attempts = 0, detail = NULL, lacking = NULL
		WHERE b.module = the_module AND b.options = the_options AND b.version = the_version;
	END IF;
	RETURN was;
END $$;

-- list_builds - all builds, the newest first. nr_other: hosts whose Morph makes other bytes by the plan. Runs with the caller's rights.
CREATE FUNCTION fleet.list_builds() RETURNS TABLE(module bytea, options text, version text, state text,
	release integer, changed_at timestamptz, plan_size bigint, nr_installed bigint, nr_other bigint, nr_waiting bigint,
	nr_refused bigint, detail text)
LANGUAGE sql STABLE AS $$
	SELECT b.module, b.options, b.version, b.state, b.release, b.changed_at, pg_catalog.octet_length(b.plan)::bigint,
		h.nr_installed, h.nr_other, h.nr_waiting, h.nr_refused, b.detail
	FROM fleet.build b CROSS JOIN LATERAL (
		SELECT pg_catalog.count(*) FILTER (WHERE s.state = 'installed') AS nr_installed,
			pg_catalog.count(*) FILTER (WHERE s.state = 'installed' AND s.output_hash <> b.output_hash) AS nr_other,
			pg_catalog.count(*) FILTER (WHERE s.state = 'waiting') AS nr_waiting,
			pg_catalog.count(*) FILTER (WHERE s.state = 'refused') AS nr_refused
		FROM fleet.build_host s
		WHERE s.module = b.module AND s.options = b.options AND s.version = b.version AND s.release = b.release
	) h
	ORDER BY b.changed_at DESC, b.module, b.options, b.version
$$;

GRANT EXECUTE ON FUNCTION fleet.request_build TO morph_fleet_operator;
GRANT EXECUTE ON FUNCTION fleet.list_builds TO morph_fleet_operator, morph_fleet_reader;

-- ---- builders

CREATE FUNCTION fleet.require_builder() RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
BEGIN
	IF NOT fleet.is_builder() THEN
		RAISE 'host % is not a builder', session_user USING ERRCODE = 'MF006';
	END IF;
	RETURN me;
END $$;

-- take_build - the oldest job of this version of Morph that nobody has; also one that failed because other builders do
-- not have the original. No row: there is none.
CREATE FUNCTION fleet.take_build(the_version text) RETURNS TABLE(module bytea, options text, lease bigint,
	lease_seconds bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_builder();
	seconds bigint := (SELECT s.value FROM fleet.setting s WHERE s.name = 'lease_seconds');
	most bigint := (SELECT s.value FROM fleet.setting s WHERE s.name = 'build_attempts');
	job record;
BEGIN
	LOOP
		SELECT b.module, b.options, b.lease, b.nr_attempts INTO job FROM fleet.build b
		WHERE b.version = the_version AND (b.state = 'queued' OR b.state = 'taken' AND b.lease_until < now()
				OR b.state = 'failed' AND b.lacking IS NOT NULL)
			AND (b.lacking IS NULL OR me <> ALL (b.lacking))
		ORDER BY b.changed_at, b.module, b.options LIMIT 1 FOR UPDATE SKIP LOCKED;
		IF NOT FOUND THEN
			RETURN;
		END IF;
		EXIT WHEN job.nr_attempts < most;
		UPDATE fleet.build b SET state = 'failed', changed_at = now(), lease_until = NULL, lacking = NULL,
			detail = format('%s builders ended over it', job.nr_attempts)
		WHERE b.module = job.module AND b.options = job.options AND b.version = the_version;
	END LOOP;
	UPDATE fleet.build b SET state = 'taken', changed_at = now(), builder = me, lease = b.lease + 1,
		lease_until = now() + make_interval(secs => seconds), nr_attempts = b.nr_attempts + 1
	WHERE b.module = job.module AND b.options = job.options AND b.version = the_version;
	RETURN QUERY SELECT job.module, job.options, job.lease + 1, seconds;
END $$;

-- renew_build - false: the job is another builder's now, or is not wanted any more.
CREATE FUNCTION fleet.renew_build(the_module bytea, the_options text, the_version text, the_lease bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_builder();
BEGIN
	UPDATE fleet.build b SET lease_until = now() +
		make_interval(secs => (SELECT s.value FROM fleet.setting s WHERE s.name = 'lease_seconds'))
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version AND b.state = 'taken'
		AND b.lease = the_lease AND b.builder = me;
	RETURN FOUND;
END $$;

-- finish_build - stores a plan, and the hash of its output. False: as renew_build(), and nothing is stored.
CREATE FUNCTION fleet.finish_build(the_module bytea, the_options text, the_version text, the_lease bigint,
	the_output bytea, the_output_hash bytea, the_plan bytea, the_detail text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_builder();
BEGIN
	IF (octet_length(the_output_hash) = 32 AND octet_length(the_output) BETWEEN 8 AND 40
			AND octet_length(the_plan) BETWEEN 1 AND (SELECT s.value FROM fleet.setting s WHERE s.name = 'plan_bytes'))
			IS NOT TRUE THEN
		RAISE 'finish_build: a damaged build, or a plan of % bytes is too large', octet_length(the_plan)
			USING ERRCODE = 'MF003';
	END IF;
	UPDATE fleet.build b SET state = 'done', release = b.release + 1, changed_at = now(), lease_until = NULL,
		nr_attempts = 0, output = the_output, output_hash = the_output_hash, plan = the_plan,
		detail = left(the_detail, 1000)
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version AND b.state = 'taken'
		AND b.lease = the_lease AND b.builder = me;
	RETURN FOUND;
END $$;

-- fail_build - gives a job up, or back to the queue. how: 'failed', 'lacking' (this builder does not have the original), or
-- 'again'. False: as renew_build().
CREATE FUNCTION fleet.fail_build(the_module bytea, the_options text, the_version text, the_lease bigint, how text,
	the_detail text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_builder();
BEGIN
	UPDATE fleet.build b SET state = CASE how WHEN 'again' THEN 'queued' ELSE 'failed' END, changed_at = now(),
		lease_until = NULL, nr_attempts = b.nr_attempts - (how <> 'failed')::integer, detail = left(the_detail, 1000),
		lacking = CASE how WHEN 'lacking' THEN b.lacking || me ELSE b.lacking END
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version AND b.state = 'taken'
		AND b.lease = the_lease AND b.builder = me;
	RETURN FOUND;
END $$;

GRANT EXECUTE ON FUNCTION fleet.take_build, fleet.renew_build, fleet.finish_build, fleet.fail_build TO morph_fleet_builder;

-- ---- hosts

-- wanted_builds - what this host should do, for each of these modules of which it should do something.
CREATE FUNCTION fleet.wanted_builds(modules bytea[]) RETURNS TABLE(module bytea, action text, options text,
	version text, release integer, output_hash bytea, plan_size bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
	nr integer := cardinality(modules);
BEGIN
	IF nr IS NULL OR nr > 1000 THEN
		RAISE 'wanted_builds: at most 1000 modules' USING ERRCODE = 'MF003';
	END IF;
	FOR i IN 1..nr LOOP
		IF (octet_length(modules[i]) BETWEEN 8 AND 40) IS NOT TRUE THEN
			RAISE 'wanted_builds: module % is damaged', i USING ERRCODE = 'MF003';
		END IF;
		UPDATE fleet.build_host h SET asked_at = now() WHERE h.module = modules[i] AND h.host = me;
		IF NOT FOUND THEN
			INSERT INTO fleet.build_host(module, host) VALUES (modules[i], me) ON CONFLICT DO NOTHING;
		END IF;
	END LOOP;
	IF (SELECT count(*) FROM fleet.build_host h WHERE h.host = me)
			> (SELECT s.value FROM fleet.setting s WHERE s.name = 'modules_asked') THEN
		RAISE 'host % asks for builds of too many modules', session_user USING ERRCODE = 'MF005';
	END IF;
	RETURN QUERY SELECT b.module, c.action, b.options, b.version, b.release, b.output_hash,
		octet_length(b.plan)::bigint
	FROM unnest(modules) AS m(module) CROSS JOIN LATERAL fleet.choose_build(me, m.module) c
		JOIN fleet.build b ON b.module = m.module AND b.options = c.options AND b.version = c.version
	WHERE c.action = 'undo' OR b.state = 'done' AND b.plan IS NOT NULL;
END $$;

-- read_plan - a part of a build's plan. NULL: the build was withdrawn or made anew since.
CREATE FUNCTION fleet.read_plan(the_module bytea, the_options text, the_version text, the_release integer,
	first_byte integer, size integer) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM fleet.require_host();
	IF (first_byte >= 0 AND size BETWEEN 1 AND 1048576) IS NOT TRUE THEN
		RAISE 'read_plan: at most 1 MiB' USING ERRCODE = 'MF003';
	END IF;
	RETURN (SELECT substr(b.plan, first_byte + 1, size) FROM fleet.build b
		WHERE b.module = the_module AND b.options = the_options AND b.version = the_version
			AND b.release = the_release AND b.state = 'done');
END $$;

-- report_build - what became of a build on this host, and the hash of the output that the host has made (NULL: none).
-- The host has asked for the module before.
CREATE FUNCTION fleet.report_build(the_module bytea, the_options text, the_version text, the_release integer,
	the_state text, the_detail text, the_hash bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
BEGIN
	IF (the_state IN ('waiting', 'installed', 'refused', 'rejected', 'failed', 'undone') AND length(the_options) <= 1000
			AND length(the_version) <= 200) IS NOT TRUE OR the_detail ~ '[[:cntrl:]]' OR octet_length(the_hash) <> 32 THEN
		RAISE 'report_build: a damaged report' USING ERRCODE = 'MF003';
	END IF;
	UPDATE fleet.build_host h SET options = the_options, version = the_version, release = the_release,
		state = the_state,
		output_hash = the_hash, detail = left(the_detail, 1000),
		changed_at = CASE WHEN (h.options, h.version, h.release, h.state) IS DISTINCT FROM
			(the_options, the_version, the_release, the_state) THEN now() ELSE h.changed_at END
	WHERE h.module = the_module AND h.host = me;
	IF NOT FOUND THEN
		RAISE 'report_build: this host did not ask for the module' USING ERRCODE = 'MF002';
	END IF;
END $$;

GRANT EXECUTE ON FUNCTION fleet.wanted_builds, fleet.read_plan, fleet.report_build TO morph_fleet_host;
