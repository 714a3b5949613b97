-- SPDX-License-Identifier: Apache-2.0
--
-- What hosts find out about a build, and how it is combined. All of it is e-values: numbers that are 1 at the
-- start, at least 0, and on average at most 1 if the build is neither faster nor slower. An e-value of 200 is seen
-- at any time, however often one looks, with a chance of at most 1 in 200 (Ville's inequality).
--
-- Over hosts: hosts draw their coins independently, so e-values of different hosts multiply. A host may lie. So
--  1. a host's factor is (1 + 3 min(e, (4 m - 1) / 3)) / 4. A smaller number than an e-value is one, and so is a
--     mixture with 1. The factor lies between 1/4 and m: a host can delay a decision, and not prevent it.
--  2. the k largest factors are left out, where k is the number of hosts that may lie. What remains is at most the
--     product over the honest hosts, whatever the liars say. So the promise holds with k liars as without. (k grows
--     only when hosts come. A host that comes has the factor 1, so it can be the one that this bound leaves out.)
-- Over kinds of evidence (audits, probations, crashes), which depend on each other, e-values are averaged.
SET LOCAL ROLE morph_fleet_owner;

-- mean_e - the logarithm of the mean of e-values, given by their logarithms.
CREATE FUNCTION fleet.mean_e(logs double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT m.most + pg_catalog.ln(pg_catalog.avg(pg_catalog.exp(greatest(l - m.most, -700))))
	FROM pg_catalog.unnest(logs) l, (SELECT pg_catalog.max(x) AS most FROM pg_catalog.unnest(logs) x) m GROUP BY m.most
$$;

-- host_factor - the logarithm of a host's factor, from that of its e-value.
CREATE FUNCTION fleet.host_factor(log_e double precision, most double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
	SELECT pg_catalog.ln((1 + 3 * pg_catalog.exp(least(greatest(log_e, -700), pg_catalog.ln((4 * most - 1) / 3)))) / 4)
$$;

-- nr_doubted - how many of so many hosts may lie.
CREATE FUNCTION fleet.nr_doubted(nr_hosts bigint, doubted double precision) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN doubted > 0 THEN greatest(1, pg_catalog.ceil(doubted * nr_hosts))::bigint ELSE 0 END
$$;

-- product_e - the logarithm of the product over hosts.
CREATE FUNCTION fleet.product_e(logs double precision[], doubted double precision, most double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(pg_catalog.sum(fleet.host_factor(h.log_e, most)), 0)
	FROM (SELECT l AS log_e, pg_catalog.row_number() OVER (ORDER BY l DESC) AS place FROM pg_catalog.unnest(logs) l) h
	WHERE h.place > fleet.nr_doubted(pg_catalog.cardinality(logs), doubted)
$$;

-- faster_e, slower_e - the combined evidence of all hosts and kinds, from the logarithms of each host's e-values.
CREATE FUNCTION fleet.faster_e(audits double precision[], probations double precision[], doubted double precision,
	most double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT fleet.mean_e(ARRAY[fleet.product_e(audits, doubted, most), fleet.product_e(probations, doubted, most)])
$$;
CREATE FUNCTION fleet.slower_e(audits double precision[], probations double precision[], crashes double precision[],
	doubted double precision, most double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT fleet.mean_e(ARRAY[fleet.product_e(audits, doubted, most), fleet.product_e(probations, doubted, most),
		fleet.product_e(crashes, doubted, most)])
$$;

-- canary_verdict - what follows from the evidence: withdraw, promote, hold, or give up. The two directions share
-- alpha, the chance that one of them is claimed of a build that is as fast as the original.
CREATE FUNCTION fleet.canary_verdict(log_faster double precision, log_slower double precision, nr_alarms bigint,
	nr_alarms_most bigint, nr_audits bigint, least_audits bigint, in_stage_s double precision, soak_s double precision,
	stage_s double precision, alpha double precision) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN nr_alarms > nr_alarms_most THEN 'withdraw'
		WHEN log_slower >= pg_catalog.ln(2 / alpha) THEN 'withdraw'
		WHEN log_faster >= pg_catalog.ln(2 / alpha) AND nr_audits >= least_audits AND in_stage_s >= soak_s THEN 'promote'
		WHEN in_stage_s >= stage_s THEN 'give up'
		ELSE 'hold' END
$$;

-- probation_e - the logarithm of the e-value of a probation against "the time for the same work changed by no
-- more than the margin": own and elsewhere are samples in the program's code, and in libraries and the kernel on its
-- behalf. direction 1: slower; -1: faster. Under the assumption that the logarithm of the ratio is normal with the
-- variance v below, the mean of likelihood ratios over four effects stays an e-value while samples arrive.
CREATE FUNCTION fleet.probation_e(own_before double precision, elsewhere_before double precision,
	own_after double precision, elsewhere_after double precision, margin double precision, direction integer)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN least(own_before, elsewhere_before, own_after, elsewhere_after) < 1000 THEN 0
		ELSE fleet.mean_e((SELECT pg_catalog.array_agg((effect * r.rise - effect * effect / 2) / r.v)
			FROM pg_catalog.unnest(ARRAY[0.02, 0.05, 0.1, 0.2]) effect)) END
	FROM (SELECT
		direction * (pg_catalog.ln(greatest(own_after, 1)) - pg_catalog.ln(greatest(elsewhere_after, 1))
			- pg_catalog.ln(greatest(own_before, 1)) + pg_catalog.ln(greatest(elsewhere_before, 1)))
			- pg_catalog.ln(1 + margin) AS rise,
		-- Samples come in runs: four times the variance of independent ones, as the host's own probation has it.
		4 * (1 / greatest(own_before, 1) + 1 / greatest(elsewhere_before, 1) + 1 / greatest(own_after, 1)
			+ 1 / greatest(elsewhere_after, 1)) AS v) r
$$;

-- crash_e - the same for crashes: likelihood ratio of "ten times as often" to "as often as before", for crashes that
-- come independently at a constant rate, whatever the rate (Haar's prior for it).
CREATE FUNCTION fleet.crash_e(before bigint, before_s double precision, after bigint, after_s double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN before_s > 0 AND after_s > 0 THEN after * pg_catalog.ln(10)
		+ (before + after) * (pg_catalog.ln(before_s + after_s) - pg_catalog.ln(before_s + 10 * after_s)) ELSE 0 END
$$;

-- a_fact - a number of a host's report, or the default; SQLSTATE MF003 if it is none, or out of range.
CREATE FUNCTION fleet.a_fact(facts jsonb, name text, low double precision, high double precision,
	otherwise double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	value double precision;
BEGIN
	IF facts -> name IS NULL OR jsonb_typeof(facts -> name) = 'null' THEN
		RETURN otherwise;
	END IF;
	IF jsonb_typeof(facts -> name) = 'number' AND length(facts ->> name) < 40 THEN
		value := (facts ->> name)::numeric::double precision;
	END IF;
	IF (value BETWEEN low AND high) IS NOT TRUE THEN
		RAISE 'push_audit: % is damaged', name USING ERRCODE = 'MF003';
	END IF;
	RETURN value;
END $$;
