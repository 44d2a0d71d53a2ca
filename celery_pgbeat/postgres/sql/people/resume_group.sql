-- Resume a paused group, or open a finished one; with `retry`, the jobs that have paused it run again first.
select {group} from {schema}.resume_group(%(name)s, %(retry)s)
