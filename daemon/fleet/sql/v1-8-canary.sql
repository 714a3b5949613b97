-- SPDX-License-Identifier: Apache-2.0
--
-- Roll-outs: a build goes to a share of the hosts first. Their evidence decides whether more hosts get the build,
-- or all hosts lose it. A host that has a build before the build is released has a lease, and undoes the build by
-- itself when the lease ends. So a server that is gone leaves no host with a build that nobody watches.
SET LOCAL ROLE morph_fleet_owner;

CREATE FUNCTION fleet.are_shares(shares double precision[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
	SELECT pg_catalog.cardinality(shares) BETWEEN 1 AND 20 AND shares[pg_catalog.cardinality(shares)] = 1 AND
		NOT EXISTS (SELECT FROM pg_catalog.unnest(shares) WITH ORDINALITY s(share, i)
			WHERE (share > coalesce(shares[i - 1], 0) AND share <= 1) IS NOT TRUE)
$$;

-- How careful a roll-out is. The row of the module '' is for all modules that have none of their own.
CREATE TABLE fleet.canary_policy(
	module bytea PRIMARY KEY,
	rolls_out boolean NOT NULL DEFAULT true, -- false: all hosts get the newest build at once
	automatic boolean NOT NULL DEFAULT true, -- a new build is rolled out without being asked for
	shares double precision[] NOT NULL DEFAULT '{0.01,0.1,1}' CHECK (fleet.are_shares(shares)), -- of hosts, by stage
	least_hosts integer NOT NULL DEFAULT 3 CHECK (least_hosts > 0),
	least_audits integer NOT NULL DEFAULT 3 CHECK (least_audits >= 0),
	soak_s bigint NOT NULL DEFAULT 86400 CHECK (soak_s >= 0),    -- a stage takes at least so long,
	stage_s bigint NOT NULL DEFAULT 604800 CHECK (stage_s >= 1), -- and at most so long
	lease_s bigint NOT NULL DEFAULT 172800 CHECK (lease_s >= 1),
	alpha double precision NOT NULL DEFAULT 0.01 CHECK (alpha > 0 AND alpha < 1),
	doubted double precision NOT NULL DEFAULT 0.01 CHECK (doubted >= 0 AND doubted < 1), -- share of hosts that may lie
	most_factor double precision NOT NULL DEFAULT 30 CHECK (most_factor > 1), -- of a host's evidence
	margin double precision NOT NULL DEFAULT 0.05 CHECK (margin >= 0) -- change in use that may come from other work
);
INSERT INTO fleet.canary_policy(module) VALUES ('');

-- The state of a build's roll-out. It has the policy's values of the time at which it began: a test whose rules
-- change while it runs promises nothing.
CREATE TABLE fleet.canary(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	release integer NOT NULL,
	state text NOT NULL CHECK (state IN ('running', 'held', 'released', 'withdrawn')),
	cause text NOT NULL, -- of the state
	stage integer NOT NULL, -- from 1
	stage_at timestamptz NOT NULL,
	started_at timestamptz NOT NULL,
	cutoff double precision NOT NULL, -- hosts whose hash is at most this have the build
	revision integer NOT NULL, -- number of changes
	policy jsonb NOT NULL, -- the columns of fleet.canary_policy
	PRIMARY KEY (module, options, version)
);

-- Each change of a roll-out, with the evidence at that time.
CREATE TABLE fleet.canary_history(
	module bytea NOT NULL,
	options text NOT NULL,
	version text NOT NULL,
	revision integer NOT NULL,
	release integer NOT NULL,
	at timestamptz NOT NULL,
	state text NOT NULL,
	cause text NOT NULL,
	stage integer NOT NULL,
	who text NOT NULL,
	nr_hosts bigint NOT NULL,
	nr_audits bigint NOT NULL,
	log_faster double precision NOT NULL,
	log_slower double precision NOT NULL,
	PRIMARY KEY (module, options, version, revision)
);

SELECT fleet.protect(t::regclass, false)
FROM unnest(ARRAY['fleet.canary_policy', 'fleet.canary', 'fleet.canary_history']) t;
-- Functions for hosts say whether this host is chosen.
CREATE POLICY see ON fleet.canary FOR SELECT TO morph_fleet_owner USING (true);
CREATE POLICY see ON fleet.canary_policy FOR SELECT TO morph_fleet_owner USING (true);

-- ---- which hosts

-- host_hash - a number from 0 to 1 for a host and a build: the same for ever, and no host can choose it.
CREATE FUNCTION fleet.host_hash(the_module bytea, the_options text, the_version text, the_host integer)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT ('x' || pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(the_module || '\x00'::bytea
		|| pg_catalog.convert_to(the_options, 'UTF8') || '\x00'::bytea || pg_catalog.convert_to(the_version, 'UTF8')
		|| '\x00'::bytea || pg_catalog.convert_to(the_host::text, 'UTF8')), 1, 6), 'hex'))::bit(48)::bigint
		/ 281474976710656::double precision
