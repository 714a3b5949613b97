# SPDX-License-Identifier: Apache-2.0
"""Servers and other programs that run for long, for scripts/check/live-rounds.

Scripts are bash's. $W is a directory of the program's own, $PORT and $PORT2 are free ports, $N is the number of a client, $ROOT the
tree. Whatever `load' prints must always be the same, also for several clients at the same time.
"""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
LIB = "/usr/lib/x86_64-linux-gnu/"


class Work:
    """name; packages: of Debian; file: whose versions are put in, a pattern of glob, or several, of which the first counts that finds
    one; start: runs it in the foreground; load: asks for something, and prints the answers; asks: in place of load, lines for its
    standard input, each answered by one line; setup: before.

    by_path: file is a copy of its own, so `morph live' gets its path, not the numbers of processes. random: also with all functions in
    random order, which takes long for a large file. refused: the reason for which it may be refused. status: with which it must end at
    SIGTERM.
    """

    def __init__(self, name, packages, file, start, load="", *, asks=(), setup="", clients=2, by_path=False, random=True,
                 refused=None, status=None):
        self.name, self.packages, self.file, self.start, self.load = name, packages.split(), file, start, load
        self.asks, self.setup, self.clients, self.by_path, self.random = asks, setup, clients, by_path, random
        self.refused, self.status = refused, status


WWW = """
mkdir -p www; for i in {1..12}; do seq $i $((i * i * 150 + 40)) | sed "s/.*/& line of $i/" >www/f$i; done; chmod -R a+rX .
"""
GET = """
curl -sf --compressed "http://127.0.0.1:$PORT/f[1-12]" | sha256sum
for i in 1 5 9; do curl -sf -r 10-300 "http://127.0.0.1:$PORT/f$i"; done
curl -s -o /dev/null -w '%{http_code}\\n' "http://127.0.0.1:$PORT/missing"
"""
ZONE = """
{ printf '$TTL 300\\n@ SOA ns hostmaster 1 3600 600 86400 300\\n@ NS ns\\nns A 127.0.0.1\\n@ MX 10 h7\\nw CNAME h9\\n*.any TXT "any"\\n'
  for i in {1..200}; do echo "h$i A 10.1.2.$i"; echo "h$i TXT \\"text of $i\\""; done; } >zone
for i in {1..200}; do echo "h$i.example.test A"; echo "h$i.example.test TXT"; done >queries
printf '%s\\n' 'example.test MX' 'w.example.test A' 'a.b.any.example.test TXT' 'none.example.test A' >>queries
chmod -R a+rX .
"""
DIG = """
dig @127.0.0.1 -p $PORT +noall +answer +tries=2 +time=60 -f queries | sort
dig @127.0.0.1 -p $PORT +tcp +noall +answer +comments +time=60 none.example.test A h3.example.test A | grep -o 'status: [A-Z]*\\|10[.]1[.].*'
"""
DIG_SHORT = DIG.splitlines()[1] + "\n"
SQL = """
{create}
insert into t{n} select {i}, {i} * 7919 % 1000, md5({text}) from {series};
select count(*), sum(k), min(c), max(c) from t{n};
select k % 10 g, count(*), sum(id), max(c) from t{n} where c > '4' group by k % 10 order by g;
select a.id, b.id from t{n} a join t{n} b on b.k = a.k and b.id > a.id where a.id < 40 order by a.id, b.id limit 50;
select id, sum(k) over (partition by k % 7 order by id) s from t{n} where id < 200 order by s, id limit 30;
update t{n} set k = k + 1 where id % 3 = 0;
delete from t{n} where c like '%ab%';
select count(*), sum(k) from t{n};
begin; delete from t{n}; rollback;
select count(*), sum(length(c)) from t{n} where c like '%7%' or k in (select k from t{n} where id < 9);
drop table t{n};
"""
MARIADB_SQL = SQL.format(n="$N", create="create database if not exists c; use c; create or replace table t$N (id int primary key, k int, "
                         "c varchar(99), key(k)) engine=innodb;", i="seq", text="seq", series="seq_1_to_2000")
POSTGRES_SQL = SQL.format(n="$N", create="drop table if exists t$N; create table t$N (id int primary key, k int, c text); "
                          "create index on t$N (k);", i="i", text="i::text", series="generate_series(1, 2000) i")
