-- SPDX-License-Identifier: Apache-2.0
--
-- The table of one shard (shards.sql). Only the database that has the partitions may log in to a shard.
CREATE SCHEMA fleet_shard;
CREATE TABLE fleet_shard.evidence(
	module bytea NOT NULL,
	kind smallint NOT NULL,
	chunk bigint NOT NULL,
	first_day integer NOT NULL,
	host integer NOT NULL,
	epoch smallint NOT NULL,
	last_day integer NOT NULL,
	exact boolean NOT NULL,
	seq bigint NOT NULL,
	total bigint NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (module, kind, chunk, first_day, host, epoch)
);
