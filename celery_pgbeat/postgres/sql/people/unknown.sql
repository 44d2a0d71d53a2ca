-- Say that there is no periodic task of this name, and why, or which one may have been meant.
select {schema}.unknown_in_words(%(name)s) as sentence