# Sends its input, and prints what comes until PONG.
TALK = """{ exec 3<>/dev/tcp/127.0.0.1/$PORT; cat >&3; timeout 200 sed '/PONG/q' <&3; }"""
NC = "nc -w 60 -N 127.0.0.1 $PORT"
ORIGIN = "python3 -m http.server -d www --bind 127.0.0.1 $PORT2 >/dev/null 2>&1 &"
APACHE = """
for m in mpm_{mpm} authz_core dir mime autoindex filter deflate env setenvif rewrite include status alias headers; do
	f=/usr/lib/apache2/modules/mod_$m.so; [ ! -e $f ] || echo "LoadModule ${{m}}_module $f"; done >conf
cat >>conf <<E
ServerRoot $W
ServerName localhost
TypesConfig /dev/null
Listen 127.0.0.1:$PORT
PidFile $W/pid
Mutex file:$W
ErrorLog $W/log.err
User nobody
Group nogroup
DocumentRoot $W/www
AddOutputFilterByType DEFLATE text/plain
StartServers 3
MaxRequestWorkers {workers}
MaxConnectionsPerChild 300
RewriteEngine on
RewriteRule ^/r/(.*)$ /\\$1
<Directory />
Require all granted
ForceType text/plain
</Directory>
E
exec apache2 -f $W/conf -DFOREGROUND
"""
GET_APACHE = GET + 'curl -sf "http://127.0.0.1:$PORT/r/f[1-4]" | sha256sum\n'
OWN = "{compiler} -O2 -pthread -o {name} $ROOT/tests/e2e/live/{source}"

