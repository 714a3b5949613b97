# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # Tests read these variables.
# Shared by the tests of the fleet: a PostgreSQL cluster of their own with TLS, a CA, and a client certificate
# for each host. Source it instead of lib.sh. Everything lies below $dir and ends with the test.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

fleet=$BUILD/morph-fleet
[ -x "$fleet" ] || { echo "skip: morph-fleet was not built: libpq is missing"; exit 77; }
pg_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$pg_bin/initdb" ] || { echo "skip: PostgreSQL is missing"; exit 77; }
need openssl psql

# PostgreSQL refuses to run as root. as_postgres COMMAND...: as another user, who can read $dir.
pg_user=
[ "$(id -u)" != 0 ] || pg_user=$(getent passwd postgres nobody | head -n 1 | cut -d: -f1)
as_postgres() {
	if [ -n "$pg_user" ]; then
		(cd / && setpriv --reuid="$pg_user" --regid="$(id -g "$pg_user")" --clear-groups "$@")
	else
		"$@"
	fi
}

# certificate NAME: NAME.key and NAME.crt, signed by the CA of this test
certificate() {
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$dir/$1.key" \
		-out "$dir/$1.csr" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" 2>/dev/null &&
		openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
			-copy_extensions copy -out "$dir/$1.crt" 2>/dev/null && chmod 600 "$dir/$1.key"
}

# free_port: a port where nobody listens now
free_port() {
	local port
	for port in $(shuf -i 20000-32000 -n 50); do
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
	done
}

