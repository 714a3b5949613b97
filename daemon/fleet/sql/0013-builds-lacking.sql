-- SPDX-License-Identifier: Apache-2.0
--
-- A builder that does not find the original of a module gives the job up, and the build has failed. Another builder may
-- have other originals: it takes the job still.
SET LOCAL ROLE morph_fleet_owner;

ALTER TABLE fleet.build ADD COLUMN lacking integer[]; -- failed: builders that did not find the original

-- As in 0007, and it forgets who lacked the original.
CREATE OR REPLACE FUNCTION fleet.request_build(the_module bytea, the_options text, the_version text, again boolean)
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

-- take_build - as in 0007; also a job that failed because other builders do not have the original.
CREATE OR REPLACE FUNCTION fleet.take_build(the_version text) RETURNS TABLE(module bytea, options text, lease bigint,
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

-- lack_build - gives a job up whose original this builder does not have. False: as renew_build().
CREATE FUNCTION fleet.lack_build(the_module bytea, the_options text, the_version text, the_lease bigint,
	the_detail text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_builder();
BEGIN
	UPDATE fleet.build b SET state = 'failed', changed_at = now(), lease_until = NULL, nr_attempts = b.nr_attempts - 1,
		lacking = b.lacking || me, detail = left(the_detail, 1000)
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version AND b.state = 'taken'
		AND b.lease = the_lease AND b.builder = me;
	RETURN FOUND;
END $$;
GRANT EXECUTE ON FUNCTION fleet.lack_build(bytea, text, text, bigint, text) TO morph_fleet_builder;
