-- SPDX-License-Identifier: Apache-2.0
-- Test work for SQLite: text functions, json, windows, recursion, triggers, views, without rowid.
create table log(at integer, who text, what text, primary key(who, at)) without rowid;
create table total(who text primary key, nr integer);
create trigger count_it after insert on log begin
 insert into total values(new.who, 1) on conflict(who) do update set nr = nr + 1;
end;
with recursive n(i, x) as (select 1, 17 union all select i + 1, (x * 69069 + 12345) % 2147483648 from n
 where i < (select value from size))
 insert into log select i, 'user' || (x % 97), json_object('n', i, 'x', x, 'tags', json_array(x % 3, 'a' || x % 7)) from n;
create view busy as select who, nr, rank() over (order by nr desc, who) r from total;
select * from busy where r <= 8;
select json_extract(what, '$.tags[1]') tag, count(*), sum(json_extract(what, '$.x')) % 1009 from log group by tag;
select who, at, lag(at, 1, 0) over w, sum(at) over (partition by who order by at rows 3 preceding) from log
 window w as (partition by who order by at) limit 30 offset 400;
select upper(substr(who, 3)) || '-' || printf('%06.2f', avg(at)), replace(max(what), '"', '') from log
 where what like '%a3%' and who glob 'user[1-4]*' group by who order by 1 limit 12;
with recursive path(n, s) as (select 1, 'x' union all select n + 1, substr(s || hex(n), -12) from path where n < 900)
 select count(distinct s), max(s) from path;
select count(*) from log a where exists (select 1 from log b where b.who = a.who and b.at = a.at + 1);
select who from total except select who from log where at > 500 union select 'z' order by 1 limit 5;
