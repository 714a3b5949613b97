-- SPDX-License-Identifier: Apache-2.0
--
-- What is wrong with a database, one finding a row; its version is checked by the program. Reads catalogues only,
-- so that it works in a damaged database.
WITH tables(name, policies) AS (VALUES
	('host', ARRAY['operators', 'own_row', 'readers']), ('epoch', ARRAY['operators', 'own_rows', 'readers']),
	('traffic', ARRAY['operators', 'own_rows', 'readers']), ('module', ARRAY['add', 'see']),
	('module_host', ARRAY['operators', 'operators_read', 'own_rows', 'readers']), ('evidence', ARRAY['operators', 'own_rows', 'readers']),
	('build', ARRAY['builders', 'hosts', 'operators', 'readers']),
	('build_host', ARRAY['operators', 'operators_read', 'own_rows', 'readers']),
	('audit', ARRAY['operators', 'operators_read', 'own_rows', 'readers']),
	('canary', ARRAY['operators', 'readers', 'see']), ('canary_history', ARRAY['operators', 'readers']),
	('canary_policy', ARRAY['operators', 'operators_set', 'readers', 'see'])
), roles(name) AS (VALUES
	('morph_fleet_owner'), ('morph_fleet_host'), ('morph_fleet_reader'), ('morph_fleet_operator'),
	('morph_fleet_builder')
), classes AS (
	SELECT c.*, pg_catalog.pg_get_userbyid(c.relowner) AS owner FROM pg_catalog.pg_class c
	WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'fleet') AND c.relkind IN ('r', 'p')
), functions AS (
	SELECT p.*, p.oid::regprocedure::text AS signature, pg_catalog.pg_get_userbyid(p.proowner) AS owner
	FROM pg_catalog.pg_proc p
	WHERE p.pronamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'fleet')
), grants AS (
	SELECT c.relname, c.owner, a.privilege_type,
		CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee) END AS grantee
	FROM classes c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
)
SELECT pg_catalog.format('schema fleet is owned by %s, not by morph_fleet_owner', pg_catalog.pg_get_userbyid(nspowner))
FROM pg_catalog.pg_namespace WHERE nspname = 'fleet' AND pg_catalog.pg_get_userbyid(nspowner) <> 'morph_fleet_owner'
UNION ALL SELECT pg_catalog.format('table fleet.%s is missing', t.name) FROM tables t
WHERE NOT EXISTS (SELECT FROM classes c WHERE c.relname = t.name)
UNION ALL SELECT pg_catalog.format('table fleet.%s is owned by %s, not by morph_fleet_owner', c.relname, c.owner)
FROM classes c WHERE c.owner <> 'morph_fleet_owner'
UNION ALL SELECT pg_catalog.format('row-level security is off for table fleet.%s', c.relname)
FROM classes c JOIN tables t ON t.name = c.relname WHERE NOT c.relrowsecurity
UNION ALL SELECT pg_catalog.format('row-level security of table fleet.%s does not hold for its owner', c.relname)
FROM classes c JOIN tables t ON t.name = c.relname WHERE c.relrowsecurity AND NOT c.relforcerowsecurity
UNION ALL SELECT pg_catalog.format('table fleet.%s has the policies %s, not %s', c.relname, p.names, t.policies)
FROM classes c JOIN tables t ON t.name = c.relname CROSS JOIN LATERAL (
	SELECT coalesce(pg_catalog.array_agg(polname::text ORDER BY polname), '{}') AS names
	FROM pg_catalog.pg_policy WHERE polrelid = c.oid
) p WHERE p.names <> t.policies
UNION ALL SELECT pg_catalog.format('%s has %s on table fleet.%s', g.grantee, g.privilege_type, g.relname) FROM grants g
WHERE g.grantee <> g.owner AND NOT (g.grantee IN ('morph_fleet_reader', 'morph_fleet_operator')
	AND g.privilege_type = 'SELECT') AND NOT (g.grantee = 'morph_fleet_operator' AND g.relname IN ('setting', 'canary_policy'))
UNION ALL SELECT pg_catalog.format('function %s is owned by %s, not by morph_fleet_owner', f.signature, f.owner)
FROM functions f WHERE f.owner <> 'morph_fleet_owner'
UNION ALL SELECT pg_catalog.format('function %s runs as its owner without a fixed search_path', f.signature)
FROM functions f
WHERE f.prosecdef AND NOT coalesce(f.proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']
UNION ALL SELECT pg_catalog.format('everybody may call function %s', f.signature) FROM functions f
WHERE EXISTS (
	SELECT FROM pg_catalog.aclexplode(coalesce(f.proacl, pg_catalog.acldefault('f', f.proowner))) a
	WHERE a.grantee = 0)
UNION ALL SELECT pg_catalog.format('role %s is missing', r.name)
FROM roles r
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles p WHERE p.rolname = r.name)
UNION ALL SELECT pg_catalog.format('role %s may log in, or has rights of an administrator', r.rolname)
FROM pg_catalog.pg_roles r
WHERE r.rolname IN (SELECT name FROM roles)
	AND (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolbypassrls OR r.rolreplication)
UNION ALL SELECT pg_catalog.format('host %s has rights of an administrator', r.rolname)
FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_auth_members m ON m.member = r.oid JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
WHERE g.rolname = 'morph_fleet_host' AND NOT m.admin_option
	AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolbypassrls OR r.rolreplication)
UNION ALL SELECT 'TLS is off: hosts cannot connect'
WHERE pg_catalog.current_setting('ssl') <> 'on';
