-- SPDX-License-Identifier: Apache-2.0
--
-- Distributes the tables over a Citus cluster, where the extension citus is installed and the tables are not distributed yet.
-- Applied behind the files of all versions. Tables of modules lie together by module. The hosts are few bytes each, and every
-- node needs them for row-level security.
SET LOCAL ROLE morph_fleet_owner;
DO $$
DECLARE
	the_table text;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus') THEN
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'fleet.evidence'::regclass) THEN
		RETURN;
	END IF;
	PERFORM create_reference_table('fleet.host');
	PERFORM create_reference_table('fleet.setting');
	PERFORM create_distributed_table('fleet.evidence', 'module');
	FOREACH the_table IN ARRAY ARRAY['module', 'module_host', 'build', 'build_host', 'audit', 'canary', 'canary_history',
			'canary_policy'] LOOP
		PERFORM create_distributed_table('fleet.' || the_table, 'module', colocate_with => 'fleet.evidence');
	END LOOP;
	PERFORM create_distributed_table('fleet.epoch', 'host');
	PERFORM create_distributed_table('fleet.traffic', 'host', colocate_with => 'fleet.epoch');
END $$;
