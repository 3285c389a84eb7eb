-- What the sqlite3 shell is fed: wide rather than long.  Nothing in it depends on
-- time, chance or addresses, so two runs say the same.
.bail off
.echo on
.nullvalue ~
pragma page_size = 1024;
pragma auto_vacuum = incremental;
pragma journal_mode = wal;
pragma wal_autocheckpoint = 5;
pragma foreign_keys = on;
pragma cache_size = 20;
pragma recursive_triggers = on;

-- tables, keys, generated columns, constraints
create table a(id integer primary key, n int, r real, t text collate nocase, b blob,
	g int generated always as (n * 2 + length(t)) stored, v text as (upper(t)) virtual,
	check (n < 100000), unique (n, t));
create table c(k text primary key, aid references a(id) on delete cascade on update set null,
	w default (1 + 2)) without rowid;
create table s(i integer, x any, y text not null on conflict ignore) strict;
create index a_t on a(t collate rtrim desc, n);
create unique index a_e on a(abs(n), t) where n is not null;
create index a_x on a(r) where r > 10.5;
create table log(what, old, new);
create view va as select id, t, g, (select count(*) from c where aid = a.id) kids from a;
create trigger a_i after insert on a begin insert into log values ('i', null, new.id); end;
create trigger a_u before update of n on a when old.n > 5 begin
	insert into log values ('u', old.n, new.n);
	select case when new.n = 13 then raise(ignore) when new.n = 17 then raise(abort, 'seventeen') end;
end;
create trigger a_d after delete on a for each row begin insert into log select 'd', old.id, total(n) from a; end;
create trigger va_i instead of insert on va begin insert into a(n, t) values (new.id, new.t); end;

begin immediate;
with recursive s(i) as (values (1) union all select i + 1 from s where i < 300)
insert into a(n, r, t, b) select i, i * 1.37, printf('row %c%04d %x', 65 + i % 26, i, i * i), zeroblob(i % 40) from s;
insert into c select printf('k%d', id), id, id % 7 from a where id % 3 = 0;
savepoint one;
delete from a where id between 10 and 40;
savepoint two;
update a set n = n + 1000, t = t || '!' where id % 5 = 0;
rollback to two;
release two;
update or ignore a set n = n + 1 where id > 290;
rollback to one;
update a set n = 13 where id = 50;
update a set n = 17 where id = 51;
commit;
insert into a(id, n, t) values (1, 2, 'x');
insert or replace into a(id, n, t) values (1, 2, 'Replaced');
insert into a(id, n, t) values (2, 22, 'y') on conflict (id) do update set t = excluded.t || ' upserted', n = a.n + excluded.n where a.n < 1000 returning id, n, t, g;
insert into va values (777, 'through the view', 1, 2);

update a set (n, r) = (select max(n) + 1, avg(r) from a where id < 20) where id = 60 returning *;
delete from a where id in (select aid from c where w = 3) returning id, v;
update a set r = c.w * 2.5 from c where c.aid = a.id and c.w > 4;
select count(*), sum(n), total(r), avg(g), min(t), max(v), group_concat(distinct substr(t, 5, 1)) from a;
select what, count(*) from log group by 1 having count(*) > 1 order by 2 desc, 1;
insert into s values (1, 'any', 'text'), (2, 3.5, 'more'), ('x', 1, 'refused'), (3, x'0102', null);
select i, typeof(x), quote(x), y from s;
pragma foreign_key_check;
pragma foreign_key_list(c);
pragma table_xinfo(a);
pragma index_list(a);
pragma index_xinfo(a_t);

-- expressions
select 1 + 2 * 3 - 4 / 5 % 6 | 7 & ~8 << 2 >> 1, 7.0 / 2, -5 % 3, 9223372036854775807 + 1, 1e308 * 10, 0x7fff, not 0, null is null, 1 <> 2, 'a' || 'b';
select cast('12abc' as int), cast(3.99 as int), cast(x'414243' as text), cast('1e3' as numeric), cast(12345678901234567890 as real), typeof(1), typeof(1.), typeof('');
select abs(-4), char(65, 8364, 128512), coalesce(null, 3), glob('a*[b-d]?', 'axxcz'), ifnull(null, 'n'), iif(1, 2, 3), instr('hello', 'l'), length('αβγ'), like('%L_o', 'hello'), lower('ÀBC'), ltrim('  x '), rtrim('xyzz', 'z'), trim('--x--', '-'), max(1, 5, 3), min('b', 'a'), nullif(1, 1), quote('it''s'), replace('aXbXc', 'X', '--'), round(2.567, 2), round(-0.5), sign(-3), soundex('Robert'), substr('hello', -3, 2), unicode('€'), upper('abc'), zeroblob(3);
select printf('%d|%5d|%-5d|%05d|%+d|% d|%,d|%x|%X|%#o|%e|%.3f|%g|%G|%10.4s|%q|%Q|%w|%c|%%|%!.15g|%llu', 1, 2, 3, 4, 5, 6, 1234567, 255, 255, 8, 12345.678, 3.14159, 1e-10, 1e20, 'string', 'it''s', 'it''s', 'a"b', 'z', 0.1, -1);
select date('2024-02-29', '+1 year'), time('12:34:56', '-1 hour'), datetime(1700000000, 'unixepoch'), julianday('2000-01-01 12:00'), strftime('%d %f %H %j %J %m %M %s %S %w %W %Y %%', '2023-07-04 05:06:07.089'), date('2023-01-31', 'start of month', '+1 month', '-1 day', 'weekday 2'), datetime('2023-06-01T10:00+02:00'), unixepoch('1970-01-02');