# cluster NAME: makes and starts a cluster in $dir/NAME. It listens on a Unix socket there, for everybody as
# any role, and with TLS on 127.0.0.1, for certificates. Sets ${NAME}_port.
cluster() {
	local name=$1 data=$dir/$1 port
	port=$(free_port)
	mkdir "$data" && { [ -z "$pg_user" ] || chown "$pg_user" "$data"; }
	chmod 755 "$dir"
	# initdb takes seconds: later clusters are copies of the first one.
	if [ -d "$dir/template" ]; then
		cp -a "$dir/template" "$data/data"
	else
		as_postgres "$pg_bin/initdb" -D "$data/data" -U postgres -E UTF8 --locale=C.UTF-8 -A trust -N \
			>"$dir/$name.log" 2>&1 || {
			echo "FAIL: initdb"
			tail -n 5 "$dir/$name.log"
			exit 1
		}
		cp -a "$data/data" "$dir/template"
	fi
	cp "$dir/ca.crt" "$data/data/" && cp "$dir/server.crt" "$dir/server.key" "$data/data/"
	[ -z "$pg_user" ] || chown "$pg_user" "$data"/data/*.crt "$data"/data/*.key
	chmod 600 "$data/data/server.key"
	cat >>"$data/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$data'
ssl = on
ssl_ca_file = 'ca.crt'
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
shared_buffers = ${SHARED_BUFFERS:-64MB}
max_connections = 60
autovacuum_naptime = 10min
log_min_messages = fatal
CONF
	cat >"$data/data/pg_hba.conf" <<'HBA'
local all all trust
hostssl all +morph_fleet_host 127.0.0.1/32 cert map=morph
hostssl all +morph_fleet_operator 127.0.0.1/32 cert map=morph
HBA
	echo 'morph /^(.*)$ \1' >"$data/data/pg_ident.conf"
	eval "${name}_port=$port"
	clusters="$clusters $name"
	cluster_start "$name"
}
clusters=

cluster_start() {
	# -F: tests with a crash of the machine would need fsync; those with kill -9 do not.
	as_postgres "$pg_bin/pg_ctl" -D "$dir/$1/data" -l "$dir/$1/log" -w -t 60 -o "${PG_OPTIONS:--F}" start >"$dir/$1.log" 2>&1 || {
		echo "FAIL: PostgreSQL does not start"
		tail -n 5 "$dir/$1.log" "$dir/$1/log"
		exit 1
	}
}

cluster_stop() {
	[ ! -s "$dir/$1/data/postmaster.pid" ] ||
		as_postgres "$pg_bin/pg_ctl" -D "$dir/$1/data" -m immediate -w stop >/dev/null 2>&1
}

stop_all() {
	local name
	for name in $clusters; do
		cluster_stop "$name"
	done
	rm -rf "$dir"
}

# fleet_start: a scratch directory, a CA, and a cluster with an empty database `fleet`. $ADMIN connects there
# as a superuser.
fleet_start() {
	# In /tmp, which PostgreSQL's user can enter, and where the name of its socket is short enough.
	TMPDIR=/tmp scratch fleet
	at_exit stop_all
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=test CA" \
		-keyout "$dir/ca.key" -out "$dir/ca.crt" 2>/dev/null || { echo "FAIL: no CA"; exit 1; }
	certificate server
	cluster pg
	fleet_port=$pg_port
	fleet_sql "host=$dir/pg port=$fleet_port user=postgres dbname=postgres" 'CREATE DATABASE fleet' >/dev/null
	ADMIN="host=$dir/pg port=$fleet_port user=postgres dbname=fleet"
	export MORPH_FLEET=$ADMIN
}

# fleet_crash: kill -9 of the postmaster and of everything it started. fleet_restart: the cluster again.
fleet_crash() {
	local pid
	pid=$(head -n 1 "$dir/pg/data/postmaster.pid")
	kill -9 "$pid" $(ps -o pid= --ppid "$pid") 2>/dev/null
	while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}
fleet_restart() {
	cluster_start pg
}

# fleet_host NAME [OPTION...]: enrols a host, and makes its certificate; $dir/NAME.conn is how it connects
fleet_host() {
	"$fleet" enrol "$@" || fail "enrol $1"
	certificate "$1"
	fleet_conn "$1" "$1" >"$dir/$1.conn"
}

# fleet_conn ROLE CERTIFICATE: the conninfo of a role with a certificate
fleet_conn() {
	echo "host=localhost hostaddr=127.0.0.1 port=$fleet_port dbname=fleet user=$1 sslmode=verify-full" \
		"sslrootcert=$dir/ca.crt sslcert=$dir/$2.crt sslkey=$dir/$2.key"
}

# fleet_shards NAME: a database NAME beside $ADMIN's, whose evidence lies in two clusters, s1 and s2. $SHARDED is
# its conninfo.
fleet_shards() {
	local shard port conn
	fleet_sql "$ADMIN" "CREATE DATABASE $1" || fail "no database $1"
	SHARDED=${ADMIN/dbname=fleet/dbname=$1}
	"$fleet" init -d "$SHARDED" >/dev/null && fleet_sql "$SHARDED" 'CREATE EXTENSION postgres_fdw' || fail "init of $1"
	for shard in s1 s2; do
		cluster $shard
		port=${shard}_port
		conn="host=$dir/$shard port=${!port} user=postgres dbname=postgres"
		fleet_sql "$conn" 'CREATE ROLE shard LOGIN' && psql -X -q -d "$conn" -f "$root/daemon/fleet/sql/shard.sql" &&
			fleet_sql "$conn" 'GRANT USAGE ON SCHEMA fleet_shard TO shard; GRANT ALL ON fleet_shard.evidence TO shard' &&
			fleet_sql "$SHARDED" "CREATE SERVER $shard FOREIGN DATA WRAPPER postgres_fdw
				OPTIONS (host '$dir/$shard', port '${!port}', dbname 'postgres', fetch_size '1000');
				GRANT USAGE ON FOREIGN SERVER $shard TO morph_fleet_owner;
				CREATE USER MAPPING FOR PUBLIC SERVER $shard OPTIONS (user 'shard', password_required 'false')" ||
			fail "the shard $shard"
	done
	psql -X -q -1 -v ON_ERROR_STOP=1 -d "$SHARDED" -f "$root/daemon/fleet/sql/shards.sql" &&
		fleet_sql "$SHARDED" "SET ROLE morph_fleet_owner; SELECT FROM fleet.attach_shards(ARRAY['s1', 's2'])" || fail "shards"
}

# fleet_sql CONNINFO SQL [PSQL-OPTION...]: rows, unaligned; stops at the first error
fleet_sql() {
	psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -c "$2" "${@:3}"
}

# send HOST SEQ MODULE KIND CHUNK DAY TOTAL DATA [LAST-DAY]: a batch of one row. The epoch is the host's name,
# the token is SEQ, so that batches come one after the other. MODULE and DATA are in hex. The module's text has
# 1 MiB. Errors are SQLSTATEs. Prints how many rows were new.
send() {
	local epoch
	epoch=$(printf '%-16s' "$1" | od -An -tx1 | tr -d ' \n')
	psql -X -q -A -t -1 -v ON_ERROR_STOP=1 -v VERBOSITY=sqlstate -d "$(cat "$dir/$1.conn")" -f - <<SQL
SELECT FROM fleet.batch('\x$epoch', $2 - 1, $2, $2);
SELECT FROM fleet.push_modules(ARRAY['\x$3'::bytea], ARRAY[0::smallint], ARRAY[1048576], ARRAY[NULL::text]);
SELECT fleet.push_rows('\x$epoch', $2, ARRAY['\x$3'::bytea], ARRAY[$4::smallint], ARRAY[$6], ARRAY[NULL::int], ARRAY[${9:-$6}],
	ARRAY[$5::bigint], ARRAY[false], ARRAY[$7::bigint], ARRAY['\x$8'::bytea]);
SQL
}
