-- Finish a group: it takes no new jobs.
select {group} from {schema}.finish_group(%(name)s)
