-- Say that no beat is alive, and since when; NULL while one is.
select no_beat from {schema}.nodes_in_words()
