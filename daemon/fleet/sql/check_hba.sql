-- SPDX-License-Identifier: Apache-2.0
--
-- What is wrong with pg_hba.conf, one finding a row. Only superusers may read it in this way.
SELECT pg_catalog.format('pg_hba.conf, line %s: anybody gets in by network without a password', h.line_number)
FROM pg_catalog.pg_hba_file_rules h WHERE h.type LIKE 'host%' AND h.auth_method = 'trust'
UNION ALL SELECT 'pg_hba.conf: no line lets hosts in by certificate'
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_hba_file_rules h WHERE h.auth_method = 'cert' AND h.error IS NULL);
