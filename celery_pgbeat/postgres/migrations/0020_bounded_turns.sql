-- A bound of how often a beat has put a turn off. May run before the new code: older beats call none of the functions
-- that it drops.

-- One more is added to it.
update {schema}.dependency_turn set tries = least(greatest(tries, 0), 2000000000)
where tries not between 0 and 2000000000;
alter table {schema}.dependency_turn
    add constraint dependency_turn_tries_in_range check (tries between 0 and 2000000000);

-- Others do now what these did.
drop function if exists {schema}.is_done_until(text, timestamptz), {schema}.last_end(text, timestamptz, timestamptz);
