-- SPDX-License-Identifier: Apache-2.0
--
-- What operators call: hosts are enrolled and banned, old rows forgotten.
SET LOCAL ROLE morph_fleet_owner;

CREATE FUNCTION fleet.add_host(the_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO fleet.host(name) VALUES (the_name) ON CONFLICT DO NOTHING;
END $$;

-- enrol - gives a host a role. It runs with the operator's rights, who must be allowed to create roles. A role
-- that is there and is no host's is never taken: it may be a superuser's. A builder also reads profiles and takes jobs.
CREATE FUNCTION fleet.enrol(the_name text, reads boolean, builds boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF (the_name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$' AND the_name !~ '^(pg_|morph_fleet_)'
			AND the_name NOT IN ('public', 'none')) IS NOT TRUE THEN
		RAISE 'a host''s name has 1 to 63 characters a-z 0-9 _ . -, and does not begin with pg_ or morph_fleet_'
			USING ERRCODE = 'MF003';
	END IF;
	IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = the_name) THEN
		EXECUTE format('CREATE ROLE %I LOGIN CONNECTION LIMIT 4 IN ROLE morph_fleet_host', the_name);
	ELSIF NOT EXISTS (
		SELECT FROM pg_roles r JOIN pg_auth_members m ON m.member = r.oid JOIN pg_roles g ON g.oid = m.roleid
		WHERE r.rolname = the_name AND g.rolname = 'morph_fleet_host'
			AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolbypassrls)
	) THEN
		RAISE 'the role % is there, and is not a host''s', the_name USING ERRCODE = 'MF003';
	END IF;
	IF reads OR builds THEN
		EXECUTE format('GRANT morph_fleet_reader TO %I', the_name);
	END IF;
	IF builds THEN
		EXECUTE format('GRANT morph_fleet_builder TO %I', the_name);
	END IF;
	PERFORM fleet.add_host(the_name);
END $$;

-- ban - leaves a host out of all sums, and refuses what it sends; or takes this back. False: no such host.
CREATE FUNCTION fleet.ban(the_name text, banned boolean) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	UPDATE fleet.host h SET banned_at = CASE WHEN banned THEN coalesce(h.banned_at, now()) END WHERE h.name = the_name;
	RETURN FOUND;
END $$;

-- forget - deletes the rows of all days before this one. Returns how many.
CREATE FUNCTION fleet.forget(before_day integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	nr bigint;
BEGIN
	DELETE FROM fleet.evidence e WHERE e.last_day < before_day;
	GET DIAGNOSTICS nr = ROW_COUNT;
	DELETE FROM fleet.traffic t WHERE t.day < before_day;
	RETURN nr;
END $$;

GRANT EXECUTE ON FUNCTION fleet.add_host, fleet.enrol, fleet.ban, fleet.forget TO morph_fleet_operator;
GRANT SELECT ON fleet.migration TO morph_fleet_operator, morph_fleet_reader;
GRANT SELECT, UPDATE ON fleet.setting TO morph_fleet_operator;
