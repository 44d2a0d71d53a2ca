-- Read a page of periodic tasks as page_of_tasks does, without what the role of a dashboard may not read.
select {open_columns} from {schema}.periodic_task {page}