$$;

-- stage_cutoff - the hash up to which hosts belong to a stage: the share, or what gives the least number of the hosts
-- that have the module now. Hosts that come later belong to the stage if their hash does.
CREATE FUNCTION fleet.stage_cutoff(the_module bytea, the_options text, the_version text, share double precision,
	least_hosts integer) RETURNS double precision LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN pg_catalog.count(*) <= least_hosts THEN 1
		ELSE greatest(share, (pg_catalog.array_agg(u.hash ORDER BY u.hash))[least_hosts]) END
	FROM (
		SELECT fleet.host_hash(the_module, the_options, the_version, h.id) AS hash FROM fleet.host h
		WHERE h.banned_at IS NULL AND (h.id IN (SELECT m.host FROM fleet.module_host m WHERE m.module = the_module)
			OR h.id IN (SELECT b.host FROM fleet.build_host b WHERE b.module = the_module))
	) u
$$;

-- ---- evidence

-- canary_evidence - the combined evidence of the hosts that have the output of a build, by its hash: what other versions
-- of Morph make by the plan is another output, whose alarms alone count here. nr_audits: hosts whose audit or probation has
-- said anything. nr_alarms: hosts whose verifier refused the build, or that saw it print something else.
CREATE FUNCTION fleet.canary_evidence(the_module bytea, the_options text, the_version text, the_release integer,
	the_cutoff double precision, policy jsonb) RETURNS TABLE(nr_hosts bigint, nr_audits bigint, nr_alarms bigint,
	nr_undone bigint, log_faster double precision, log_slower double precision)
LANGUAGE sql STABLE AS $$
	SELECT e.nr_hosts, e.nr_audits, e.nr_alarms, e.nr_undone,
		fleet.faster_e(e.faster, e.used_faster, e.doubted, e.most),
		fleet.slower_e(e.slower, e.used_slower, e.crashes, e.doubted, e.most)
	FROM (
		SELECT pg_catalog.count(*) FILTER (WHERE a.same) AS nr_hosts,
			pg_catalog.count(*) FILTER (WHERE a.same AND (a.pairs > 0 OR a.used_ratio IS NOT NULL)) AS nr_audits,
			pg_catalog.count(*) FILTER (WHERE a.state = 'differs') + (SELECT pg_catalog.count(*) FROM fleet.build_host b
				WHERE b.module = the_module AND b.options = the_options AND b.version = the_version
					AND b.release = the_release AND b.state = 'refused'
					AND fleet.host_hash(b.module, b.options, b.version, b.host) <= the_cutoff
					AND b.host NOT IN (SELECT h.id FROM fleet.host h WHERE h.banned_at IS NOT NULL)
					-- A host that says both counts once.
					AND b.host NOT IN (SELECT d.host FROM fleet.audit d WHERE d.module = the_module
						AND d.options = the_options AND d.version = the_version AND d.release = the_release
						AND d.state = 'differs')) AS nr_alarms,
			pg_catalog.count(*) FILTER (WHERE a.same AND a.state IN ('undoing', 'undone')) AS nr_undone,
			pg_catalog.array_agg(a.log_faster) FILTER (WHERE a.same) AS faster, pg_catalog.array_agg(a.log_slower) FILTER (WHERE a.same) AS slower,
			pg_catalog.array_agg(a.log_used_faster) FILTER (WHERE a.same) AS used_faster,
			pg_catalog.array_agg(a.log_used_slower) FILTER (WHERE a.same) AS used_slower, pg_catalog.array_agg(a.log_crashes) FILTER (WHERE a.same) AS crashes,
			(policy ->> 'doubted')::double precision AS doubted, (policy ->> 'most_factor')::double precision AS most
		FROM (SELECT x.*, x.output_hash IS NULL OR b.output_hash IS NULL OR x.output_hash = b.output_hash AS same
			FROM fleet.audit x LEFT JOIN fleet.build b USING (module, options, version)) a
		WHERE a.module = the_module AND a.options = the_options AND a.version = the_version AND a.release = the_release
			AND fleet.host_hash(a.module, a.options, a.version, a.host) <= the_cutoff
			AND a.host NOT IN (SELECT h.id FROM fleet.host h WHERE h.banned_at IS NOT NULL)
	) e
