-- Submit the decided occurrences that nothing stands in the way of: nearly all of them, nearly always.
--
-- What `submit` does in many steps for any row, in the few steps that such a row takes. A row that this leaves untouched
-- (a job stands in the way or came in between, its group has a limit, or somebody holds the row) is `submit`'s. The
-- fence, the order of locks and the answer are the same.
select name, made from {schema}.submit_free(
    %(beat)s, %(timezone)s, %(full_acts_as)s,
    %(names)s::text[], %(marked_ats)s::timestamptz[], %(due_ats)s::timestamptz[],
    %(jobs)s::uuid[], %(scheduled_fors)s::timestamptz[], %(job_due_ats)s::timestamptz[], %(origins)s::text[],
    %(skipped_firsts)s::timestamptz[], %(skipped_lasts)s::timestamptz[], %(skipped_counts)s::int[], %(skipped_reasons)s::text[],
    %(next_run_ats)s::timestamptz[], %(planned_fors)s::timestamptz[], %(decided_untils)s::timestamptz[],
    %(pickup_deadlines)s::double precision[])
