-- Overrule `failed` by `revoked`: a terminated child reports a failure before its parent can speak.
update {schema}.finished_job
set state = 'revoked', error = %(error)s
where id = %(job)s and run = %(run)s and attempt = %(attempt)s and state = 'failed'
    and finished_at > {schema}.now() - interval '1 hour'
returning id