$$;

-- push_audit - what this host knows of a build by now. facts: numbers by name. False: an older state, or a build that
-- this host was not chosen for.
CREATE FUNCTION fleet.push_audit(the_module bytea, the_options text, the_version text, the_release integer,
	new_seq bigint, the_state text, facts jsonb) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	me integer := fleet.require_host();
	c record;
	margin double precision;
	before_own double precision := fleet.a_fact(facts, 'own_before', 0, 1e15, 0);
	before_else double precision := fleet.a_fact(facts, 'elsewhere_before', 0, 1e15, 0);
	after_own double precision := fleet.a_fact(facts, 'own_after', 0, 1e15, 0);
	after_else double precision := fleet.a_fact(facts, 'elsewhere_after', 0, 1e15, 0);
	nr_crashes bigint := fleet.a_fact(facts, 'crashes', 0, 1e6, 0);
BEGIN
	IF (new_seq > 0 AND octet_length(facts::text) <= 4000 AND the_state ~ '^[a-z-]{1,20}$') IS NOT TRUE THEN
		RAISE 'push_audit: a damaged state' USING ERRCODE = 'MF003';
	END IF;
	SELECT k.cutoff, k.release, k.policy INTO c FROM fleet.canary k
	WHERE k.module = the_module AND k.options = the_options AND k.version = the_version;
	IF NOT FOUND THEN
		RAISE 'push_audit: no such build is rolled out' USING ERRCODE = 'MF002';
	END IF;
	IF c.release <> the_release OR fleet.host_hash(the_module, the_options, the_version, me) > c.cutoff THEN
		RETURN false;
	END IF;
	margin := (c.policy ->> 'margin')::double precision;
	DELETE FROM fleet.audit a WHERE a.module = the_module AND a.options = the_options AND a.version = the_version AND a.host = me
		AND a.seq < new_seq;
	INSERT INTO fleet.audit(module, options, version, host, release, seq, day, output_hash, pairs, log_faster, log_slower, ratio,
		lowest, highest, log_used_faster, log_used_slower, used_ratio, log_crashes, crashes, state, sent_at)
	VALUES (the_module, the_options, the_version, me, the_release, new_seq, fleet.today(),
		(SELECT h.output_hash FROM fleet.build_host h WHERE h.module = the_module AND h.host = me AND h.options = the_options
			AND h.version = the_version AND h.release = the_release),
		fleet.a_fact(facts, 'pairs', 0, 1e12, 0), fleet.a_fact(facts, 'log_faster', -1e6, 1e6, 0),
		fleet.a_fact(facts, 'log_slower', -1e6, 1e6, 0), fleet.a_fact(facts, 'ratio', 1e-6, 1e6, NULL),
		fleet.a_fact(facts, 'lowest', 0, 1e6, NULL), fleet.a_fact(facts, 'highest', 1e-6, 1e12, NULL),
		fleet.probation_e(before_own, before_else, after_own, after_else, margin, -1),
		fleet.probation_e(before_own, before_else, after_own, after_else, margin, 1),
		CASE WHEN least(before_own, before_else, after_own, after_else) >= 1000
			THEN after_own / after_else * before_else / before_own END,
		fleet.crash_e(fleet.a_fact(facts, 'crashes_before', 0, 1e6, 0)::bigint,
			fleet.a_fact(facts, 'before_s', 0, 1e9, 0), nr_crashes, fleet.a_fact(facts, 'after_s', 0, 1e9, 0)),
		nr_crashes, the_state, now())
	ON CONFLICT DO NOTHING;
	IF FOUND THEN
		PERFORM fleet.add_traffic(me, 0, 1, octet_length(facts::text) + 96);
		RETURN true;
	END IF;
	RETURN false;
