-- SPDX-License-Identifier: Apache-2.0
--
-- Distributes the tables over a Citus cluster. Applied behind the numbered files, where the extension citus is
-- installed and the tables are not distributed yet. Tables of modules lie together by module. The hosts are few
-- bytes each, and every node needs them for row-level security.
SET LOCAL ROLE morph_fleet_owner;
SELECT create_reference_table('fleet.host');
SELECT create_reference_table('fleet.setting');
SELECT create_distributed_table('fleet.evidence', 'module');
SELECT create_distributed_table('fleet.module', 'module', colocate_with => 'fleet.evidence');
SELECT create_distributed_table('fleet.module_host', 'module', colocate_with => 'fleet.evidence');
SELECT create_distributed_table('fleet.build', 'module', colocate_with => 'fleet.evidence');
SELECT create_distributed_table('fleet.audit', 'module', colocate_with => 'fleet.evidence');
SELECT create_distributed_table('fleet.epoch', 'host');
SELECT create_distributed_table('fleet.traffic', 'host', colocate_with => 'fleet.epoch');
