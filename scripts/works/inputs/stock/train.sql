-- SPDX-License-Identifier: Apache-2.0
-- Training work for SQLite: inserts, indexes, joins, aggregates, updates.
create table item(id integer primary key, name text, price real, kind integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
 insert into item select i, 'item' || (i * 7919 % 10007), i / 3.0, i % 17 from n;
create index item_name on item(name);
create index item_kind on item(kind, price);
select kind, count(*), round(sum(price), 2), min(name), max(name) from item group by kind order by 2 desc, 1;
select count(*), sum(a.id * b.id % 1009) from item a join item b on a.name = b.name where a.id < b.id;
update item set price = price * 1.1 where kind in (3, 5, 7);
delete from item where id % 11 = 0;
select name, price from item where kind = 5 and price between 100 and 200 order by price desc limit 20;
begin;
insert into item(name, price, kind) select name || 'x', price + 1, kind + 20 from item where id < 9000;
commit;
select sum(length(name)), avg(price) from item;
drop index item_name;
select name, count(*) c from item group by name having c > 3 order by c desc, name limit 10;
vacuum;
pragma integrity_check;
