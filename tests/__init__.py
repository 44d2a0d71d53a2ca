"""The tests, by what they need. `testpaths` in pyproject.toml has those that run first, the core layer.

- `unit`: neither database nor broker
- `properties`: what holds for every schedule: generated texts, compared with other libraries or slow, plain code
- `protocol`: one statement of beats and workers, on a real Postgres; `race`: two connections; `pairs`: every two
  statements at one moment
- `postgres`: the same statements on any Postgres: its planner and JIT, large tables, its settings, no free connection
- `interfaces`: the same database through SQL, Python, the shell and the testing kit
- `web`: the dashboard, on a real Postgres
- `migration`: a database gets the schema, or that of the next version
- `model`: random sequences of statements against a model of the protocol
- `mutants`: planted defects, which the other tests must find
- `acceptance`: real beats, workers and brokers; `faults`: the same under load, with processes killed and servers away
- `fuzz`: generated texts, rows, settings and messages
- `docs`: the code blocks of the pages, and tables that are made from the code
- `harness`: what several of them use. A folder imports the harness, and no other folder.

The numbers in names of tests (`test_p4_...`, `pytest -k p4_`) are those of the promises in docs/guarantees.md:

P1   any number of beats without a leader: each occurrence is decided once
P2   no tick is lost: it is submitted, or recorded with the reason why not
P3   a job starts once, whatever brokers and beats do
P4   no overlap under `overlap = 'skip'`
P5   no schedule is blocked for good
P6   one bad row stops only itself, and says why in a column
P7   the database's clock decides, not those of the nodes
P8   daylight saving loses and doubles nothing
P9   a change by SQL takes effect within a second; a wrong one is refused or shown
P10  outages are waited out: no process ends, nothing starts twice
P11  cost follows what is due, not the number of rows
P12  nothing runs code from the table
"""