WORKS = (
    # ---- databases
    Work("redis", "redis-server redis-tools", "/usr/bin/redis-server",
         "exec redis-server --port 0 --unixsocket $W/s --dir $W --save 5 1 --io-threads 2 --io-threads-do-reads yes", """
redis-benchmark -s s -n 500 -c 5 -q -t set,get,incr,lpush,lrange_100,mset >/dev/null
seq 300 | sed "s/.*/SET k$N:& v&/" | redis-cli -s s | sort | uniq -c
redis-cli -s s EVAL "local s=0 for i=1,20000 do s=s+i*i%7 end return s" 0
seq 300 | sed "s/.*/GET k$N:&/" | redis-cli -s s | sha256sum
seq 200 | sed "s/.*/ZADD z$N & m&/" | redis-cli -s s >/dev/null; redis-cli -s s ZREVRANGE z$N 0 20 WITHSCORES
redis-cli -s s SORT z$N ALPHA LIMIT 3 5"""),
    Work("memcached", "memcached netcat-openbsd", "/usr/bin/memcached", "exec memcached -u nobody -l 127.0.0.1 -p $PORT -t 4 -m 64",
         "{ for i in {1..400}; do printf 'set k%s.%s 0 0 9\\r\\nvalue%04d\\r\\nget k%s.%s\\r\\n' $N $i $i $N $i; done; "
         "printf 'set n%s 0 0 1\\r\\n5\\r\\nincr n%s 37\\r\\ndecr n%s 2\\r\\nget none\\r\\nquit\\r\\n' $N $N $N; } | " + NC
         + " | sed \"s/ k$N/ k/\" | sha256sum"),
    Work("mariadbd", "mariadb-server mariadb-client", "/usr/sbin/mariadbd",
         "exec mariadbd --no-defaults --user=root --skip-networking --skip-grant-tables --skip-log-bin --innodb-buffer-pool-size=64M "
         "--innodb-flush-log-at-trx-commit=0 --datadir=$W/data --socket=$W/s --pid-file=$W/p --log-error=$W/log.err",
         "mariadb --no-defaults --socket=$W/s -N <<E\n" + MARIADB_SQL + "E",
         setup="mariadb-install-db --no-defaults --user=root --datadir=$W/data --skip-test-db >/dev/null"),
    Work("postgres", "postgresql-15", "/usr/lib/postgresql/15/bin/postgres",
         "exec setpriv --reuid=nobody --regid=nogroup --clear-groups /usr/lib/postgresql/15/bin/postgres -D $W/data -k $W -h ''",
         "psql -X -q -v ON_ERROR_STOP=1 -A -t -h $W postgres postgres 2>errors.$N <<E\n" + POSTGRES_SQL + "E",
         setup="chown nobody .; cd /; setpriv --reuid=nobody --regid=nogroup --clear-groups /usr/lib/postgresql/15/bin/initdb -U postgres -A trust "
         "-N -D $W/data >/dev/null"),
    Work("sqlite3", "sqlite3", "/usr/bin/sqlite3", "exec stdbuf -oL sqlite3 :memory:", asks=(
        "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9000) select sum(x * x % 97), count(distinct x % 71) from c;",
        "drop table if exists t; create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 2000) "
        "insert into t select x, hex(x * 7919) from c; create index i on t(b); select sum(a), group_concat(distinct substr(b, 1, 1)) from t;",
        "select json_group_array(a) from (select a from t where b like '%39%' order by b);")),
    Work("slapd", "slapd ldap-utils", "/usr/sbin/slapd", "exec slapd -f $W/conf -h ldap://127.0.0.1:$PORT -d 0", """
ldapsearch -x -LLL -H ldap://127.0.0.1:$PORT -b dc=test '(&(cn=u*)(!(sn=s7)))' cn sn | sha256sum
ldapsearch -x -LLL -H ldap://127.0.0.1:$PORT -b dc=test '(sn=s7)' cn
ldapwhoami -x -H ldap://127.0.0.1:$PORT -D cn=admin,dc=test -w wrong 2>&1 | head -n 1 || true
ldapmodify -x -H ldap://127.0.0.1:$PORT -D cn=admin,dc=test -w secret >/dev/null <<E
dn: cn=u$N,dc=test
changetype: modify
replace: description
description: round
E
ldapcompare -x -H ldap://127.0.0.1:$PORT cn=u$N,dc=test description:round || test $? = 6
""", setup="""
mkdir db; cat >conf <<E
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $W/pid
database mdb
suffix dc=test
rootdn cn=admin,dc=test
rootpw secret
directory $W/db
index cn eq,sub
E
{ printf 'dn: dc=test\\nobjectClass: dcObject\\nobjectClass: organization\\no: test\\ndc: test\\n\\n'
for i in {0..199}; do printf 'dn: cn=u%d,dc=test\\nobjectClass: inetOrgPerson\\ncn: u%d\\nsn: s%d\\n\\n' $i $i $((i % 10)); done; } >ldif
slapadd -f conf -l ldif 2>&1"""),

    # ---- web servers and proxies
    Work("nginx", "nginx curl", "/usr/sbin/nginx", "exec nginx -p $W -c $W/conf -e $W/log.err", GET
         + 'curl -sf "http://127.0.0.1:$PORT/x/[1-9]?q=1"\n', setup=WWW + """
cat >conf <<E
daemon off; worker_processes 2; pid $W/pid; user nobody nogroup;
events { worker_connections 256; }
http { access_log off; gzip on; gzip_types *; default_type text/plain; server { listen 127.0.0.1:$PORT; root $W/www;
location ~ ^/x/([0-9]+) { return 200 "\\$request_method \\$1 \\$arg_q\\n"; } } }
E"""),
    Work("apache2 prefork", "apache2-bin curl", "/usr/sbin/apache2", APACHE.format(mpm="prefork", workers=8), GET_APACHE, setup=WWW),
    Work("apache2 event", "apache2-bin curl", "/usr/sbin/apache2", APACHE.format(mpm="event", workers=75), GET_APACHE, setup=WWW),
    Work("lighttpd", "lighttpd curl", "/usr/sbin/lighttpd", "exec lighttpd -D -f $W/conf", GET, setup=WWW + """
cat >conf <<E
server.document-root = "$W/www"
server.bind = "127.0.0.1"
server.port = $PORT
server.errorlog = "$W/log.err"
mimetype.assign = ("" => "text/plain")
E"""),
    Work("haproxy", "haproxy curl", "/usr/sbin/haproxy", "exec haproxy -db -f $W/conf",
         'curl -sf "http://127.0.0.1:$PORT/h[1-20]"; curl -sf "http://127.0.0.1:$PORT/f[1-9]" | sha256sum', setup=WWW + """
cat >conf <<E
global
 nbthread 4
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 60s
listen x
 bind 127.0.0.1:$PORT
 http-request return status 200 content-type text/plain lf-string "%[path,sha1,hex] %[path,crc32]\\n" if { path_beg /h }
 server self 127.0.0.1:$PORT2
frontend y
 bind 127.0.0.1:$PORT2
 http-request return status 200 content-type text/plain file $W/www/f2
E"""),
    Work("squid", "squid curl python3", "/usr/sbin/squid", ORIGIN + "exec squid -N -f $W/conf",
         'curl -sf -x 127.0.0.1:$PORT "http://127.0.0.1:$PORT2/f[1-8]" | sha256sum; curl -s -o /dev/null -w "%{http_code}\\n" -x '
         '127.0.0.1:$PORT http://127.0.0.1:$PORT2/none', setup=WWW + """
mkdir v; chmod 777 v; cat >conf <<E
http_port 127.0.0.1:$PORT
acl all_local src 127.0.0.1
http_access allow all_local
access_log none
cache_log $W/v/log
pid_filename $W/v/pid
coredump_dir $W/v
cache_mem 16 MB
pinger_enable off
E"""),
    Work("varnishd", "varnish curl python3 gcc libc6-dev", "/usr/sbin/varnishd",
         ORIGIN + "exec varnishd -F -j none -a 127.0.0.1:$PORT -f $W/vcl -n $W/v -s malloc,32m -p thread_pool_min=50",
         'curl -sf "http://127.0.0.1:$PORT/f[1-8]" | sha256sum; curl -s "http://127.0.0.1:$PORT/s[1-9]"', setup=WWW + """
printf 'vcl 4.1;\\nbackend b { .host = "127.0.0.1"; .port = "%s"; }\\nsub vcl_recv { if (req.url ~ "^/s") { return (synth(200, "s")); } }\\n'\
'sub vcl_synth { set resp.body = regsub(req.url, "s", "S") + " "; return (deliver); }\\n' $PORT2 >vcl"""),
    Work("stunnel", "stunnel4 curl python3 openssl", "/usr/bin/stunnel4", ORIGIN + "exec stunnel4 $W/conf",
         'curl -skf "https://127.0.0.1:$PORT/f[1-8]" | sha256sum', setup=WWW + """
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out pem -subj /CN=localhost -days 3650 2>/dev/null
printf 'foreground = yes\\npid =\\noutput = %s/log.err\\n[x]\\naccept = 127.0.0.1:%s\\nconnect = 127.0.0.1:%s\\ncert = %s/pem\\nkey = %s/key\\n' \
	$W $PORT $PORT2 $W $W >conf"""),
    Work("openssl, libcrypto", "openssl curl", LIB + "libcrypto.so.3",
         "cd www; exec openssl s_server -accept 127.0.0.1:$PORT -cert ../pem -key ../key -WWW -quiet",
         'curl -skf "https://127.0.0.1:$PORT/f[1-8]" | sha256sum; curl -skf --tls-max 1.2 --ciphers ECDHE-RSA-CHACHA20-POLY1305 '
         '"https://127.0.0.1:$PORT/f[1-4]" | sha256sum', clients=1, setup=WWW + """
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out pem -subj /CN=localhost -days 3650 2>/dev/null"""),

    # ---- names
    Work("named", "bind9 bind9-dnsutils", "/usr/sbin/named", "exec named -g -n 2 -c $W/conf", DIG, setup=ZONE + """
cat >conf <<E
options { directory "$W"; listen-on port $PORT { 127.0.0.1; }; listen-on-v6 { none; }; pid-file "$W/pid"; session-keyfile "$W/key";
recursion no; dnssec-validation no; };
controls {};
zone "example.test" { type primary; file "$W/zone"; };
E"""),
    Work("unbound", "unbound bind9-dnsutils", "/usr/sbin/unbound", "exec unbound -d -p -c $W/conf", DIG_SHORT, setup=ZONE + """
cat >conf <<E
server:
 interface: 127.0.0.1@$PORT
 do-daemonize: no
 username: ""
 chroot: ""
 directory: "$W"
 num-threads: 2
 use-syslog: no
 local-zone: "example.test." static
E
for i in {1..200}; do printf ' local-data: "h%d.example.test A 10.1.2.%d"\\n local-data: "h%d.example.test TXT text%d"\\n' $i $i $i $i; done >>conf
printf 'remote-control:\\n control-enable: no\\n' >>conf"""),
    Work("dnsmasq", "dnsmasq-base bind9-dnsutils", "/usr/sbin/dnsmasq",
         "exec dnsmasq -k --conf-file=/dev/null -p $PORT --listen-address=127.0.0.1 --bind-interfaces --no-resolv --no-hosts --addn-hosts=$W/hosts "
         "--user=root --pid-file=$W/pid --local=/test/", DIG_SHORT,
         setup=ZONE + 'for i in {1..200}; do echo "10.1.2.$i h$i.example.test"; done >hosts; chmod a+r hosts'),
    Work("nsd", "nsd bind9-dnsutils", "/usr/sbin/nsd", "exec nsd -d -c $W/conf", DIG, setup=ZONE + """
cat >conf <<E
server:
 ip-address: 127.0.0.1@$PORT
 username: ""
 zonesdir: "$W"
 pidfile: "$W/pid"
 xfrdfile: "$W/xfrd"
 xfrdir: "$W"
 zonelistfile: "$W/list"
 server-count: 2
remote-control:
 control-enable: no
zone:
 name: example.test
 zonefile: zone
E"""),
    Work("knotd", "knot bind9-dnsutils", "/usr/sbin/knotd", "exec knotd -c $W/conf", DIG, setup=ZONE + """
mkdir db; cp zone example.test.zone; cat >conf <<E
server:
  rundir: $W
  listen: 127.0.0.1@$PORT
log:
  - target: stderr
    any: warning
database:
  storage: $W/db
zone:
  - domain: example.test
    storage: $W
    file: example.test.zone
E"""),

    # ---- messages, mail, files
    Work("mosquitto", "mosquitto mosquitto-clients", "/usr/sbin/mosquitto", "exec mosquitto -p $PORT", """
for i in {1..12}; do mosquitto_pub -h 127.0.0.1 -p $PORT -r -t t$N/$i -m "message $i" -q 1; done
mosquitto_sub -h 127.0.0.1 -p $PORT -W 60 -C 12 -t "t$N/#" | sort"""),
    Work("exim4", "exim4-daemon-light netcat-openbsd", "/usr/sbin/exim4", "exec exim4 -C $W/conf -bdf", """
{ printf 'EHLO c\\r\\n'; for i in {1..5}; do printf 'MAIL FROM:<a@test>\\r\\nRCPT TO:<b%d@test>\\r\\nDATA\\r\\nSubject: %d\\r\\n\\r\\n' $i $i
seq 100; printf '.\\r\\n'; done; printf 'VRFY x\\r\\nQUIT\\r\\n'; } | """ + NC + " | cut -c1-3 | uniq -c", setup="""
mkdir spool; chown -R Debian-exim: spool .; cat >conf <<E
primary_hostname = test
daemon_smtp_ports = $PORT
local_interfaces = 127.0.0.1
spool_directory = $W/spool
log_file_path = $W/spool/%slog
pid_file_path = $W/spool/pid
smtp_enforce_sync = false
keep_environment =
smtp_accept_max = 100
deliver_queue_load_max = 1000
acl_smtp_rcpt = yes
acl_smtp_data = yes
begin acl
yes:
  accept
begin routers
r:
  driver = redirect
  data = :blackhole:
E
chmod a+r conf"""),
    Work("postfix", "postfix netcat-openbsd", "/usr/lib/postfix/libpostfix-util.so", "exec /usr/lib/postfix/sbin/master -c $W/etc -d", """
{ printf 'EHLO c\\r\\n'; for i in {1..5}; do printf 'MAIL FROM:<a@test>\\r\\nRCPT TO:<b%d@test>\\r\\nDATA\\r\\nSubject: %d\\r\\n\\r\\n' $i $i
seq 100; printf '.\\r\\n'; done; printf 'VRFY x\\r\\nQUIT\\r\\n'; } | """ + NC + " | cut -c1-3 | uniq -c", setup="""
mkdir etc spool data; chown postfix data; cat >etc/main.cf <<E
compatibility_level = 3.6
maillog_file = /dev/stdout
queue_directory = $W/spool
data_directory = $W/data
myhostname = test
mydestination = test
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
alias_database =
local_recipient_maps =
local_transport = discard:
E
{ echo "127.0.0.1:$PORT inet n - n - 4 smtpd"; for s in bounce:0 defer:0:bounce rewrite:-:trivial-rewrite trace:0:bounce proxymap:- anvil:1 \
scache:1 discard:- error:- verify:1 tlsmgr:1; do IFS=: read name most program <<<$s; echo "$name unix - - n - $most ${program:-$name}"; done
printf '%s\\n' 'postlog unix-dgram n - n - 1 postlogd' 'pickup unix n - n 60 1 pickup' 'qmgr unix n - n 300 1 qmgr' \
'cleanup unix n - n - 0 cleanup' 'flush unix n - n 1000? 0 flush'; } >etc/master.cf
postfix -c $W/etc check 2>&1"""),
    Work("vsftpd", "vsftpd curl", "/usr/sbin/vsftpd", "exec vsftpd $W/conf",
         'curl -sf "ftp://127.0.0.1:$PORT/f[1-6]" | sha256sum; curl -sf -l ftp://127.0.0.1:$PORT/ | sort | head -n 3', setup=WWW + """
mkdir -p /var/run/vsftpd/empty; chmod 755 www; cat >conf <<E
listen=YES
background=NO
listen_address=127.0.0.1
listen_port=$PORT
anonymous_enable=YES
local_enable=NO
anon_root=$W/www
no_anon_password=YES
E""", refused="seccomp|sees another file"),
    Work("rsync", "rsync", "/usr/bin/rsync", "exec rsync --daemon --no-detach --port=$PORT --config=$W/conf", """
rm -rf to.$N; rsync -az rsync://127.0.0.1:$PORT/x/ to.$N/; cat to.$N/f* | sha256sum; rsync rsync://127.0.0.1:$PORT/x/ | awk '{print $2, $5}' | sort""",
         setup=WWW + """
printf 'use chroot = no\\nuid = root\\ngid = root\\nlock file = %s/lock\\nlog file = %s/log.err\\n[x]\\npath = %s/www\\n' $W $W $W >conf"""),
    Work("sshd", "openssh-server openssh-client", "/usr/sbin/sshd", "exec /usr/sbin/sshd -D -e -f $W/conf", """
ssh -F none -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i id -p $PORT root@127.0.0.1 'seq 3000 | sha256sum; echo ok'
seq 9000 | ssh -F none -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i id -p $PORT root@127.0.0.1 sha256sum""", setup="""
mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N '' -f id; ssh-keygen -q -t ed25519 -N '' -f host
cat >conf <<E
Port $PORT
ListenAddress 127.0.0.1
HostKey $W/host
AuthorizedKeysFile $W/id.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
MaxStartups 100
E""", refused="seccomp|sees another file"),
    Work("ngircd", "ngircd netcat-openbsd", "/usr/sbin/ngircd", "exec ngircd -n -f $W/conf", """
{ printf 'NICK n%s\\r\\nUSER u 0 * :r\\r\\nJOIN #c%s\\r\\n' $N $N; for i in {1..30}; do printf 'TOPIC #c%s :topic %d\\r\\nMODE #c%s\\r\\nNAMES #c%s\\r\\n' \
$N $i $N $N; done; printf 'PING end\\r\\n'; } | """ + TALK + " | tr -d '\\r' | sed \"s/[nc]$N/X/g; s/~u@[^ ]*/u/\" | grep -E ' (TOPIC|332|324|353|366) '",
         setup="""
cat >conf <<E
[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = $PORT
ServerUID = nobody
ServerGID = nogroup
PidFile = $W/pid
[Limits]
MaxConnections = 0
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
SyslogFacility = local1
E"""),
    Work("transmission", "transmission-daemon curl", "/usr/bin/transmission-daemon",
         "exec transmission-daemon -f -g $W/c -p $PORT -r 127.0.0.1 -T --no-portmap --no-dht --no-lpd --no-utp -P $PORT2 -w $W", """
id=$(curl -s -D - -o /dev/null http://127.0.0.1:$PORT/transmission/rpc | tr -d '\\r' | grep -i '^X-Transmission-Session-Id')
for m in session-get torrent-get; do curl -sf -H "$id" -d '{"method":"'$m'","arguments":{"fields":["id","name","alt-speed-down","rpc-version"]}}' \
http://127.0.0.1:$PORT/transmission/rpc; done | sed 's/"download-dir-free-space":[0-9]*//; s/"session-id":"[^"]*"//' | sha256sum"""),
    Work("tor", "tor netcat-openbsd", "/usr/bin/tor",
         ": >conf; exec tor -f conf --DataDirectory $W/d --DisableNetwork 1 --SocksPort 0 --ControlPort $PORT --Log 'err stderr'",
         "{ printf 'AUTHENTICATE\\r\\n'; for i in {1..60}; do printf 'GETINFO version config/names info/names\\r\\nGETCONF SocksPort ControlPort\\r\\n'; "
         "done; printf 'QUIT\\r\\n'; } | " + NC + " | sha256sum"),

    # ---- interpreters
    Work("python3", "python3", "/usr/bin/python3.11", "exec python3 -uc 'import sys, hashlib, json, re, zlib\nfor l in sys.stdin: print(eval(l))'",
         asks=("sum(x * x % 7 for x in range(30000))",
               "hashlib.md5(json.dumps({str(i): [i, i / 7, 'x' * (i % 9)] for i in range(2000)}).encode()).hexdigest()",
               "len(re.findall(r'(\\w+)[ab]+\\d', ' '.join(f'w{i}ab{i}' for i in range(3000))))",
               "[(lambda: 1 // 0 if i % 2 else i, i)[1] for i in range(9)]",
               "zlib.crc32(b''.join(sorted(str(i * 7919 % 10007).encode() for i in range(5000))))")),
    Work("gunicorn, python3", "gunicorn curl", "/usr/bin/python3.11",
         "exec gunicorn -w 2 --threads 3 -b 127.0.0.1:$PORT app:app", 'curl -sf "http://127.0.0.1:$PORT/p[1-20]" | sha256sum', setup="""
cat >app.py <<E
import hashlib
def app(environ, start):
    start('200 OK', [('Content-Type', 'text/plain')])
    path = environ['PATH_INFO']
    yield hashlib.sha256(repr(sorted((i * 7919 % 1009, path) for i in range(800))).encode()).hexdigest().encode() + b'\\n'
E
chmod -R a+rX ."""),
    Work("perl", "perl", "/usr/bin/perl", "exec perl -e '$|=1; while (<STDIN>) { my $v = eval; print $@ ? \"$@\" : \"$v\\n\" }'", asks=(
        "my $s = 0; $s += $_ * $_ % 7 for 1..30000; $s", "join(',', (sort { $b <=> $a } map { $_ * 7919 % 1009 } 1..2000)[0..9])",
        "my %h; $h{$1 . length $2}++ while ('aab1 bcd22 ' x 900) =~ /(\\w+?)(\\d+)/g; join ' ', map \"$_ $h{$_}\", sort keys %h",
        "sprintf('%.6f|%s|%x', sqrt(2) ** 3, pack('A5', 'ab'), 48879)", "eval { die { a => 7 } }; $@->{a}")),
    Work("ruby, libruby", "ruby", LIB + "libruby-3.1.so.3.1", "exec ruby -e '$stdout.sync = true; STDIN.each_line { |l| puts(begin; eval(l); "
         "rescue => e; e.message; end) }'", asks=(
             "(1..30000).sum { |x| x * x % 7 }", "(1..2000).map { |x| x * 7919 % 1009 }.sort.reverse.first(9).inspect",
             "('aab1 bcd22 ' * 900).scan(/(\\w+?)(\\d+)/).tally.inspect", "raise 'deep'",
             "(1..200).map { |i| Fiber.new { Fiber.yield i; i * 2 } }.sum { |f| f.resume + f.resume }",
             "4.times.map { |i| Thread.new { (1..2000).reduce(:+) + i } }.sum(&:value)", "catch(:a) { 10.times { |i| throw :a, i if i == 7 } }")),
    Work("lua", "lua5.4", "/usr/bin/lua5.4", "exec lua5.4 -e 'io.stdout:setvbuf(\"line\") for l in io.lines() do local f = load(l) local ok, v = pcall(f) "
         "print(v) end'", asks=(
             "local s = 0 for i = 1, 100000 do s = s + i * i % 7 end return s",
             "local t = {} for i = 1, 3000 do t[i] = i * 7919 % 1009 end table.sort(t) return table.concat(t, ',', 990, 1009)",
             "local n = 0 for a, b in ('aab1 bcd22 '):rep(900):gmatch('(%a+)(%d+)') do n = n + #a * b end return n",
             "local c = coroutine.wrap(function() for i = 1, 500 do coroutine.yield(i) end return 0 end) local s = 0 for i = 1, 500 do s = s + c() end return s",
             "return select(2, pcall(error, 'e', 0))")),
    Work("php -S", "php8.2-cli curl", "/usr/bin/php8.2", "export PHP_CLI_SERVER_WORKERS=3; exec php8.2 -q -S 127.0.0.1:$PORT $W/a.php",
         'curl -sf "http://127.0.0.1:$PORT/?q=[1-10]" | sha256sum', setup="""
cat >a.php <<'E'
<?php $a = []; for ($i = 0; $i < 2000; $i++) $a[] = md5($i . ($_GET['q'] ?? '')); sort($a); echo hash('crc32b', implode($a)),
 preg_replace_callback('/\\d+/', fn($m) => $m[0] * 2, 'a1b22c333'), json_encode(array_slice($a, 0, 3));
function f($n) { if ($n == 0) throw new Exception('x'); try { f($n - 1); } finally { echo $n; } } try { f(9); } catch (Exception $e) { echo "c\\n"; }
E"""),
    Work("php-fpm", "php8.2-fpm libfcgi-bin", "/usr/sbin/php-fpm8.2", "exec php-fpm8.2 -F -R -y $W/conf -c $W",
         "for i in {1..5}; do REQUEST_METHOD=GET QUERY_STRING=q=$i SCRIPT_FILENAME=$W/a.php cgi-fcgi -bind -connect $W/s; done | sha256sum", setup="""
cat >conf <<E
[global]
error_log = $W/log.err
pid = $W/pid
[w]
listen = $W/s
user = nobody
group = nogroup
listen.mode = 0666
pm = static
pm.max_children = 3
pm.max_requests = 200
E
cat >a.php <<'E'
<?php $a = []; for ($i = 0; $i < 3000; $i++) $a[] = md5($i . $_GET['q']); sort($a); echo hash('sha256', implode($a));
E
chmod -R a+rX ."""),
    Work("erlang", "erlang-base", "/usr/lib/erlang/erts-*/bin/beam.smp", "exec erl -noshell -noinput -eval '" """
{ok, L} = gen_tcp:listen(list_to_integer(os:getenv("PORT")), [binary, {packet, line}, {active, false}, {reuseaddr, true}, {ip, {127,0,0,1}}]),
S = fun(S, C) -> case gen_tcp:recv(C, 0) of {ok, B} -> {ok, T, _} = erl_scan:string(binary_to_list(B)), {ok, E} = erl_parse:parse_exprs(T),
 {value, V, _} = erl_eval:exprs(E, []), gen_tcp:send(C, io_lib:format("~w~n", [V])), S(S, C); _ -> gen_tcp:close(C) end end,
A = fun(A) -> {ok, C} = gen_tcp:accept(L), P = spawn(fun() -> receive go -> S(S, C) end end), gen_tcp:controlling_process(C, P), P ! go, A(A) end, A(A).
""" "'", "printf '%s\\n' 'lists:sum([X * X rem 7 || X <- lists:seq(1, 9000)]).' 'erlang:md5(term_to_binary(lists:seq(1, 5000))).' "
         "'P = self(), [spawn(fun() -> P ! I * 2 end) || I <- lists:seq(1, 200)], lists:sum([receive X -> X end || _ <- lists:seq(1, 200)]).' "
         "'element(1, catch error(deep)).' | " + NC),
    Work("node", "nodejs", LIB + "libnode.so.* /usr/bin/node",
         "exec node -e 'require(\"readline\").createInterface({input: process.stdin}).on(\"line\", async l => console.log(await eval(l)))'",
         random=False, asks=(
             "let s = 0; for (let i = 1; i <= 300000; i++) s += i * i % 7; s",
             "require('crypto').createHash('md5').update(JSON.stringify([...Array(3000).keys()].map(i => [i, i / 7, 'x'.repeat(i % 9)]))).digest('hex')",
             "('aab1 bcd22 '.repeat(900)).match(/(\\w+?)(\\d+)/g).length", "try { null.x } catch (e) { e.constructor.name }",
             "new Promise(f => require('zlib').gzip('y'.repeat(99999), (e, b) => f(b.length)))",
             "Promise.all([...Array(50).keys()].map(i => new Promise(f => setTimeout(f, i % 3, i)))).then(a => a.reduce((x, y) => x + y))",
             "new Promise(f => new (require('worker_threads').Worker)('require(\"worker_threads\").parentPort.postMessage(6 * 7)', "
             "{eval: true}).on('message', f))")),
    Work("java, libjvm", "openjdk-17-jdk-headless", "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
         "exec java -Xmx256m -cp $W Loop", random=False, asks=("30000", "7", "12345", "1"), setup="""
cat >Loop.java <<'E'
import java.util.*;
public class Loop { static int f(int n) { if (n == 0) throw new IllegalStateException("b"); return f(n - 1) + 1; }
 public static void main(String[] a) throws Exception { Scanner in = new Scanner(System.in); while (in.hasNextLine()) { int n = Integer.parseInt(in.nextLine());
  long s = 0; for (int i = 1; i < n * 20; i++) s += i * i % 7; TreeMap<String, Integer> m = new TreeMap<>();
  for (int i = 0; i < 3000; i++) m.merge("k" + i * 7919 % 1009, i, Integer::sum); try { f(n % 50); } catch (IllegalStateException e) { s++; }
  Thread t = new Thread(() -> { byte[][] b = new byte[200][]; for (int i = 0; i < 200; i++) b[i] = new byte[10000]; }); t.start(); t.join();
  if (n == 7) System.gc(); System.out.println(s + " " + m.hashCode()); } } }
E
javac Loop.java"""),

    # ---- others
    Work("etcd, Go", "etcd-server curl", "/usr/bin/etcd",
         "exec etcd --data-dir $W/d --listen-client-urls http://127.0.0.1:$PORT --advertise-client-urls http://127.0.0.1:$PORT "
         "--listen-peer-urls http://127.0.0.1:$PORT2 --initial-advertise-peer-urls http://127.0.0.1:$PORT2 "
         "--initial-cluster default=http://127.0.0.1:$PORT2 --log-level error", 'curl -sf http://127.0.0.1:$PORT/health',
         refused="static|Go|no unwind|runtime"),
    Work("C++, exceptions", "g++", "{W}/throws", "exec ./throws", setup=OWN.format(compiler="g++", name="throws", source="throws.cc"), by_path=True,
         clients=1, status=0),
    Work("100 threads", "gcc", "{W}/worker", "exec ./worker 100", setup=OWN.format(compiler="gcc", name="worker", source="worker.c"), by_path=True,
         clients=1, status=0),
    Work("waits", "gcc", "{W}/waits", "exec ./waits < <(sleep infinity)", setup=OWN.format(compiler="gcc", name="waits", source="waits.c"),
         by_path=True, clients=1),
    Work("100 processes", "gcc", "{W}/prefork", "exec ./prefork 100 500000",
         setup=OWN.format(compiler="gcc", name="prefork", source="prefork.c"), by_path=True, clients=1, status=0),
    Work("1000 processes", "gcc", "{W}/prefork", "exec ./prefork 1000 5000000",
         setup=OWN.format(compiler="gcc", name="prefork", source="prefork.c"), by_path=True, clients=1, status=0),
)