select 'abc' like 'A%C' escape '\', 'a%c' like 'a\%c' escape '\', 'abc' glob '*[^x]c', 5 between 1 and 9, 3 in (1, 2, 3), (1, 2) < (1, 3), case 3 when 1 then 'a' when 3 then 'c' else 'd' end, exists (select 1 where 0), 1 is not distinct from 1;
select acos(0.5), asin(0.5), atan(1), atan2(1, 2), ceil(1.2), cos(1), cosh(1), degrees(1), exp(1), floor(-1.5), ln(10), log(100), log2(8), mod(7, 3), pi(), pow(2, 10), radians(180), sin(1), sinh(1), sqrt(2), tan(1), tanh(1), trunc(3.9);

-- joins, sets, aggregates, windows, recursion
explain query plan select * from a join c on c.aid = a.id left join log on log.new = a.id where a.t > 'row C' order by a.n limit 5 offset 2;
select a.id, c.k, log.what from a join c on c.aid = a.id left join log on log.new = a.id where a.t > 'row C' order by a.n desc limit 5 offset 2;
select x.id, y.id from a x, a y where x.n = y.n + 1 and x.id < 30 and y.t not like '%9%' order by x.t limit 7;
select a.id, c.k from a full join c on a.id = c.aid where a.id is null or c.k is null order by 1, 2 limit 5;
select * from a natural join (select id, 'j' j from a where id < 4) order by id;
select id from a where n in (select w from c) union select 1000 + w from c intersect select 1000 + n from a except select 1003 order by 1;
select id from a where t = 'ROW B0001 1' or n = 7 or (r > 400 and r < 402) or id = 9;
select n % 3 m, count(*), count(distinct n % 7), sum(r), group_concat(id, '/') filter (where id < 20) from a group by m order by m;
select id, n, row_number() over w, rank() over (order by n % 4), dense_rank() over (order by n % 4), percent_rank() over (order by n), cume_dist() over (order by n), ntile(4) over (order by id), lag(n, 2, -1) over w, lead(n) over w, first_value(n) over w, last_value(n) over (partition by n % 3 order by id rows between 1 preceding and 1 following), nth_value(n, 2) over w, sum(n) over (order by id groups between 2 preceding and current row exclude ties), avg(r) over (order by r range between 10.0 preceding and 20.0 following), group_concat(n % 10, '') over (order by id rows between unbounded preceding and 3 preceding) from a where id < 40 window w as (partition by n % 5 order by n desc) order by id;
with recursive fib(a, b, i) as (select 0, 1, 0 union all select b, a + b, i + 1 from fib where i < 60), tree(id, up, d) as (select 1, 0, 0 union select a.id, tree.id, d + 1 from a, tree where a.id in (tree.id * 2, tree.id * 2 + 1) and d < 5 order by 3 desc) select max(a), (select count(*) from tree), (select group_concat(id) from tree where d = 4) from fib;
with recursive m(x, y, cx, cy, i) as (select 0., 0., -1.5 + .2 * col, -1 + .25 * row, 0 from (with recursive n(col) as (values (0) union all select col + 1 from n where col < 9) select col from n), (with recursive n(row) as (values (0) union all select row + 1 from n where row < 7) select row from n) union all select x*x - y*y + cx, 2*x*y + cy, cx, cy, i + 1 from m where x*x + y*y < 4 and i < 10) select group_concat(case max(i) when 10 then '#' else max(i) end, '') over () from m group by cx, cy order by cy, cx limit 1;
select value, count(*) from (select n % 4 value from a) group by value having count(*) > 5 order by count(*) desc, value;
select * from (select 1 p, 'a' q union all values (2, 'b')) x cross join (select 3) order by 1 desc;
select id, t from a order by t collate binary desc, r asc nulls last limit 3;
select distinct n / 50 from a order by 1;
create temp table big as select a.id i, b.id j, a.t || b.t t from a, a b where a.id % 9 = 0 and b.id % 4 = 0;
select count(*), min(t), max(t), sum(i * j) from big;
create index temp.big_t on big(t, j desc);
select count(*) from big where t > 'row M' and j > 10;
delete from big where i = j or t like '%5%';
select count(*), sum(length(t)) from big;
drop table big;