END $$;

-- ---- what a host may have

-- rolls_out - are the builds of a module rolled out by stages?
CREATE FUNCTION fleet.rolls_out(the_module bytea) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT (pg_catalog.array_agg(p.rolls_out ORDER BY pg_catalog.octet_length(p.module) DESC))[1]
	FROM fleet.canary_policy p WHERE p.module IN (the_module, '')
$$;

-- canary_offer - may this host have this build? answer: 'lease': for lease_s seconds from now; 'keep': for ever, it is
-- released; 'wait': no longer than its lease; 'no': this host was not chosen; 'withdrawn': no host may have it.
CREATE FUNCTION fleet.canary_offer(the_module bytea, the_options text, the_version text, the_release integer)
RETURNS TABLE(answer text, stage integer, lease_s bigint, cause text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN o.state IS NULL AND fleet.rolls_out(the_module) THEN 'no'
			WHEN o.state = 'withdrawn' OR o.release <> the_release OR b.state = 'withdrawn' THEN 'withdrawn'
			WHEN o.state IS NULL THEN CASE WHEN b.release = the_release THEN 'keep' ELSE 'no' END
			WHEN o.state = 'released' THEN 'keep' WHEN NOT o.chosen THEN 'no' WHEN o.left_s < 1 THEN 'wait'
			ELSE 'lease' END,
		o.stage, least((o.policy ->> 'lease_s')::bigint, o.left_s),
		CASE WHEN o.release <> the_release THEN 'rebuilt' ELSE o.cause END
	FROM (SELECT fleet.require_host() AS host) me LEFT JOIN LATERAL (
		SELECT c.*, fleet.host_hash(c.module, c.options, c.version, me.host) <= c.cutoff AS chosen,
			-- A roll-out whose time is over waits for its end, and gives no new leases.
			CASE WHEN c.state = 'held' THEN (c.policy ->> 'lease_s')::bigint
				ELSE floor((c.policy ->> 'stage_s')::bigint - extract(epoch FROM now() - c.stage_at))::bigint END AS left_s
		FROM fleet.canary c WHERE c.module = the_module AND c.options = the_options AND c.version = the_version
	) o ON true LEFT JOIN fleet.build b
		ON b.module = the_module AND b.options = the_options AND b.version = the_version
$$;

-- choose_build - which build a host should have of a module: at most one row, whose action is install or undo. The newest
-- build that this host was chosen for; else, a withdrawn one is undone. No row: the host leaves everything as it is.
CREATE FUNCTION fleet.choose_build(the_host integer, the_module bytea) RETURNS TABLE(action text,
	options text, version text)
LANGUAGE sql STABLE AS $$
	(SELECT 'install', b.options, b.version
	FROM fleet.build b LEFT JOIN fleet.canary c
		ON c.module = b.module AND c.options = b.options AND c.version = b.version AND c.release = b.release
	WHERE b.module = the_module AND b.state = 'done' AND (c.state = 'released'
		OR c.state IN ('running', 'held') AND fleet.host_hash(c.module, c.options, c.version, the_host) <= c.cutoff
		AND (c.state = 'held' OR pg_catalog.now() - c.stage_at
			< pg_catalog.make_interval(secs => (c.policy ->> 'stage_s')::double precision))
		OR c.state IS NULL AND NOT fleet.rolls_out(the_module))
	ORDER BY coalesce(c.started_at, b.changed_at) DESC, b.options, b.version LIMIT 1)
	UNION ALL (SELECT 'undo', b.options, b.version
	FROM fleet.build_host h JOIN fleet.build b ON b.module = h.module AND b.options = h.options AND b.version = h.version
	WHERE h.module = the_module AND h.host = the_host AND h.state IN ('installed', 'waiting') AND b.state = 'withdrawn')
	LIMIT 1
$$;

-- ---- decisions

-- change_canary - the one place where a roll-out changes: the state and its history in one transaction.
CREATE FUNCTION fleet.change_canary(c fleet.canary, new_state text, new_cause text, new_stage integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	e record;
	share double precision := (c.policy -> 'shares' ->> (new_stage - 1))::double precision;
BEGIN
	SELECT * INTO e FROM fleet.canary_evidence(c.module, c.options, c.version, c.release, c.cutoff, c.policy);
	UPDATE fleet.canary k SET state = new_state, cause = new_cause, stage = new_stage, revision = c.revision + 1,
		-- The time of a stage begins anew with the stage, and where a roll-out was held.
		stage_at = CASE WHEN new_stage <> c.stage OR c.state <> 'running' THEN now() ELSE k.stage_at END,
		-- Hosts that were chosen stay chosen.
		cutoff = greatest(k.cutoff, fleet.stage_cutoff(c.module, c.options, c.version, share,
			(c.policy ->> 'least_hosts')::integer))
	WHERE k.module = c.module AND k.options = c.options AND k.version = c.version AND k.revision = c.revision;
	IF NOT FOUND THEN
		RAISE 'the roll-out has changed in the meantime' USING ERRCODE = '40001';
	END IF;
	INSERT INTO fleet.canary_history VALUES (c.module, c.options, c.version, c.revision + 1, c.release, now(), new_state,
		new_cause, new_stage, session_user, e.nr_hosts, e.nr_audits, e.log_faster, e.log_slower);
	IF new_state = 'withdrawn' THEN
		UPDATE fleet.build b SET state = 'withdrawn', changed_at = now()
		WHERE b.module = c.module AND b.options = c.options AND b.version = c.version AND b.release = c.release
			AND b.state = 'done';
	END IF;
END $$;

-- start_canary - begins the roll-out of a build, or of a new release of it. False: it has begun already.
CREATE FUNCTION fleet.start_canary(the_module bytea, the_options text, the_version text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	p record;
	the_release integer;
	the_policy jsonb;
	next_revision integer;
BEGIN
	SELECT b.release INTO the_release FROM fleet.build b
	WHERE b.module = the_module AND b.options = the_options AND b.version = the_version AND b.state = 'done' FOR SHARE;
	IF NOT FOUND THEN
		RAISE 'there is no such build, or it is not done' USING ERRCODE = 'MF002';
	END IF;
	LOCK TABLE fleet.canary IN SHARE ROW EXCLUSIVE MODE;
	IF EXISTS (SELECT FROM fleet.canary c WHERE c.module = the_module AND c.options = the_options
			AND c.version = the_version AND c.release = the_release) THEN
		RETURN false;
	END IF;
	IF EXISTS (SELECT FROM fleet.canary c WHERE c.module = the_module AND c.state IN ('running', 'held')
			AND (c.options, c.version) <> (the_options, the_version)) THEN
		RAISE 'another build of the module is being rolled out' USING ERRCODE = 'MF007';
	END IF;
	SELECT * INTO p FROM fleet.canary_policy q WHERE q.module IN (the_module, '')
	ORDER BY octet_length(q.module) DESC LIMIT 1;
	the_policy := to_jsonb(p) - 'module';
	DELETE FROM fleet.canary c WHERE c.module = the_module AND c.options = the_options AND c.version = the_version;
	SELECT coalesce(max(h.revision), 0) + 1 INTO next_revision FROM fleet.canary_history h
	WHERE h.module = the_module AND h.options = the_options AND h.version = the_version;
	INSERT INTO fleet.canary VALUES (the_module, the_options, the_version, the_release, 'running', 'started', 1, now(),
		now(), fleet.stage_cutoff(the_module, the_options, the_version, p.shares[1], p.least_hosts), next_revision,
		the_policy);
	INSERT INTO fleet.canary_history VALUES (the_module, the_options, the_version, next_revision, the_release, now(),
		'running', 'started', 1, session_user, 0, 0, 0, 0);
	RETURN true;
END $$;

-- decide_canary - takes the step that the evidence and the time call for, if there is one. Returns the verdict.
CREATE FUNCTION fleet.decide_canary(the_module bytea, the_options text, the_version text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c fleet.canary;
	e record;
	verdict text;
	nr_stages integer;
	nr_doubted bigint;
BEGIN
	SELECT * INTO c FROM fleet.canary k
	WHERE k.module = the_module AND k.options = the_options AND k.version = the_version AND k.state <> 'withdrawn'
	FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'hold';
	END IF;
	SELECT * INTO e FROM fleet.canary_evidence(c.module, c.options, c.version, c.release, c.cutoff, c.policy);
	nr_doubted := fleet.nr_doubted(greatest(e.nr_hosts, e.nr_alarms), (c.policy ->> 'doubted')::double precision);
	verdict := fleet.canary_verdict(e.log_faster, e.log_slower, e.nr_alarms, nr_doubted, e.nr_audits,
		(c.policy ->> 'least_audits')::bigint, extract(epoch FROM now() - c.stage_at)::double precision,
		(c.policy ->> 'soak_s')::double precision, (c.policy ->> 'stage_s')::double precision,
		(c.policy ->> 'alpha')::double precision);
	nr_stages := jsonb_array_length(c.policy -> 'shares');
	IF verdict = 'withdraw' THEN
		PERFORM fleet.change_canary(c, 'withdrawn', CASE WHEN e.nr_alarms > nr_doubted
			THEN 'hosts refused it, or it printed something else' ELSE 'slower, or it crashes' END, c.stage);
	ELSIF c.state <> 'running' THEN
		verdict := 'hold';
	ELSIF verdict = 'promote' AND c.stage < nr_stages THEN
		PERFORM fleet.change_canary(c, 'running', 'faster', c.stage + 1);
	ELSIF verdict = 'promote' THEN
		PERFORM fleet.change_canary(c, 'released', 'faster', c.stage);
	ELSIF verdict = 'give up' THEN
		PERFORM fleet.change_canary(c, 'withdrawn', 'undecided: the time of the stage is over', c.stage);
	END IF;
	RETURN verdict;
END $$;

-- step_canaries - starts what the policy starts, and decides everything that can be decided.
CREATE FUNCTION fleet.step_canaries() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
BEGIN
	-- One step at a time. This lock comes first: two steps that wait for each other's rows would both fail.
	LOCK TABLE fleet.canary IN SHARE ROW EXCLUSIVE MODE;
	FOR c IN SELECT k.module, k.options, k.version FROM fleet.canary k WHERE k.state <> 'withdrawn' ORDER BY 1, 2, 3 LOOP
		PERFORM fleet.decide_canary(c.module, c.options, c.version);
	END LOOP;
	-- The newest build of each module, unless one of its builds is being rolled out.
	FOR c IN SELECT DISTINCT ON (b.module) b.module, b.options, b.version, b.release,
			fleet.rolls_out(b.module) AND coalesce(p.automatic,
				(SELECT d.automatic FROM fleet.canary_policy d WHERE d.module = ''), false) AS automatic
		FROM fleet.build b LEFT JOIN fleet.canary_policy p ON p.module = b.module
		WHERE b.state = 'done' ORDER BY b.module, b.changed_at DESC, b.options, b.version LOOP
		CONTINUE WHEN NOT c.automatic OR EXISTS (SELECT FROM fleet.canary k WHERE k.module = c.module
			AND (k.options, k.version) <> (c.options, c.version) AND k.state IN ('running', 'held'));
		PERFORM fleet.start_canary(c.module, c.options, c.version);
	END LOOP;
END $$;

-- set_canary - what an operator decides: promote, hold, resume, withdraw. the_revision: the change after which the
-- operator looked; NULL: whatever came since. False: the roll-out is in that state already.
CREATE FUNCTION fleet.set_canary(the_module bytea, the_options text, the_version text, the_revision integer, action text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c fleet.canary;
BEGIN
	SELECT * INTO c FROM fleet.canary k
	WHERE k.module = the_module AND k.options = the_options AND k.version = the_version FOR UPDATE;
	IF NOT FOUND THEN
		RAISE 'no such build is rolled out' USING ERRCODE = 'MF002';
	ELSIF c.revision <> the_revision THEN
		RAISE 'the roll-out has changed in the meantime' USING ERRCODE = '40001';
	ELSIF c.state = 'withdrawn' AND action <> 'withdraw' THEN
		RAISE 'the build is withdrawn: ask for it again' USING ERRCODE = 'MF007';
	ELSIF action = 'withdraw' AND c.state <> 'withdrawn' THEN
		PERFORM fleet.change_canary(c, 'withdrawn', 'an operator', c.stage);
	ELSIF action = 'hold' AND c.state = 'running' THEN
		PERFORM fleet.change_canary(c, 'held', 'an operator', c.stage);
	ELSIF action = 'resume' AND c.state = 'held' THEN
		PERFORM fleet.change_canary(c, 'running', 'an operator', c.stage);
	ELSIF action = 'promote' AND c.state IN ('running', 'held') THEN
		IF c.stage < jsonb_array_length(c.policy -> 'shares') THEN
			PERFORM fleet.change_canary(c, 'running', 'an operator', c.stage + 1);
		ELSE
			PERFORM fleet.change_canary(c, 'released', 'an operator', c.stage);
		END IF;
	ELSIF action NOT IN ('promote', 'hold', 'resume', 'withdraw') THEN
		RAISE 'no such action' USING ERRCODE = 'MF003';
	ELSE
		RETURN false;
	END IF;
	RETURN true;
END $$;

-- list_canaries - all roll-outs with their evidence, the newest first. Runs with the caller's rights.
CREATE FUNCTION fleet.list_canaries() RETURNS TABLE(module bytea, build_id bytea, options text, version text,
	release integer, state text, stage integer, nr_stages integer, cutoff double precision, started_at timestamptz,
	stage_at timestamptz, cause text, revision integer, nr_hosts bigint, nr_audits bigint, nr_alarms bigint,
	nr_undone bigint, log_faster double precision, log_slower double precision, name text)
LANGUAGE sql STABLE AS $$
	SELECT c.module, pg_catalog.substr(c.module, 9), c.options, c.version, c.release, c.state, c.stage,
		pg_catalog.jsonb_array_length(c.policy -> 'shares'), c.cutoff, c.started_at, c.stage_at, c.cause, c.revision,
		e.nr_hosts, e.nr_audits, e.nr_alarms, e.nr_undone, e.log_faster, e.log_slower,
		(SELECT pg_catalog.mode() WITHIN GROUP (ORDER BY m.name) FROM fleet.module_host m WHERE m.module = c.module)
	FROM fleet.canary c
		CROSS JOIN LATERAL fleet.canary_evidence(c.module, c.options, c.version, c.release, c.cutoff, c.policy) e
	ORDER BY c.started_at DESC, c.module, c.options, c.version
$$;

GRANT EXECUTE ON FUNCTION fleet.push_audit, fleet.canary_offer TO morph_fleet_host;
GRANT EXECUTE ON FUNCTION fleet.start_canary, fleet.decide_canary, fleet.step_canaries, fleet.set_canary TO morph_fleet_operator;
GRANT INSERT, UPDATE, DELETE ON fleet.canary_policy TO morph_fleet_operator;
GRANT EXECUTE ON FUNCTION fleet.are_shares TO morph_fleet_operator; -- in a CHECK
CREATE POLICY operators_set ON fleet.canary_policy TO morph_fleet_operator USING (true) WITH CHECK (true);
GRANT EXECUTE ON FUNCTION fleet.mean_e, fleet.host_factor, fleet.nr_doubted, fleet.product_e, fleet.faster_e, fleet.slower_e,
	fleet.host_hash, fleet.canary_evidence, fleet.list_canaries TO morph_fleet_reader, morph_fleet_operator;
