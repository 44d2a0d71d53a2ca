-- Read a page of periodic tasks in name order, by whatever an operator looks for.
--
-- The page follows the primary key and ends when it is full. What no index serves is tested on the way: a filter that
-- hardly any row passes reads the table once.
select {task_columns} from {schema}.periodic_task {page}