-- JSON
select json('{"a":[1,2,{"b":null}], "c":1.5e3}'), json_array(1, 'x', null, json('[2]')), json_object('k', 1, 'l', json_array()), json_extract('{"a":[1,2,{"b":"q"}]}', '$.a[2].b'), '{"a":5}' -> '$.a', '{"a":"t"}' ->> 'a', json_insert('[1]', '$[#]', 9), json_replace('{"a":1}', '$.a', 'z'), json_set('{}', '$.n.m', 3), json_remove('[0,1,2]', '$[1]'), json_patch('{"a":1,"b":2}', '{"b":null,"c":3}'), json_type('[true]', '$[0]'), json_valid('{bad'), json_quote('"\'), json_array_length('[1,2,3]');
select key, value, type, atom, fullkey from json_tree('{"a":[1,{"b":[true,false,null,"\u00e9\n"]}],"d":-1.25}');
select json_group_array(n), json_group_object(id, t) from (select id, n, t from a where id < 12 order by id);

-- full text, r-tree
create virtual table f using fts5(title, body, tokenize = 'porter unicode61', prefix = '2 3');
insert into f select 'Title ' || t, 'running runner ran quickly over ' || group_concat(t, ' ') over (order by id rows 3 preceding) from a where id < 80;
select rowid, highlight(f, 0, '<', '>'), snippet(f, 1, '[', ']', '...', 6), round(bm25(f), 3) from f where f match 'run AND (row* OR "quickly over") NOT title:c0003' order by rank limit 5;
select count(*) from f where f match 'body:row NEAR(quickly row, 3)';
delete from f where rowid % 3 = 0;
update f set title = 'changed ' || rowid where rowid % 4 = 0;
insert into f(f) values ('optimize');
insert into f(f) values ('integrity-check');
insert into f(f, rank) values ('merge', 8);
select count(*) from f('changed');
create virtual table f4 using fts4(x, y, tokenize = porter);
insert into f4 select t, 'words and more words ' || id from a where id < 60;
select docid, snippet(f4), offsets(f4), hex(matchinfo(f4, 'pcx')) from f4 where f4 match '"more words" row* -k0011' limit 3;
delete from f4 where docid < 20;
insert into f4(f4) values ('optimize');
create virtual table fv using fts5vocab(f, row);
select * from fv order by cnt desc, term limit 5;
create virtual table rt using rtree(id, x0, x1, y0, y1, +label);
insert into rt select id, n, n + 5, r, r + 3, t from a;
select id, label from rt where x0 > 40 and x1 < 60 and y0 between 10 and 90;
delete from rt where id % 2;
update rt set x0 = x0 - 1, x1 = x1 + 1 where id < 100;
select count(*), rtreecheck('rt') from rt where x1 >= 100;

-- schema changes, attach, vacuum, integrity
drop trigger va_i;
alter table a rename to aa;
alter table aa rename column t to txt;
alter table aa add column extra text default 'none';
alter table aa add column passing int;
alter table aa drop column passing;
select sql from sqlite_schema where name in ('aa', 'va', 'a_t', 'a_u') order by name;
attach ':memory:' as m;
create table m.copy as select * from aa;
insert into m.copy select * from aa where id < 50;
select count(*), sum(n) from m.copy where extra = 'none';
analyze;
select tbl, idx, stat from sqlite_stat1 order by 1, 2;
explain query plan select * from aa where txt > 'row B' and n between 5 and 9;
explain select count(*), txt from aa where n > 5 group by txt order by 1;
reindex aa;
pragma wal_checkpoint(truncate);
pragma incremental_vacuum(3);
pragma journal_mode = delete;
begin; delete from aa where id > 150; rollback;
begin; delete from aa where id > 250; commit;
pragma secure_delete = on;
delete from log;
vacuum;
pragma integrity_check;
pragma quick_check;
pragma page_count;
pragma freelist_count;
detach m;
drop view va;
drop table c;
select name, type from sqlite_schema order by 2, 1 limit 12;

-- errors
select * from missing;
select bad syntax here;
insert into aa(n, txt) values (200000, 'check');
select abs(-9223372036854775808);
select json('{');
create table aa(x);
select 1 union select 1, 2;
select sum(count(*)) from aa;
select raise(abort, 'x');
update aa set nope = 1;
select 'unclosed
string';

-- the shell
.mode csv
.headers on
select id, txt, r, b from aa where id < 6;
.mode column
select id, txt, n from aa where id < 4;
.mode line
select id, txt from aa where id < 3;
.mode html
select id, txt from aa where id < 3;
.mode insert tab
select id, txt, b from aa where id < 3;
.mode json
select id, txt, r from aa where id < 3;
.mode markdown
select id, txt from aa where id < 3;
.mode box
select id, txt from aa where id < 3;
.mode quote
select id, txt, b, r from aa where id < 3;
.mode table
select id, txt from aa where id < 3;
.mode tcl
select id, txt from aa where id < 3;
.mode list
.schema aa
.tables
.indexes
.dump log
.databases
.show
.fullschema
.lint fkey-indexes
.sha3sum aa
.selftest
.limit
.backup backup.db
.open backup.db
select count(*) from aa;
.restore backup.db
.recover
.print END-OF-RUN
